"""Build the site, and show it while it is being written."""
