"""The menu *Run* in the header of a notebook's page: where the notebook can run.

`places` are links that the menu shows, `program` the one that fetches a notebook, what
it needs and opens it on the reader's machine: `uv run ADDRESS/run/NAME.py`.
"""
