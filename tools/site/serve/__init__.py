"""The site on this machine, built again after each change."""
