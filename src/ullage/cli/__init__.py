"""The command line `ullage`, one module a verb."""

from .main import main

__all__ = ["main"]
