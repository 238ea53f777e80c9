"""Places of settings files, their stamps, environment variables in them, and issues found in them.

An issue names files, tables, keys, servers and variables, never a value, because values may be secrets. The loader
decides whether an issue prevents the settings from being used.

Line numbers are found by searching the text, not by parsing it: accurate enough to point to the right line, and None if
the line is not clear. A key inside a multi-line text can mislead the search.

A `Page` contains the text, the variables that may be used in it, and how to interpret its paths and lines, so that
reading a file is a function of this value. Nothing is opened here.

`${VAR}`, `${env:VAR}` and `${VAR:-default}` are replaced once, and not again in the result; the default is also used if
the variable is empty, as in a shell. A bare `$VAR` is left for the program that receives it. A reference that cannot be
replaced stays unchanged and is reported by its name; values are never reported.

The project's file is looked for in the working directory and upward to the root of its repository, or to the home
folder; folders above that may belong to other users. The user's own folders are those of the platform.

Stamps compare files by time, size and inode: enough to notice that a file was edited, replaced, created or deleted,
without reading it.
"""

import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

import platformdirs

from ullage.control_characters import escape_controls
from ullage.errors import BadConfiguration
from ullage.start_cache import project_walk

__all__ = [
    "FILE_NAME",
    "Expanded",
    "Issue",
    "Page",
    "Places",
    "RecordingEnvironment",
    "Severity",
    "Stamp",
    "Stamps",
    "expand",
    "find_changed_files",
    "join_path",
    "json_line",
    "load_toml",
    "nearest",
    "project_files",
    "project_folders",
    "refusal",
    "stamp_of",
    "stamps_of",
    "toml_line",
    "variables_in",
]

Severity = Literal["error", "problem", "note"]
"""`error`: the settings cannot be used. `problem`: one server or file is left out. `note`: worth knowing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """A problem or note about the settings. It never contains a value, which may be a secret.

    Message, suggestion and place are single lines: names in a file must not forge lines of what a person reads.
    """

    severity: Severity
    message: str
    file: str | None = None
    """None for a flag or a variable."""
    line: int | None = field(default=None, compare=False)
    """The line, if it is easily found. Not part of the comparison: an issue that only moved is the same issue."""
    key: str | None = None
    """The key with its tables: `servers.github.command`."""
    server: str | None = None
    """The server that the issue concerns, if any."""
    suggestion: str = ""
    options: tuple[str, ...] = ()
    """Accepted values, nearest first."""

    def __post_init__(self) -> None:
        for name in ("message", "suggestion"):
            object.__setattr__(self, name, escape_controls(getattr(self, name), keep_lines=False))

    @property
    def place(self) -> str:
        """`file:line`, as far as known."""
        parts = (str(part) for part in (self.file, self.line) if part is not None)
        return escape_controls(":".join(parts), keep_lines=False)

    def sentence(self) -> str:
        """Return the whole issue in one line."""
        said = f"{self.place}: {self.message}" if self.place else self.message
        return f"{said} ({self.suggestion})" if self.suggestion else said


def nearest(name: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return the known names closest to a name, best first."""
    folded = {one.casefold().replace("-", "_"): one for one in known}
    written = name.casefold().replace("-", "_")
    found = get_close_matches(written, list(folded), n=2, cutoff=0.6)
    # Transposed letters are the most frequent error, so names with the same letters come first.
    return tuple(folded[one] for one in sorted(found, key=lambda one: sorted(one) != sorted(written)))


def refusal(issues: Sequence[Issue]) -> BadConfiguration:
    """Return one error that lists all issues."""
    if len(issues) == 1:
        only = issues[0]
        message = f"{only.place}: {only.message}" if only.place else only.message
        return BadConfiguration(message, suggestion=only.suggestion, options=only.options)
    lines = (f"\n  {issue.sentence()}" for issue in issues)
    return BadConfiguration(
        f"the settings have {len(issues)} errors:{''.join(lines)}",
        suggestion="fix them all, then start again",
        options=tuple(dict.fromkeys(option for issue in issues for option in issue.options)),
    )


_HEADING = re.compile(r"\s*\[\[?([^\[\]]+)\]\]?\s*(?:#.*)?")
_PART = re.compile(r"\s*(?:\"((?:\\.|[^\"\\])*)\"|'([^']*)'|([A-Za-z0-9_-]+))\s*(\.?)")

_MOST_SEARCHED = 2_000_000
"""Characters searched for the lines of one file's issues: a large file with an error on each line would otherwise take
time that grows with the square of its size."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]|[^\s\[\]{},":]+', re.DOTALL)
"""Tokens of JSON, except its colons."""


def toml_line(text: str, path: Sequence[str]) -> int | None:
    """Return the line that is closest to the path: its key, else the inline table or heading that contains it. A number
    in the path is a position in a list of tables."""
    wanted, heading, listed = tuple(path), tuple[str, ...](), Counter[tuple[str, ...]]()
    best, found = 0, None
    for number, line in enumerate(text.splitlines(), 1):
        titled = _HEADING.fullmatch(line)
        if titled:
            heading = said = _parts(titled[1])[0]
            if line.lstrip().startswith("[["):
                listed[said] += 1
                heading = said = (*said, str(listed[said] - 1))
        else:
            parts, rest = _parts(line)
            said = (*heading, *parts) if parts and rest.startswith("=") else ()
        shared = min(len(said), len(wanted))
        if shared > best and wanted[:shared] == said[:shared]:
            best, found = shared, number
    return found


def _parts(text: str) -> tuple[tuple[str, ...], str]:
    """Return the parts of a dotted key at the start of the text, and the rest of the text."""
    parts, at = list[str](), 0
    while match := _PART.match(text, at):
        parts.append(match[1] or match[2] or match[3] or "")
        at = match.end()
        if not match[4]:
            break
    return tuple(parts), text[at:]


def json_line(text: str, path: Sequence[str]) -> int | None:
    """Return the line of the last key of the path, each key searched for after the previous one. A number that is not a
    key is a position in a list."""
    at = -1
    for part in path:
        found = re.compile(rf'"{re.escape(part)}"\s*:').search(text, at + 1)
        place = found.start() if found else _item(text, max(at, 0), part)
        if place is None:
            break
        at = place
    return None if at < 0 else text.count("\n", 0, at) + 1


def _item(text: str, start: int, number: str) -> int | None:
    """Return where the item of this number begins, in the next list."""
    depth, item = 0, 0
    for token in _TOKEN.finditer(text, start) if number.isdecimal() else ():
        sign = token.group()
        if depth == 1 and item == int(number) and sign not in ",]":
            return token.start()
        depth += (sign in "[{") - (sign in "]}")
        item += depth == 1 and sign == ","
        if depth == 0 and sign == "]":
            break
    return None


_PLACE = re.compile(
    r"\$\{(?:env:)?(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}|\$\{(?P<other>[A-Za-z]+:[\w.-]+)\}", re.ASCII
)

_VARIABLE = re.compile(r"\$\{(?:env:)?(?P<name>[A-Za-z_]\w*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Expanded:
    """A text with its variables replaced, and the references that could not be."""

    text: str
    unset: tuple[str, ...] = ()
    """Variables that have no value and no default."""
    foreign: tuple[str, ...] = ()
    """References that only the program the file was written for can replace: `input:token`."""


def expand(text: str, environment: Mapping[str, str]) -> Expanded:
    unset, foreign = list[str](), list[str]()

    def replace(match: re.Match[str]) -> str:
        if match["other"]:
            foreign.append(match["other"])
            return match.group()
        value = environment.get(match["name"])
        if match["default"] is not None:
            return value or match["default"]
        if value is None:
            unset.append(match["name"])
            return match.group()
        return value

    return Expanded(_PLACE.sub(replace, text), tuple(unset), tuple(foreign))


class RecordingEnvironment(Mapping[str, str]):
    """Environment variables that record the names looked up, whether or not they are set."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self.consulted: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.consulted.add(name)
        return self._variables[name]

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str):
            self.consulted.add(name)
        return name in self._variables

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)


def variables_in(text: str) -> tuple[str, ...]:
    """Return the names of the variables used in a text, in their order."""
    return tuple(dict.fromkeys(match["name"] for match in _VARIABLE.finditer(text)))


FILE_NAME = "ullage.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The user's own folders."""

    home: Path
    config: Path
    data: Path
    state: Path | None = None
    """The folder with the approvals of project files; None for `state` below `data`."""
    user: int | None = None
    """The user's number, if the platform numbers its users."""

    @classmethod
    def of_user(cls) -> "Places":
        return cls(
            home=Path.home(),
            config=Path(platformdirs.user_config_dir("ullage", appauthor=False)),
            data=Path(platformdirs.user_data_dir("ullage", appauthor=False)),
            state=Path(platformdirs.user_state_dir("ullage", appauthor=False)),
            user=os.getuid() if hasattr(os, "getuid") else None,
        )

    @property
    def user_file(self) -> Path:
        return self.config / FILE_NAME

    @property
    def trust(self) -> Path:
        """The folder with the approvals of project files."""
        return (self.state or self.data / "state") / "trust"

    @property
    def sample(self) -> str:
        """The file of the sample shop."""
        return str(self.data / "sample-shop.db")

    @property
    def store(self) -> str:
        """The URL of the default store."""
        return f"sqlite:///{(self.data / 'ullage.db').as_posix()}"


def project_folders(directory: Path, home: Path) -> tuple[Path, ...]:
    """Return the working directory and those above it that belong to the same project, innermost first.

    A folder that is in no repository and not under the home folder is returned alone: a parent such as `/tmp` is shared
    by all users.
    """
    return tuple(map(Path, project_walk(str(directory), str(home))))


def project_files(directory: Path, places: Places) -> Iterator[tuple[Path, bool]]:
    """Yield each place of a project's file with whether it may be trusted: a file further up must not belong to another
    user."""
    for folder in project_folders(directory, places.home):
        path = folder / FILE_NAME
        yield path, folder == directory or not _is_strangers(path, places.user)


def _is_strangers(path: Path, user: int | None) -> bool:
    try:
        return user is not None and path.stat().st_uid not in (0, user)
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Stamp:
    """Time, size and inode of a file, by which a change is noticed."""

    modified: int
    """In nanoseconds, as is `touched`."""
    touched: int
    size: int
    inode: int


Stamps = Mapping[Path, Stamp | None]
"""None for a file that does not exist."""


def stamp_of(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def stamps_of(paths: Iterable[Path]) -> dict[Path, Stamp | None]:
    return {path: stamp_of(path) for path in paths}


def find_changed_files(before: Stamps, now: Stamps) -> frozenset[Path]:
    """Return the files of both whose stamps differ."""
    return frozenset(path for path in before.keys() & now.keys() if before[path] != now[path])


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The text of one file, with everything needed to interpret it."""

    file: str
    """The name for display."""
    text: str = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    absolute: Callable[[str], str]
    """Converts a path in the file, with `~` or relative to the file's folder, to an absolute path."""
    projects: tuple[str, ...] = ()
    """The working folders, innermost first: some files have entries for each."""
    expands: bool = True
    """Whether `${VAR}` is replaced. It is left unchanged in a project file that is not approved."""
    _searched: list[int] = field(default_factory=lambda: [0], init=False, repr=False, compare=False)
    """Characters searched for the lines of issues."""

    def expand(self, text: str) -> Expanded:
        return expand(text, self.environment) if self.expands else Expanded(text)

    def issue(
        self,
        severity: Severity,
        message: str,
        path: Sequence[str] = (),
        *,
        server: str | None = None,
        suggestion: str = "",
    ) -> Issue:
        """Return an issue about the key at this path of the file."""
        find = toml_line if self.file.endswith(".toml") else json_line
        is_searched = bool(path) and self._searched[0] < _MOST_SEARCHED
        self._searched[0] += len(self.text) if is_searched else 0
        return Issue(
            severity=severity,
            message=message,
            file=self.file,
            line=find(self.text, path) if is_searched else None,
            key=join_path(path) if path else None,
            server=server,
            suggestion=suggestion,
        )


def load_toml(text: str) -> dict[str, object]:
    """Parse TOML.

    Raises:
        ValueError: It is not TOML, or a line has a key of many parts, for which `tomllib` takes time that grows with
            the square of their number.
    """
    if _LONG_KEY.search(_STRING_OR_COMMENT.sub("s", text)):
        raise ValueError("a key has 200 parts or more")
    return tomllib.loads(text)


_STRING_OR_COMMENT = re.compile(
    r'''"""(?s:\\.|(?!""").)*+(?:""")?|'{3}(?s:(?!'{3}).)*+(?:'{3})?|"(?:\\.|[^"\\\n])*+"?|'[^'\n]*+'?|#[^\n]*+'''
)
"""Also a string without an end, where `tomllib` stops."""
_LONG_KEY = re.compile(r"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){199}")


def join_path(path: Sequence[str]) -> str:
    return ".".join(path)
