"""Token counts of whole requests, a module for each provider."""

from .choose_rules import rule_of

__all__ = ["rule_of"]
