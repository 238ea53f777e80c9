"""Does a pattern mean this file?

The language of `.gitignore`, which people know: `*.md` anywhere, `/docs` at the top, `build/` for folders, `**` for any
number of them, `!` to take back; the last pattern that fits decides. A path is matched part by part, so that no pattern
takes long over it, whoever wrote it. Reads no files.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate

__all__ = ["Parts", "Patterns"]

Parts = tuple[str, ...]
"""A path below a folder, part by part."""

_ESCAPED = re.compile(r"\\(.)")
_TRAILING = re.compile(r"(?<!\\) +$")
_ANYWHERE = 2
"""Segments of a pattern that is a name alone, behind `**`: most are, and a look at the last part is enough."""
_LONGEST = 1_000
"""Characters of a pattern; what is longer is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pattern:
    segments: tuple[re.Pattern[str] | None, ...]
    """None stands for any number of parts."""
    negated: bool
    folders_only: bool

    def fits(self, parts: Parts, *, is_folder: bool) -> bool:
        if self.folders_only and not is_folder:
            return False
        first, last = self.segments[0], self.segments[-1]
        if first is None and last is not None and len(self.segments) == _ANYWHERE:
            return last.match(parts[-1]) is not None
        return self._reaches_end(parts)

    def _reaches_end(self, parts: Parts) -> bool:
        reached = self._beyond({0})
        for part in parts:
            reached = self._beyond({after for at in reached for after in self._step(at, part)})
        return len(self.segments) in reached

    def _step(self, at: int, part: str) -> tuple[int, ...]:
        if at == len(self.segments):
            return ()
        segment = self.segments[at]
        if segment is None:
            return (at,)
        return (at + 1,) if segment.match(part) else ()

    def _beyond(self, reached: set[int]) -> set[int]:
        """With the segments that come next because one in between need not match anything."""
        for at in sorted(reached):
            end = at
            while end < len(self.segments) and self.segments[end] is None:
                end += 1
                reached.add(end)
        return reached


class Patterns:
    """A list of patterns, of which the last that fits decides."""

    def __init__(self, lines: Iterable[str], *, any_case: bool = False) -> None:
        flags = re.IGNORECASE if any_case else re.NOFLAG
        found = [_read(line, flags) for line in lines]
        self._backwards = [pattern for pattern in reversed(found) if pattern is not None]

    def __bool__(self) -> bool:
        return bool(self._backwards)

    def says(self, parts: Parts, *, is_folder: bool) -> bool | None:
        """Whether it is meant; None where no pattern fits. What lies in a folder that is meant is not asked here."""
        for pattern in self._backwards:
            if pattern.fits(parts, is_folder=is_folder):
                return not pattern.negated
        return None

    def covers(self, parts: Parts) -> bool:
        """Whether a file is meant, or a folder that it lies in."""
        said = self.says(parts, is_folder=False)
        if said is not None:
            return said
        return any(self.says(parts[:end], is_folder=True) for end in range(len(parts) - 1, 0, -1))


def _read(line: str, flags: re.RegexFlag) -> _Pattern | None:
    text = _TRAILING.sub("", line.rstrip("\r\n"))
    if not text or text.startswith("#") or len(text) > _LONGEST:
        return None
    negated = text.startswith("!")
    text = text[negated:]
    segments = [segment for segment in text.split("/") if segment]
    if not segments:
        return None
    if "/" not in text.rstrip("/"):
        segments.insert(0, "**")
    if segments[-1] == "**":
        segments.append("*")
    return _Pattern(
        segments=tuple(_segment(segment, flags) for segment in segments),
        negated=negated,
        folders_only=text.endswith("/"),
    )


def _segment(segment: str, flags: re.RegexFlag) -> re.Pattern[str] | None:
    if segment == "**":
        return None
    return re.compile(translate(_ESCAPED.sub(_plain, segment)), flags)


def _plain(escaped: re.Match[str]) -> str:
    letter = escaped.group(1)
    return f"[{letter}]" if letter in "*?[" else letter
