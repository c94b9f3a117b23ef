"""The measuring suite: what the book teaches, measured on this machine with provenance.

Run `python -m benchmarks --help`. The results are drawn on the page What a GPU
would give.
"""
