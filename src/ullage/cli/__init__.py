"""What can a person ask of Ullage on a command line?"""

from .main import main

__all__ = ["main"]
