"""The worker process that reads database files.

It runs by itself, with the standard library and DuckDB's, so that it starts at once and nothing of Ullage is in its
memory. `__main__.py` is the program; the rest imports only its own siblings.
"""
