"""What a machine needs: a virtual environment, its packages, a browser."""
