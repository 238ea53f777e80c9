"""Places of settings files, their stamps, environment variables in them, and issues found in them.

An issue names files, tables, keys, servers and variables, never a value: values may be secrets. Whether anything
was refused because of it is for whoever loads the settings.

Found by looking, not by parsing: good enough to send someone to the right line, and None where it is not plain. A key
inside a text of many lines may mislead it.

The text, the variables that may stand in it, and how its paths and lines are to be understood; so that reading is a
function of this value. Nothing is opened here.

`${VAR}`, `${env:VAR}` and `${VAR:-default}` are replaced, once and not again in what they gave; the default also
where the variable is empty, as in a shell. A bare `$VAR` is nobody's business but the program's it is handed to. What
cannot be replaced stays as it is and is named; no value ever is.

The project's file is looked for in the working directory and upward to the root of its repository, or to the home
folder; above that, other people's files begin. The user's own folders are those of the platform. Nothing is read
here.

By time, size and inode: enough to notice an edit, a replacement, a file that came or went, without reading it. What
the change means is not asked here.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

import platformdirs

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
    "changed",
    "dotted",
    "expand",
    "json_line",
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
    severity: Severity
    message: str
    file: str | None = None
    """None where a flag or a variable is meant."""
    line: int | None = field(default=None, compare=False)
    """Where it is easily found. An issue that only moved is the same issue."""
    key: str | None = None
    """With the tables it stands in: `servers.github.command`."""
    server: str | None = None
    """The one it concerns, where it concerns one."""
    suggestion: str = ""
    options: tuple[str, ...] = ()
    """What would have been accepted, nearest first."""

    @property
    def place(self) -> str:
        """`file:line`, as far as known."""
        return ":".join(str(part) for part in (self.file, self.line) if part is not None)

    def sentence(self) -> str:
        """All of it in one line."""
        said = f"{self.place}: {self.message}" if self.place else self.message
        return f"{said} ({self.suggestion})" if self.suggestion else said


def nearest(name: str, known: Sequence[str]) -> tuple[str, ...]:
    """The names somebody may have meant, best first."""
    folded = {one.casefold().replace("-", "_"): one for one in known}
    written = name.casefold().replace("-", "_")
    found = get_close_matches(written, list(folded), n=2, cutoff=0.6)
    # Letters out of order are the likeliest slip of all.
    return tuple(folded[one] for one in sorted(found, key=lambda one: sorted(one) != sorted(written)))


def refusal(issues: Sequence[Issue]) -> BadConfiguration:
    """All of them as one error."""
    if len(issues) == 1:
        only = issues[0]
        message = f"{only.place}: {only.message}" if only.place else only.message
        return BadConfiguration(message, suggestion=only.suggestion, options=only.options)
    lines = (f"\n  {issue.sentence()}" for issue in issues)
    return BadConfiguration(
        f"the settings have {len(issues)} errors:{''.join(lines)}",
        suggestion="mend them all, then start again",
        options=tuple(dict.fromkeys(option for issue in issues for option in issue.options)),
    )


_HEADING = re.compile(r"\s*\[\[?([^\[\]]+)\]\]?\s*(?:#.*)?")
_PART = re.compile(r"\s*(?:\"((?:\\.|[^\"\\])*)\"|'([^']*)'|([A-Za-z0-9_-]+))\s*(\.?)")

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]|[^\s\[\]{},":]+', re.DOTALL)
"""Of JSON, less its colons."""


def toml_line(text: str, path: Sequence[str]) -> int | None:
    """The line that says the most of the path: its key, else the inline table or heading that holds it. A number in the
    path is a place in a list of tables."""
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
    """The parts of a dotted key at the text's start, and what follows it."""
    parts, at = list[str](), 0
    while match := _PART.match(text, at):
        parts.append(match[1] or match[2] or match[3] or "")
        at = match.end()
        if not match[4]:
            break
    return tuple(parts), text[at:]


def json_line(text: str, path: Sequence[str]) -> int | None:
    """The line of the last key of the path, each looked for after the one before. A number that is no key is a place
    in a list."""
    at = -1
    for part in path:
        found = re.compile(rf'"{re.escape(part)}"\s*:').search(text, at + 1)
        place = found.start() if found else _item(text, max(at, 0), part)
        if place is None:
            break
        at = place
    return None if at < 0 else text.count("\n", 0, at) + 1


def _item(text: str, start: int, number: str) -> int | None:
    """Where the item of that number begins, in the list that comes next."""
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
    text: str
    unset: tuple[str, ...] = ()
    """Variables that have no value and no default."""
    foreign: tuple[str, ...] = ()
    """What only the program it was written for can replace: `input:token`."""


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
    """Variables, and the names of those that were looked up, whether or not they are set."""

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
    """The names of the variables that stand in a text, in their order."""
    return tuple(dict.fromkeys(match["name"] for match in _VARIABLE.finditer(text)))


FILE_NAME = "ullage.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The user's own folders."""

    home: Path
    config: Path
    data: Path
    state: Path | None = None
    """Where approvals of project files are kept; None for `state` below `data`."""
    user: int | None = None
    """Their number, where the platform numbers its users."""

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
        """The URL of the database that is used unless another is named."""
        return f"sqlite:///{(self.data / 'ullage.db').as_posix()}"


def project_folders(directory: Path, home: Path) -> tuple[Path, ...]:
    """The working directory and those above it that belong to the same work, innermost first.

    A folder that is in no repository and not under the home folder stands for itself alone: `/tmp` is everybody's.
    """
    return tuple(map(Path, project_walk(str(directory), str(home))))


def project_files(directory: Path, places: Places) -> Iterator[tuple[Path, bool]]:
    """Each place of a project's file with whether it may be trusted: one further up must not be another user's."""
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
    modified: int
    """In nanoseconds, as is `touched`."""
    touched: int
    size: int
    inode: int


Stamps = Mapping[Path, Stamp | None]
"""None for a file that is not there."""


def stamp_of(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def stamps_of(paths: Iterable[Path]) -> dict[Path, Stamp | None]:
    return {path: stamp_of(path) for path in paths}


def changed(before: Stamps, now: Stamps) -> frozenset[Path]:
    """The files of both that are not what they were."""
    return frozenset(path for path in before.keys() & now.keys() if before[path] != now[path])


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One file as it was read."""

    file: str
    """As shown to people."""
    text: str = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    absolute: Callable[[str], str]
    """A path as the file has it, with `~` or from the file's folder, to the path that is meant."""
    projects: tuple[str, ...] = ()
    """The folders in which work is going on, innermost first: some files have entries for each."""
    expands: bool = True
    """Whether `${VAR}` is replaced. It stays as it is written in a project file that is not approved."""

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
        """About the key at that path of this file."""
        find = toml_line if self.file.endswith(".toml") else json_line
        return Issue(
            severity=severity,
            message=message,
            file=self.file,
            line=find(self.text, path) if path else None,
            key=dotted(path) if path else None,
            server=server,
            suggestion=suggestion,
        )


def dotted(path: Sequence[str]) -> str:
    return ".".join(path)
