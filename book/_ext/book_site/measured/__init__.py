"""The page What a GPU would give, drawn from the files of results."""
