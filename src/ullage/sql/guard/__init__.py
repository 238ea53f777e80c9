"""May this statement be run?"""

from .judge import judge
from .statement import Statement

__all__ = ["Statement", "judge"]
