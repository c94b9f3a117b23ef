"""The page Measured results, drawn from the files of results."""
