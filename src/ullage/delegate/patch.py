"""Does this patch apply to these files?

Unified patches as git writes them, read and applied in memory: a hunk must fit where it says, or at the nearest place
where its lines stand. Nothing is written anywhere.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

__all__ = ["FilePatch", "Hunk", "PatchFailed", "applied", "read_patch"]

_HEADER = re.compile(r"diff --git a/(?P<old>.+?) b/(?P<new>.+)")
_HUNK = re.compile(r"@@ -(?P<start>\d+)(?:,(?P<old>\d+))? \+\d+(?:,(?P<new>\d+))? @@.*")
_FENCE = re.compile(r"```[a-z]*\n(.*?)```", re.DOTALL)
_NONE = "/dev/null"


class PatchFailed(Exception):
    """Why a patch cannot be used, in words that its writer can mend it by."""


@dataclass(slots=True)
class Hunk:
    start: int
    before: list[str] = field(default_factory=list[str])
    """Lines as they are, context among them."""
    after: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class FilePatch:
    old: str | None
    """None for a file that is made."""
    new: str | None
    """None for a file that is removed."""
    hunks: list[Hunk] = field(default_factory=list[Hunk])


def read_patch(text: str) -> tuple[str, list[FilePatch]]:
    """The patch alone, without fences and words around it, and what it says."""
    fenced = [body for body in _FENCE.findall(text) if "diff --git" in body]
    body = "".join(fenced) if fenced else text
    start = body.find("diff --git ")
    if start < 0:
        raise PatchFailed("there is no `diff --git a/… b/…` header")
    patch = body[start:].rstrip("\n") + "\n"
    files = list(_files(_lines(patch)))
    if not any(one.hunks or one.old != one.new for one in files):
        raise PatchFailed("there is no hunk that begins with `@@ -start,count +start,count @@`")
    return patch, files


def _lines(text: str) -> list[str]:
    """Without what Python also takes for the end of a line."""
    return text.removesuffix("\n").split("\n") if text else []


def _files(lines: list[str]) -> Iterator[FilePatch]:
    current: FilePatch | None = None
    at = 0
    while at < len(lines):
        line = lines[at]
        header, hunk = _HEADER.fullmatch(line), _HUNK.fullmatch(line)
        at += 1
        if header:
            if current is not None:
                yield current
            current = FilePatch(header["old"], header["new"])
        elif hunk and current is not None:
            read, at = _hunk(hunk, lines, at)
            current.hunks.append(read)
        elif current is not None and line == f"--- {_NONE}":
            current.old = None
        elif current is not None and line == f"+++ {_NONE}":
            current.new = None
    if current is not None:
        yield current


def _hunk(header: re.Match[str], lines: list[str], at: int) -> tuple[Hunk, int]:
    """As many lines as its header says, or fewer where the patch ends: models miscount, and what follows shows."""
    hunk = Hunk(int(header["start"]))
    while at < len(lines) and not lines[at].startswith(("diff --git ", "@@ ")):
        line = lines[at]
        at += 1
        if line.startswith("\\"):
            continue
        mark, rest = (line[0], line[1:]) if line else (" ", "")
        if mark not in " +-":
            raise PatchFailed(f"line `{line[:60]}` of a hunk begins with none of ` `, `+` and `-`")
        if mark in " -":
            hunk.before.append(rest)
        if mark in " +":
            hunk.after.append(rest)
    return hunk, at


def applied(files: Mapping[str, str], patches: list[FilePatch]) -> dict[str, str | None]:
    """The new contents by path, None for what is removed; raises `PatchFailed` where one does not fit."""
    changed = dict[str, str | None]()
    for patch in patches:
        before = _before(files, patch)
        if patch.old is not None and patch.old != patch.new:
            changed[patch.old] = None
        if patch.new is not None:
            changed[patch.new] = _apply(before, patch)
    return changed


def _before(files: Mapping[str, str], patch: FilePatch) -> str:
    if patch.old is None:
        if patch.new in files:
            raise PatchFailed(f"`{patch.new}` is made anew, and is there already")
        return ""
    if patch.old not in files:
        raise PatchFailed(f"`{patch.old}` is none of the files; they are {', '.join(sorted(files))}")
    return files[patch.old]


def _apply(text: str, patch: FilePatch) -> str:
    lines, shift = _lines(text), 0
    for number, hunk in enumerate(patch.hunks, 1):
        wanted = max(hunk.start - 1, 0) + shift
        at = _place(lines, hunk.before, wanted)
        if at is None:
            raise PatchFailed(f"hunk {number} of `{patch.new}` does not fit: {_difference(lines, hunk.before, wanted)}")
        lines[at : at + len(hunk.before)] = hunk.after
        shift += at - wanted + len(hunk.after) - len(hunk.before)
    return "\n".join(lines) + ("\n" if lines else "")


def _place(lines: list[str], before: list[str], wanted: int) -> int | None:
    """Where the lines stand, the nearest to where they should."""
    if not before:
        return min(wanted + 1, len(lines)) if wanted else 0
    last = len(lines) - len(before)
    fitting = [at for at in range(last + 1) if lines[at : at + len(before)] == before]
    return min(fitting, key=lambda at: abs(at - wanted), default=None)


def _difference(lines: list[str], before: list[str], wanted: int) -> str:
    for offset, line in enumerate(before):
        there = lines[wanted + offset] if wanted + offset < len(lines) else None
        if there != line:
            found = "the file ends" if there is None else f"the file has `{there[:80]}`"
            return f"at line {wanted + offset + 1} {found}, the patch `{line[:80]}`"
    return "its lines are not there"
