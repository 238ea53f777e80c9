"""What stands in a history in the place of its head?"""

from dataclasses import dataclass

__all__ = ["Carried", "carried", "read_carried"]

_OPEN, _CLOSE = "<context_summary>\n", "\n</context_summary>"
_LEDGER = "\n\n<identifiers>\n"
_LEDGER_END = "\n</identifiers>"


@dataclass(frozen=True, slots=True)
class Carried:
    summary: str
    identifiers: str


def carried(summary: str, identifiers: str, receipt: str) -> str:
    ledger = f"{_LEDGER}{identifiers}{_LEDGER_END}" if identifiers else ""
    return f"{_OPEN}{summary}{ledger}\n\n[{receipt}]{_CLOSE}"


def read_carried(text: str) -> Carried | None:
    if not text.startswith(_OPEN):
        return None
    inner = text.removeprefix(_OPEN).removesuffix(_CLOSE)
    summary, _, rest = inner.partition(_LEDGER)
    return Carried(summary, rest.partition(_LEDGER_END)[0])
