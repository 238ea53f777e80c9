"""What stands in a history in the place of its head?

One text of the user's: a summary, the identifiers beside it, and a receipt of what was let go. What it holds came from
a history or from a model and may hold anything, so that every tag of this frame that stands within is escaped, and
comes back as it was. What the summary says is not this file's matter.
"""

import re
from dataclasses import dataclass

__all__ = ["Carried", "carried", "read_carried"]

_OPEN, _CLOSE = "<context_summary>", "</context_summary>"
_LEDGER, _LEDGER_END = "\n\n<identifiers>\n", "\n</identifiers>"
_RECEIPT, _RECEIPT_END = "\n\n<receipt>", "</receipt>"
# A reader may take `</ Context_Summary` for a tag too. `&lt;` is escaped as well, or it would come back as `<`.
_TAG = r"(?=\s*+/?\s*+(?:context_summary|identifiers|receipt))"
_PLAIN = re.compile(rf"<{_TAG}|&(?=(?:amp;)*+lt;{_TAG})", re.IGNORECASE)
_ESCAPED = re.compile(rf"&lt;{_TAG}|&amp;(?=(?:amp;)*+lt;{_TAG})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Carried:
    summary: str
    identifiers: str = ""


def carried(summary: str, identifiers: str, receipt: str) -> str:
    """The text of one message; the receipt is a line."""
    ledger = f"{_LEDGER}{_escaped(identifiers)}{_LEDGER_END}" if identifiers else ""
    line = _escaped(" ".join(receipt.split()))
    return f"{_OPEN}\n{_escaped(summary)}{ledger}{_RECEIPT}{line}{_RECEIPT_END}\n{_CLOSE}"


def read_carried(text: str) -> Carried | None:
    """What such a text holds, ours or another program's; None where it is none."""
    text = text.strip()
    if not text.startswith(_OPEN):
        return None
    inner, closed, behind = text.removeprefix(_OPEN).partition(f"{_RECEIPT_END}\n{_CLOSE}")
    summary, receipt, _ = inner.partition(_RECEIPT)
    if not closed or not receipt:
        return Carried(_foreign(text))
    summary, _, ledger = summary.removeprefix("\n").partition(_LEDGER)
    return Carried(_meant(summary) + behind, _meant(ledger.removesuffix(_LEDGER_END)))


def _foreign(text: str) -> str:
    """All of it but the tags around it."""
    within, _, behind = text.removeprefix(_OPEN).rpartition(_CLOSE)
    return (within + behind).strip()


def _escaped(text: str) -> str:
    return _PLAIN.sub(lambda found: "&lt;" if found[0] == "<" else "&amp;", text)


def _meant(text: str) -> str:
    return _ESCAPED.sub(lambda found: "<" if found[0].lower() == "&lt;" else "&", text)
