"""The page What will it take?: four calculators with the formulas of the chapters."""
