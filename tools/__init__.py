"""Small programs that keep the book in shape. Run them as `python -m tools.NAME`."""

import sys

# nbformat imports jsonschema, which imports this checker of addresses where JupyterLab
# has brought it along. It takes a second, nothing here needs it, jsonschema neither.
sys.modules.setdefault("rfc3987_syntax", None)
