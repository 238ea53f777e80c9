"""The text of the message that stands in a history in the place of its head.

It holds the user's first request and latest instructions to the letter, a summary, the identifiers beside it, and a
receipt of what was dropped. What it holds came from a history or from a model and may hold anything, so that every tag
of this frame that occurs within is escaped, and comes back as it was. Other tags are left alone: a request that is
written in tags of its own stays as it was written.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Carried", "carried", "read_carried"]

_OPEN, _CLOSE = "<context_summary>", "</context_summary>"
_LEDGER, _LEDGER_END = "\n\n<identifiers>\n", "\n</identifiers>"
_RECEIPT, _RECEIPT_END = "\n\n<receipt>", "</receipt>"
_REQUEST, _REQUEST_END = "<original_request>\n", "\n</original_request>\n\n"
_LATER, _LATER_END = "<later_request>\n", "\n</later_request>\n\n"
# A reader may take `</ Context_Summary` for a tag too. `&lt;` is escaped as well, or it would come back as `<`.
_TAG = r"(?=\s*+/?\s*+(?:context_summary|identifiers|receipt|original_request|later_request))"
_PLAIN = re.compile(rf"<{_TAG}|&(?=(?:amp;)*+lt;{_TAG})", re.IGNORECASE)
_ESCAPED = re.compile(rf"&lt;{_TAG}|&amp;(?=(?:amp;)*+lt;{_TAG})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Carried:
    summary: str
    identifiers: str = ""
    request: str = ""
    """The user's first request; empty where it is elsewhere in the history."""
    later: tuple[str, ...] = ()
    """Instructions of the user's that came after it, in order."""


def carried(summary: str, identifiers: str, receipt: str, *, request: str = "", later: Sequence[str] = ()) -> str:
    """The text of one message; the receipt is a line."""
    ledger = f"{_LEDGER}{_escaped(identifiers)}{_LEDGER_END}" if identifiers else ""
    line = _escaped(" ".join(receipt.split()))
    asked = f"{_REQUEST}{_escaped(request)}{_REQUEST_END}" if request else ""
    asked += "".join(f"{_LATER}{_escaped(one)}{_LATER_END}" for one in later)
    return f"{_OPEN}\n{asked}{_escaped(summary)}{ledger}{_RECEIPT}{line}{_RECEIPT_END}\n{_CLOSE}"


def read_carried(text: str) -> Carried | None:
    """What such a text holds, ours or another program's; None where it is none."""
    text = text.strip()
    if not text.startswith(_OPEN):
        return None
    inner, closed, behind = text.removeprefix(_OPEN).partition(f"{_RECEIPT_END}\n{_CLOSE}")
    summary, receipt, _ = inner.partition(_RECEIPT)
    if not closed or not receipt:
        return Carried(_foreign(text))
    summary, request, later = summary.removeprefix("\n"), "", list[str]()
    if summary.startswith(_REQUEST):
        request, _, summary = summary.removeprefix(_REQUEST).partition(_REQUEST_END)
    while summary.startswith(_LATER):
        one, _, summary = summary.removeprefix(_LATER).partition(_LATER_END)
        later.append(_meant(one))
    summary, _, ledger = summary.partition(_LEDGER)
    return Carried(_meant(summary) + behind, _meant(ledger.removesuffix(_LEDGER_END)), _meant(request), tuple(later))


def _foreign(text: str) -> str:
    """All of it but the tags around it."""
    within, _, behind = text.removeprefix(_OPEN).rpartition(_CLOSE)
    return (within + behind).strip()


def _escaped(text: str) -> str:
    return _PLAIN.sub(lambda found: "&lt;" if found[0] == "<" else "&amp;", text)


def _meant(text: str) -> str:
    return _ESCAPED.sub(lambda found: "<" if found[0].lower() == "&lt;" else "&", text)
