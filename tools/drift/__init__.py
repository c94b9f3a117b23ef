"""See what other versions and other machines make of the claims."""
