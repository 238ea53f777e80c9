"""Shows pending project files to a person and takes their approval.

Used by `ullage trust`, and by every other verb that meets a pending file in a terminal. What is approved is the content
that was shown: a file that is changed in the meantime is pending again.
"""

import sys
from collections.abc import Sequence

from ullage.config import Approvals, PendingFile, Places
from ullage.invisible_characters import escape_invisible

from .output import bold, plain, say

__all__ = ["approve", "can_be_asked", "offer_approval", "pending_lines"]


def can_be_asked() -> bool:
    """Whether a person sits at a terminal and can answer. Closed streams are None."""
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)  # pyright: ignore[reportUnnecessaryComparison]


def pending_lines(pending: PendingFile) -> list[str]:
    """What a pending file would do, and how that differs from what was approved before."""
    before = pending.before
    is_same = before is not None and before.digest == pending.unit.digest
    state = "not approved" if before is None else f"changed since you approved it on {before.approved[:10]}"
    if before is not None and is_same:
        state = f"approved on {before.approved[:10]}"
    lines = [f"{bold(_visible(str(pending.path)))}  {state}"]
    if before is None or is_same:
        lines += [f"  {_visible(line)}" for line in pending.effects] or ["  sets nothing that Ullage knows"]
    else:
        gone = [line for line in before.effects if line not in pending.effects]
        new = [line for line in pending.effects if line not in before.effects]
        same = [line for line in pending.effects if line in before.effects]
        lines += [f"- {_visible(line)}" for line in gone] + [f"+ {_visible(line)}" for line in new]
        lines += [f"  {_visible(line)}" for line in same]
        if not gone and not new:
            lines.append("  The text differs in a way that this summary does not show: read the file first.")
    lines += [f"  error     {_visible(fault)}" for fault in pending.faults]
    return [*lines, f"  sha256    {pending.unit.digest}"]


def _visible(text: str) -> str:
    """A line with control characters and invisible ones spelt out."""
    return escape_invisible(plain(text))


def approve(pending: PendingFile) -> None:
    Approvals(Places.of_user().trust).approve(pending.unit, pending.effects)


def offer_approval(pending: Sequence[PendingFile]) -> bool:
    """Asks the person at the terminal about each file; returns whether any was approved."""
    is_any = False
    for one in pending:
        say("", "A project file waits for your approval:", *pending_lines(one))
        if one.faults:
            say("It cannot be approved before its errors are fixed.", "")
            continue
        say("Scripts and programs that it starts are not checked, only this file and what it includes.")
        print("Approve this content? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            approve(one)
            is_any = True
            say("Approved.", "")
        else:
            say("Not approved: only its restrictions are in force.", "")
    return is_any
