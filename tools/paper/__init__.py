"""The book on paper, on an e-reader and offline: PDF, EPUB, archives.

Sphinx writes the pages as an e-book needs them (`edition`, with the builder in
`book/_ext/book_site/paper_builder.py`), and `form` gives them the form of paper. An
EPUB is these pages; a PDF is these pages as one, printed by Chromium (`pdf`). What is
made stands in `_build/downloads`, from where the site's build takes it.
"""
