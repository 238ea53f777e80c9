"""How is a statement refused in words?

The construct is named in backticks and cut short, so that a refusal never repeats a whole literal; the suggestion says
what to write instead. Which construct is refused is decided elsewhere.
"""

from ullage.errors import Refused

__all__ = ["refusal"]

_SHOWN = 60


def refusal(construct: str, reason: str, suggestion: str, options: tuple[str, ...] = ()) -> Refused:
    return Refused(f"`{_shown(construct)}` {reason}", suggestion=suggestion, options=options)


def _shown(construct: str) -> str:
    plain = " ".join("".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in construct).split())
    plain = plain.replace("`", "'")
    return plain if len(plain) <= _SHOWN else plain[: _SHOWN - 1] + "…"
