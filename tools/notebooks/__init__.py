"""Keep notebooks in shape: their form, their copies of snippets, their outputs."""
