"""The worker process that reads database files.

It runs on its own, with only the standard library and DuckDB, so that it starts quickly and has none of Ullage's
memory. `__main__.py` is the program; the other modules import only each other.
"""
