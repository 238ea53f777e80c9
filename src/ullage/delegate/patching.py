"""How is a change of files said so that every tool applies it?

As git writes it: lines counted, three of context, files that are made, removed or renamed said to be. A model's own
patch may fit and still be refused, for a wrong count or a missing mark; this one says the same and is not.
"""

from collections.abc import Iterator, Mapping
from difflib import unified_diff

from .patch import FilePatch, PatchFailed, applied

__all__ = ["patch_of"]

_MODE = "file mode 100644"
_OPEN = "\\ No newline at end of file\n"


def patch_of(files: Mapping[str, str], patches: list[FilePatch]) -> str:
    """One patch that does what these do; raises `PatchFailed` where one does not fit, or nothing changes."""
    changed = applied(files, patches)
    renamed = dict(_renamed(files, patches, changed))
    said = "".join(
        _one(renamed.get(path, path), path, files, after)
        for path, after in changed.items()
        if path not in renamed.values()
    )
    if not said:
        raise PatchFailed("it changes nothing")
    return said


def _renamed(
    files: Mapping[str, str], patches: list[FilePatch], changed: Mapping[str, str | None]
) -> Iterator[tuple[str, str]]:
    """New names to old ones, of files that were there and are called otherwise now."""
    for patch in patches:
        old, new = patch.old or "", patch.new or ""
        if old != new and old in files and changed.get(old, "") is None and changed.get(new) is not None:
            yield new, old


def _one(old: str, new: str, files: Mapping[str, str], after: str | None) -> str:
    before = files.get(old)
    if before == after and old == new:
        return ""
    there, then = _named("a", old, before), _named("b", new, after)
    hunks = "".join(map(_ended, unified_diff(_lines(before or ""), _lines(after or ""), there, then)))
    return f"diff --git a/{old} b/{new}\n{_about(old, new, before, after)}{hunks}"


def _about(old: str, new: str, before: str | None, after: str | None) -> str:
    if before is None:
        return f"new {_MODE}\n"
    if after is None:
        return f"deleted {_MODE}\n"
    return "" if old == new else f"rename from {old}\nrename to {new}\n"


def _lines(text: str) -> list[str]:
    """With their ends; without what Python also takes for the end of a line."""
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n{_OPEN}"


def _named(side: str, path: str, content: str | None) -> str:
    """A name with a space in it ends in a tab, so that no time is looked for behind it."""
    if content is None:
        return "/dev/null"
    return f"{side}/{path}\t" if " " in path else f"{side}/{path}"
