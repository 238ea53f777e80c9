"""May this statement be run?"""

from .judge import judge
from .statement import Kind, Statement

__all__ = ["Kind", "Statement", "judge"]
