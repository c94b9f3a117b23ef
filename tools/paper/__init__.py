"""The book to take away: `python -m tools.paper pdf`, `epub` and `zip`.

The PDF is printed by Chromium from the pages of the site, joined. The EPUB is written
by Sphinx's own builder. What is made lies in `_build/downloads`, from where the next
build of the site takes it.
"""
