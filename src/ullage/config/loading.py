"""What are the settings, and where did each come from?

Reads the flags, the `ULLAGE_*` variables and every file, highest first, and hands their texts to the readers. This is
the only place of the room where files are opened.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ullage.errors import BadConfiguration, UnsupportedModel
from ullage.models import shipped
from ullage.tokens import PLAIN_RULES

from .codex_toml import read_codex_toml
from .combining import combine
from .issue import Issue, refusal
from .keys import GATEWAY, RESULTS, STORE_KEYS
from .kinds import CHOICES, Kind
from .layer import Layer
from .mcp_json import read_mcp_json
from .page import Page
from .places import Places, project_files, project_folders
from .settings import Settings, Token
from .sources import sample_shop
from .stamp import Stamp, Stamps, stamp_of
from .ullage_toml import read_ullage_toml

__all__ = ["Flags", "Loaded", "examine", "load", "read_tokens"]

_LARGEST = 64 * 1024 * 1024
"""No settings file has more bytes; Claude Code keeps a history in its own, which may have many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What was said on the command line; None for what was not."""

    config: Path | None = None
    """Read instead of the project's and the user's file."""
    include: tuple[Path, ...] = ()
    """Other programs' files, before those that the settings include."""
    store: str | None = field(default=None, repr=False)
    model: str | None = None
    mode: str | None = None
    sample: bool = False
    """Whether the sample shop is to be there as a source `shop`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    settings: Settings
    """Where there are errors: what could be read in spite of them, to be shown and not to be used."""
    issues: tuple[Issue, ...]
    stamps: Stamps = field(repr=False)
    """Every file that was read or looked for, as it was just before."""
    why: Mapping[str, str]
    """Dotted key (`gateway.mode`, `servers.github`) to what decided it: a flag, a variable, a file, `default`."""
    unread: tuple[str, ...] = ()
    """Files that are there but could not be understood."""

    @property
    def files(self) -> tuple[Path, ...]:
        """To be watched: those that are there and those that may come."""
        return tuple(self.stamps)

    @property
    def errors(self) -> tuple[Issue, ...]:
        return tuple(issue for issue in self.issues if issue.severity == "error")


def load(flags: Flags, environment: Mapping[str, str], directory: Path, *, places: Places | None = None) -> Loaded:
    """The settings; raises `BadConfiguration` with all that is wrong where they cannot be used."""
    loaded = examine(flags, environment, directory, places=places)
    if loaded.errors:
        raise refusal(loaded.errors)
    return loaded


def examine(flags: Flags, environment: Mapping[str, str], directory: Path, *, places: Places | None = None) -> Loaded:
    """The same without raising: for saying what is wrong."""
    reading = _Reading(environment, directory.absolute(), places or Places.of_user())
    spoken = list(_spoken(flags, environment))
    own = list(reading.own_files(_named_file(flags, environment)))
    foreign = list(reading.foreign_files(own, flags.include))
    # Last, so that a database of one's own comes before it, and one that is called `shop` in place of it.
    sample = [Layer(source="--sample", databases={"shop": sample_shop()})] if flags.sample else []
    layers = [*spoken, *own, *foreign, *sample]
    combined = combine(layers, store=reading.places.store, sample=reading.places.sample)
    unknown = _unknown_models(combined.settings, combined.why)
    return Loaded(
        settings=combined.settings,
        issues=(*combined.issues, *reading.issues, *unknown),
        stamps=reading.stamps,
        why=combined.why,
        unread=tuple(reading.unread),
    )


def _named_file(flags: Flags, environment: Mapping[str, str]) -> Path | None:
    named = environment.get("ULLAGE_CONFIG")
    return flags.config or (Path(named) if named else None)


def _spoken(flags: Flags, environment: Mapping[str, str]) -> Iterator[Layer]:
    """What flags and variables say, one layer each."""
    tables = {"gateway": GATEWAY, "results": RESULTS, "store": STORE_KEYS}
    kinds = {f"{table}.{key.name}": key.kind for table, keys in tables.items() for key in keys}
    said = (
        ("--store", "store.url", flags.store),
        ("--model", "gateway.model", flags.model),
        ("--mode", "gateway.mode", flags.mode),
        ("ULLAGE_STORE", "store.url", environment.get("ULLAGE_STORE") or None),
        ("ULLAGE_MODEL", "gateway.model", environment.get("ULLAGE_MODEL") or None),
        ("ULLAGE_MODE", "gateway.mode", environment.get("ULLAGE_MODE") or None),
        ("ULLAGE_BUDGET", "results.budget", environment.get("ULLAGE_BUDGET") or None),
    )
    for source, key, value in said:
        if value is None:
            continue
        kind = kinds[key]
        read = kind.read(_meant(value, kind))
        if read is None:
            message, options = f"`{source}` must be {kind.wanted}", CHOICES.get(kind.wanted, ())
            yield Layer(source=source, issues=(Issue(severity="error", message=message, key=key, options=options),))
        else:
            yield Layer(source=source, values={key: read})


def _meant(text: str, kind: Kind) -> object:
    """A flag and a variable are always texts."""
    return int(text) if kind.nature == "a number" and text.isdecimal() else text


def _unknown_models(settings: Settings, why: Mapping[str, str]) -> Iterator[Issue]:
    profiles = {f"clients.{name}": profile.model for name, profile in settings.clients.items()}
    named = {"gateway.model": settings.gateway.model, **profiles}
    for key, model in {key: model for key, model in named.items() if model and model not in PLAIN_RULES}.items():
        try:
            shipped().find(model)
        except UnsupportedModel as error:
            yield Issue(
                severity="error",
                message=error.message,
                file=why[key],
                key=key,
                suggestion=error.suggestion,
                options=error.options,
            )


@dataclass(slots=True)
class _Reading:
    """One pass over the files."""

    environment: Mapping[str, str] = field(repr=False)
    directory: Path
    places: Places
    stamps: dict[Path, Stamp | None] = field(default_factory=dict[Path, "Stamp | None"])
    issues: list[Issue] = field(default_factory=list[Issue])
    unread: list[str] = field(default_factory=list[str])

    def own_files(self, named: Path | None) -> Iterator[Layer]:
        """The one file that was named, or else the project's and the user's."""
        if named is not None:
            path = self._absolute(str(named), self.directory)
            text = self._text(path, severity="error")
            if text is None and stamp_of(path) is None:
                self.issues.append(Issue(severity="error", message="the settings file is not there", file=str(path)))
            yield from self._own(path, text)
            return
        for path in dict.fromkeys((*self._project_file(), self.places.user_file)):
            is_project = path != self.places.user_file
            yield from self._own(path, self._text(path, severity="error"), is_project=is_project)

    def _project_file(self) -> Iterator[Path]:
        """The innermost one that is there and may be trusted."""
        for path, is_trusted in project_files(self.directory, self.places):
            self.stamps[path] = stamp_of(path)
            if not is_trusted:
                said = "belongs to another user and is not read"
                self.issues.append(Issue(severity="problem", message=said, file=str(path)))
            elif self.stamps[path] is not None:
                yield path
                return

    def _own(self, path: Path, text: str | None, *, is_project: bool = False) -> Iterator[Layer]:
        if text is not None:
            layer = read_ullage_toml(self._page(path, text, self.environment))
            yield replace(layer, is_project=is_project)

    def foreign_files(self, own: Sequence[Layer], flagged: Sequence[Path]) -> Iterator[Layer]:
        """What flags and settings include, in their order, each file once."""
        spoken = (self._absolute(str(file), self.directory) for file in flagged)
        named = (self._absolute(entry, Path(layer.source).parent) for layer in own for entry in layer.include)
        for path in dict.fromkeys((*spoken, *named)):
            text = self._text(path, severity="problem")
            if text is not None:
                layer = self._foreign(path, text)
                if layer.is_unread:
                    self.unread.append(str(path))
                yield layer
            elif str(path) not in self.unread:
                self.issues.append(Issue(severity="problem", message="the included file is not there", file=str(path)))

    def _foreign(self, path: Path, text: str) -> Layer:
        folder = path.parent
        workspace = folder.parent if folder.name.startswith(".") else self.directory
        known = {"workspaceFolder": str(workspace), "userHome": str(self.places.home)}
        page = self._page(path, text, {**known, **self.environment})
        return read_codex_toml(page) if path.suffix == ".toml" else read_mcp_json(page)

    def _page(self, path: Path, text: str, environment: Mapping[str, str]) -> Page:
        return Page(
            file=str(path),
            text=text,
            environment=environment,
            absolute=lambda entry: str(self._absolute(entry, path.parent)),
            projects=tuple(str(folder) for folder in project_folders(self.directory, self.places.home)),
        )

    def _absolute(self, entry: str, folder: Path) -> Path:
        if entry == "~" or entry.startswith(("~/", "~\\")):
            return self.places.home / entry[2:]
        return folder / entry

    def _text(self, path: Path, *, severity: str) -> str | None:
        """The file's text; None where there is none, with an issue where there is a file all the same."""
        self.stamps[path] = stamp_of(path)
        if self.stamps[path] is None:
            return None
        try:
            with path.open("rb") as file:
                content = file.read(_LARGEST)
            return content.decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            kind = "error" if severity == "error" else "problem"
            self.issues.append(Issue(severity=kind, message=f"cannot be read: {why}", file=str(path)))
            self.unread.append(str(path))
            return None


def read_tokens(tokens: Sequence[Token], environment: Mapping[str, str]) -> dict[str, str]:
    """The bearer tokens by name, for serving over HTTP; raises `BadConfiguration` for one that is not there."""
    found = dict[str, str]()
    for token in tokens:
        value = _token(token, environment)
        if not value or value in found.values():
            place = f"the variable `{token.env}`" if token.env else f"the file `{token.file}`"
            fault = "is another token's as well" if value else "is not set, not readable or empty"
            raise BadConfiguration(f"the bearer token `{token.name}`: {place} {fault}")
        found[token.name] = value
    return found


def _token(token: Token, environment: Mapping[str, str]) -> str:
    if token.file is None:
        return environment.get(token.env or "", "").strip()
    try:
        return Path(token.file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
