"""Patches and test suites that delegated tasks return.

`read_patch` and `apply_patches` read unified patches as git or `diff -u` write them and apply them in memory: a hunk
must fit at its stated place, or at the nearest place where its lines occur. Models leave out carriage returns; a file's
lines keep the endings that they have. Nothing is written to disk.

`patch_of` writes the same change as a correct patch in git's format: with counted lines, three lines of context, and
marks for files that are created, removed or renamed. A model's own patch may fit and still be refused by git for a
wrong count or a missing mark.

`read_suite` reads a test suite. The framework and a seed are given to the model; the answer must contain files and the
command that runs them, and Python files must at least parse. Nothing is run.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher, unified_diff

from .checked_answers import UnfitAnswer

__all__ = [
    "SEED",
    "FilePatch",
    "Hunk",
    "PatchFailed",
    "Suite",
    "apply_patches",
    "framework_for",
    "patch_of",
    "read_patch",
    "read_suite",
    "written",
]

_HEADER = "diff --git "
_SAME = re.compile(r"(?:a/)?(?P<name>.+) (?:b/)?(?P=name)")
"""Names in a header that are the same; a name may contain ` b/`."""
_TWO = re.compile(r"(?:a/)?(?P<old>.+?) (?:b/(?P<new>.+)|(?P<bare>\S+))")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\([0-7]{3}|.)")
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_HUNK = re.compile(r"@@ -(?P<start>\d+)(?:,(?P<old>\d+))? \+\d+(?:,(?P<new>\d+))? @@.*")
_FENCE = re.compile(r"^(`{3,})[a-z]*\n(?P<body>.*?)^\1[ \t]*$", re.DOTALL | re.MULTILINE)
"""A fence ends only at the beginning of a line, where a patch has its marks, since changed lines may contain fences."""
_NONE = "/dev/null"
_MARK = "\ufeff"
"""Byte order mark."""


class PatchFailed(Exception):
    """Raised with the reason why a patch is unusable, in words with which the model can correct it."""


@dataclass(slots=True)
class Hunk:
    """One hunk of a patch."""

    start: int
    before: list[str] = field(default_factory=list[str])
    """Lines before the change, context included."""
    after: list[str] = field(default_factory=list[str])
    last_mark: str = " "
    is_open: bool = False
    """Whether its last line is marked as having no newline."""


@dataclass(slots=True)
class FilePatch:
    """The changes of one file."""

    old: str | None
    """None for a file that is created."""
    new: str | None
    """None for a file that is removed."""
    hunks: list[Hunk] = field(default_factory=list[Hunk])
    is_copy: bool = False


def read_patch(text: str) -> list[FilePatch]:
    """Return the changes of a patch, without the fences and text around it."""
    fenced = [one["body"] for one in _FENCE.finditer(text) if _begin(_lines(one["body"])) is not None]
    lines = _lines(("".join(fenced) if fenced else text).rstrip("\n"))
    start = _begin(lines)
    if start is None:
        raise PatchFailed("there is no `diff --git a/… b/…` header")
    files = list(_files(lines[start:]))
    if not any(one.hunks or one.old != one.new for one in files):
        raise PatchFailed("there is no hunk that begins with `@@ -start,count +start,count @@`")
    return files


def _lines(text: str) -> list[str]:
    """Split a text at newlines only, unlike `str.splitlines`."""
    return text.removesuffix("\n").split("\n") if text else []


def _begin(lines: list[str]) -> int | None:
    """Return where the patch begins; None if there is none."""
    return next((at for at in range(len(lines)) if lines[at].startswith(_HEADER) or _names_files(lines, at)), None)


def _names_files(lines: list[str], at: int) -> bool:
    """Return whether a file begins here as in `diff -u`: with `---`, `+++` and a hunk."""
    return (
        lines[at].startswith("--- ")
        and at + 2 < len(lines)
        and lines[at + 1].startswith("+++ ")
        and _HUNK.fullmatch(lines[at + 2].rstrip("\r")) is not None
    )


def _files(lines: list[str]) -> Iterator[FilePatch]:
    current: FilePatch | None = None
    at = 0
    while at < len(lines):
        line = lines[at].rstrip("\r")
        hunk = _HUNK.fullmatch(line)
        starts = line.startswith(_HEADER)
        if starts or ((current is None or current.hunks) and _names_files(lines, at)):
            if current is not None:
                yield current
            current = _read_header(line.removeprefix(_HEADER)) if starts else FilePatch("", "")
        at += 1
        if hunk and current is not None:
            read, at = _hunk(hunk, lines, at)
            current.hunks.append(read)
        elif current is not None and not starts:
            _read_mark(line, current)
    if current is not None:
        yield current


def _read_header(names: str) -> FilePatch:
    """Read the names after `diff --git`."""
    quoted = [_unquote(found[0]) for found in _QUOTED.finditer(names)]
    if quoted:
        rest = _QUOTED.sub("", names).strip()
        old, new = quoted if len(quoted) > 1 else (quoted[0], rest) if names.startswith('"') else (rest, quoted[0])
        return FilePatch(old.removeprefix("a/"), new.removeprefix("b/"))
    if same := _SAME.fullmatch(names):
        return FilePatch(same["name"], same["name"])
    two = _TWO.fullmatch(names)
    if two is None:
        raise PatchFailed(f"`{_HEADER}{names[:60]}` does not name two files")
    return FilePatch(two["old"], two["new"] or two["bare"])


def _read_mark(line: str, patch: FilePatch) -> None:
    """Read one line between a header and its hunks."""
    mark, _, rest = line.partition(" ")
    if line.startswith("new file"):
        patch.old = None
    elif line.startswith("deleted file"):
        patch.new = None
    elif mark in ("rename", "copy") and rest.startswith("from "):
        patch.old, patch.is_copy = _unquote(rest.removeprefix("from ")), mark == "copy"
    elif mark in ("rename", "copy") and rest.startswith("to "):
        patch.new = _unquote(rest.removeprefix("to "))
    elif mark == "---" and patch.old is not None:
        patch.old = _file_name(rest, "a/")
    elif mark == "+++" and patch.new is not None:
        patch.new = _file_name(rest, "b/")


def _file_name(written: str, side: str) -> str | None:
    """Return a name of a `---` or `+++` line, which a tab and a time may follow; None for a file that is not there."""
    name = _unquote(written if written.startswith('"') else written.partition("\t")[0].rstrip())
    return None if name == _NONE else name.removeprefix(side)


def _unquote(name: str) -> str:
    """Return a name that git has quoted as in C, with the bytes of its characters in octal."""
    found = _QUOTED.match(name)
    if found is None:
        return name

    def read(escaped: re.Match[str]) -> str:
        said = escaped[1]
        code = int(said, 8) if len(said) == 3 else _ESCAPES.get(said, ord(said))
        return bytes([code & 255]).decode("latin-1") if code < 256 else said

    written = found[1].encode().decode("latin-1")
    return _ESCAPE.sub(read, written).encode("latin-1").decode("utf-8", "replace")


def _hunk(header: re.Match[str], lines: list[str], at: int) -> tuple[Hunk, int]:
    """Read a hunk up to the next one, whatever counts its header states, because models miscount.

    Only empty lines beyond the counts are excluded, and `---` and `+++` begin another file only beyond them.
    """
    hunk, empty = Hunk(int(header["start"])), 0
    while at < len(lines) and not lines[at].startswith((_HEADER, "@@ ")):
        line = lines[at]
        is_counted = len(hunk.before) < int(header["old"] or 1) or len(hunk.after) < int(header["new"] or 1)
        if not is_counted and _names_files(lines, at):
            break
        at += 1
        if line.startswith("\\"):
            hunk.is_open = hunk.last_mark != "-"
            continue
        mark, rest = (line[0], line[1:]) if line.rstrip("\r") else (" ", line)
        if mark not in " +-":
            raise PatchFailed(f"line `{line[:60]}` of a hunk begins with none of ` `, `+` and `-`")
        if mark in " -":
            hunk.before.append(rest)
        if mark in " +":
            hunk.after.append(rest)
        hunk.last_mark, empty = (mark, 0) if line else (hunk.last_mark, empty + 1)
    beyond = min(empty, max(0, len(hunk.before) - int(header["old"] or 1)))
    if beyond:
        del hunk.before[-beyond:], hunk.after[-beyond:]
    return hunk, at


def apply_patches(files: Mapping[str, str], patches: list[FilePatch]) -> dict[str, str | None]:
    """Return the new contents by path, None for a removed file; raise `PatchFailed` if a hunk does not fit."""
    changed = dict[str, str | None]()
    for patch in patches:
        there = {path: text for path, text in {**files, **changed}.items() if text is not None}
        if patch.new is not None and patch.new != patch.old:
            if patch.new in there:
                raise PatchFailed(f"`{patch.new}` is a new file in the patch, but already exists")
            if patch.new.startswith(("/", "~")) or ".." in patch.new.split("/"):
                raise PatchFailed(f"`{patch.new}` is outside the project")
        if patch.old is None:
            before = ""
        else:
            if patch.old not in there:
                raise PatchFailed(f"`{patch.old}` is none of the files; they are {', '.join(sorted(there))}")
            before = there[patch.old]
        after = _apply(before, patch)
        if patch.new is None and after:
            raise PatchFailed(f"`{patch.old}` is to be removed, and the patch leaves lines of it")
        if patch.old is not None and patch.old != patch.new and not patch.is_copy:
            changed[patch.old] = None
        if patch.new is not None:
            changed[patch.new] = after
    return changed


def _apply(text: str, patch: FilePatch) -> str:
    """Apply a patch to a file with any endings of lines, and a byte order mark, which models leave out too."""
    if text.startswith(_MARK):
        bare = replace(patch, hunks=[_without(hunk, _MARK, "") for hunk in patch.hunks])
        return _MARK + _apply(text.removeprefix(_MARK), bare)
    if "\r\n" not in text:
        return _apply_lines(text, patch)
    if any(line.endswith("\r") for hunk in patch.hunks for line in (*hunk.before, *hunk.after)):
        with suppress(PatchFailed):
            return _apply_lines(text, patch)
    plain = replace(patch, hunks=[_without(hunk, "", "\r") for hunk in patch.hunks])
    return _with_endings(text, _apply_lines(text.replace("\r\n", "\n"), plain))


def _without(hunk: Hunk, prefix: str, suffix: str) -> Hunk:
    """Return a hunk whose lines neither begin nor end with something."""
    before, after = (
        [line.removeprefix(prefix).removesuffix(suffix) for line in lines] for lines in (hunk.before, hunk.after)
    )
    return replace(hunk, before=before, after=after)


def _with_endings(before: str, after: str) -> str:
    """Return a text with the line endings of the one that it comes from; a new line ends as the one it replaces or
    follows."""
    old, new = before.split("\n"), after.split("\n")
    *ends, _ = ["\r\n" if line.endswith("\r") else "\n" for line in old]
    ends.append(ends[-1])  # a last line without an end gets the usual one if others follow
    found = list[str]()
    matcher = SequenceMatcher(None, [line.removesuffix("\r") for line in old], new, autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        at = range(start, end) if tag in ("equal", "replace") else [max(start - 1, 0)]
        found += (ends[at[min(place, len(at) - 1)]] for place in range(new_end - new_start))
    return "".join(line + end for line, end in zip(new[:-1], found, strict=False)) + new[-1]


def _apply_lines(text: str, patch: FilePatch) -> str:
    lines, shift, is_open = _lines(text), 0, bool(text) and not text.endswith("\n")
    for number, hunk in enumerate(patch.hunks, 1):
        wanted = max(hunk.start - 1, 0) + shift
        at = _place(lines, hunk.before, wanted)
        if at is None:
            why = "its lines are not there"
            for offset, line in enumerate(hunk.before, wanted):
                there = lines[offset] if offset < len(lines) else None
                if there != line:
                    found = "the file ends" if there is None else f"the file has `{there[:80]}`"
                    why = f"at line {offset + 1} {found}, the patch `{line[:80]}`"
                    break
            raise PatchFailed(f"hunk {number} of `{patch.new or patch.old}` does not fit: {why}")
        if at + len(hunk.before) == len(lines):
            is_open = hunk.is_open or (is_open and hunk.last_mark == " ")
        lines[at : at + len(hunk.before)] = hunk.after
        shift += at - wanted + len(hunk.after) - len(hunk.before)
    return "\n".join(lines) + ("\n" if lines and not is_open else "")


def _place(lines: list[str], before: list[str], wanted: int) -> int | None:
    """Return the place of the lines that is nearest to the stated one."""
    if not before:
        return min(wanted + 1, len(lines)) if wanted else 0
    last = len(lines) - len(before)
    fitting = [at for at in range(last + 1) if lines[at : at + len(before)] == before]
    return min(fitting, key=lambda at: abs(at - wanted), default=None)


SEED = "20250101"
_FILE = re.compile(r"^### +`?([^\n`]+?)`?[ \t]*\n+```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^## +Commands?[ \t]*\n+```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE | re.IGNORECASE)
_FRAMEWORKS = {
    ".py": "pytest",
    ".ts": "vitest",
    ".tsx": "vitest",
    ".js": "node:test",
    ".mjs": "node:test",
    ".go": "the testing package",
    ".rs": "cargo test",
    ".rb": "minitest",
    ".java": "JUnit 5",
    ".cs": "xUnit",
    ".php": "PHPUnit",
}


@dataclass(frozen=True, slots=True)
class Suite:
    """Test files and the command that runs them."""

    command: str
    files: Mapping[str, str]


def framework_for(files: Mapping[str, str]) -> str:
    """Return the usual test framework for most of these files; pytest if unknown."""
    endings = ["." + path.rpartition(".")[2] for path in files]
    known = [_FRAMEWORKS[ending] for ending in endings if ending in _FRAMEWORKS]
    return max(known, key=known.count, default="pytest")


def read_suite(text: str) -> Suite:
    """Read a suite from an answer; raise `UnfitAnswer` if files or command are missing, or Python does not parse."""
    command = _COMMAND.search(text)
    if command is None or not command[1].strip():
        raise UnfitAnswer("there is no `## Commands` with a fenced block")
    files = {path.strip(): body for path, body in _FILE.findall(text)}
    if not files:
        raise UnfitAnswer("there is no `### PATH` with a fenced block under `## Files`")
    for path, body in files.items():
        if path.startswith(("/", "~")) or ".." in path.split("/"):
            raise UnfitAnswer(f"`{path}` is outside the project")
        if path.endswith(".py"):
            try:
                ast.parse(body)
            except (SyntaxError, ValueError) as error:
                raise UnfitAnswer(f"`{path}` is not Python: {error}") from error
    return Suite(command[1].strip(), files)


def written(suite: Suite) -> str:
    """Return a suite as text."""
    files = "\n".join(f"### {path}\n```\n{body.rstrip()}\n```" for path, body in suite.files.items())
    return f"## Commands\n```\n{suite.command}\n```\n## Files\n{files}"


_MODE = "file mode 100644"
_OPEN = "\\ No newline at end of file\n"


def patch_of(files: Mapping[str, str], patches: list[FilePatch]) -> str:
    """Return one patch with the same effect; raise `PatchFailed` if a hunk does not fit or nothing changes."""
    changed = apply_patches(files, patches)
    renamed: dict[str, str] = {}
    for patch in patches:
        old, new = patch.old or "", patch.new or ""
        if old != new and old in files and changed.get(old, "") is None and changed.get(new) is not None:
            renamed[new] = old
    whole = ""
    for path, after in changed.items():
        old = renamed.get(path, path)
        before = files.get(old)
        if path in renamed.values() or (before == after and old == path):
            continue
        there, then = _patch_header_name("a", old, before), _patch_header_name("b", path, after)
        lines = unified_diff(_patching_lines(before or ""), _patching_lines(after or ""), there, then)
        if before is None:
            about = f"new {_MODE}\n"
        elif after is None:
            about = f"deleted {_MODE}\n"
        else:
            about = "" if old == path else f"rename from {_quote(old)}\nrename to {_quote(path)}\n"
        hunks = "".join(line if line.endswith("\n") else f"{line}\n{_OPEN}" for line in lines)
        names = f"{_quote(f'a/{old}')} {_quote(f'b/{path}')}"
        whole += f"{_HEADER}{names}\n{about}{hunks}"
    if not whole:
        raise PatchFailed("it changes nothing")
    return whole


def _patching_lines(text: str) -> list[str]:
    """Split a text at newlines only, and keep them."""
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _patch_header_name(side: str, path: str, content: str | None) -> str:
    """Return a patch header; a name with a space ends in a tab, so that no timestamp is read from it."""
    if content is None:
        return "/dev/null"
    name = _quote(f"{side}/{path}")
    return f"{name}\t" if " " in path and name[0] != '"' else name


def _quote(name: str) -> str:
    """Return a name quoted as in C if git would not read it otherwise."""
    if re.search(r'["\\\x00-\x1f\x7f]', name) is None:
        return name
    escapes = {code: f"\\{letter}" for letter, code in _ESCAPES.items()} | {34: '\\"', 92: "\\\\"}
    return '"' + "".join(escapes.get(ord(one), one if ord(one) > 31 else f"\\{ord(one):03o}") for one in name) + '"'
