"""The command line `ullage`, with one module for each verb."""

from .main import main

__all__ = ["main"]
