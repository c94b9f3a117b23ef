"""How the checks run the notebooks, and what they say of the claims."""
