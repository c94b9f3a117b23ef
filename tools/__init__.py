"""Small programs that keep the book in shape. Run them as `python -m tools.NAME`."""
