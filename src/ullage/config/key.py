"""What is known of one key of `ullage.toml`?

Its name, what it takes, what it means and what holds without it. Which keys there are, `keys` says.
"""

from dataclasses import dataclass

from .kinds import Kind

__all__ = ["Key"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    name: str
    kind: Kind
    means: str
    default: str = "none"
    field: str = ""
    """What the value is called in the code, where that is another word."""

    @property
    def target(self) -> str:
        return self.field or self.name
