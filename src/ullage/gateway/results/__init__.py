"""How is a result held to a budget, with nothing lost and nothing run twice?"""

from .rules import Handling, ResultRules, ServerResults

__all__ = ["Handling", "ResultRules", "ServerResults"]
