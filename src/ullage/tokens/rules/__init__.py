"""How does each provider weigh a whole request?"""

from .choose import rule_of

__all__ = ["rule_of"]
