"""What should the user know of the role that a database is asked with?

The locks hold whatever the role may do; one that can only read is a lock of its own. Nothing is asked of the database
here.
"""

from .engine import Probe

__all__ = ["role_sentences"]

_NAMED = 3
"""Abilities that are named; the rest are counted."""


def role_sentences(name: str, probe: Probe) -> tuple[str, ...]:
    """One sentence where the role can write, none where it cannot."""
    if not probe.can_write:
        return ()
    who = "it" if probe.role is None else f"its role `{probe.role}`"
    shown = ", ".join(probe.can_write[:_NAMED])
    rest = len(probe.can_write) - _NAMED
    more = f", and {rest} more" if rest > 0 else ""
    advice = f"; for a role that can only read: ullage sql {name} --role-sql" if probe.setup_sql else ""
    return (f"database `{name}`: {who} {shown}{more}{advice}",)
