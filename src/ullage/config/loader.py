"""Loads the settings from flags, variables and files, and watches the files for changes.

The flags, the variables and every file, highest first, joined and checked. Which files those are, `reading` knows.

Then the one that comes with the package holds, and that is said. What is installed is told by whoever calls.

Looks at the files' stamps every so often; no dependency, and it works on every file system. A burst of changes, as
editors make when they save by renaming, is one change: it is told when the files have been still for a moment. A bad
edit keeps the settings as they were.
"""

import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from ullage.errors import BadConfiguration, UnreadableFile, UnsupportedModel
from ullage.models import PLAIN_RULES, shipped
from ullage.options import encoder_lacks

from .config_file import Issue, Places, RecordingEnvironment, Stamps, changed, refusal, stamps_of
from .entries import FILES as POLICY_FILES
from .entries import sample_shop
from .layers import ClientFile, Layer
from .merge_layers import SAMPLE_SOURCE, combine
from .project_trust import PENDING_KEY, PendingFile, Unit
from .read_files import Reading
from .settings import Search, Settings, Token
from .settings_schema import CHOICES, GATEWAY, LEVEL, MONEY, RESULTS, STORE_KEYS, TEXT, Kind

__all__ = ["Flags", "Loaded", "Reload", "Reloading", "examine", "installed", "load", "read_tokens", "review", "watch"]


def installed(search: Search, lacking: Sequence[str], place: str) -> tuple[Search, tuple[Issue, ...]]:
    """How tools can be ranked where an encoder lacks these, and what is to be said; `place` decided it."""
    if search.index != "encoder" or not lacking:
        return search, ()
    missing = " and ".join(f"`{one}`" for one in lacking)
    issue = Issue(
        severity="problem",
        message=f"`search.index` is `encoder`, and {missing} {'are' if len(lacking) > 1 else 'is'} not installed: "
        "tools are ranked by the table that comes with Ullage",
        file=place,
        key="search.index",
        suggestion="pip install 'ullage[encoder]'",
    )
    return replace(search, index="static"), (issue,)


_DELEGATE = {"delegate.log_level": LEVEL, "delegate.cost_alert": MONEY, "delegate.usage_export": TEXT}
"""What only variables say."""


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
    pending: tuple[PendingFile, ...] = ()
    """Project files that the user has not approved, and which do no more than restrict."""
    records: frozenset[Path] = frozenset()
    """Among `stamps`, the files in which approvals are kept."""
    in_use: Mapping[Path, Unit] = field(default_factory=dict[Path, Unit], repr=False)
    """Approved project files as they were used, by identity."""
    variables: frozenset[str] = frozenset()
    """Names of the variables that were looked up, set or not."""
    is_bound_to_folder: bool = False
    """Whether the settings differ from one working folder to another."""
    client_files: Mapping[Path, ClientFile] = field(default_factory=dict[Path, ClientFile], repr=False)
    """What decides in the JSON files of other programs, by path."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Settings files: those that are there and those that may come."""
        return tuple(path for path in self.stamps if path not in self.records)

    @property
    def pending_issues(self) -> tuple[Issue, ...]:
        """What is said of project files that wait for approval, one issue each."""
        return tuple(issue for issue in self.issues if issue.key == PENDING_KEY)

    @property
    def errors(self) -> tuple[Issue, ...]:
        return tuple(issue for issue in self.issues if issue.severity == "error")


def load(flags: Flags, environment: Mapping[str, str], directory: Path, *, places: Places | None = None) -> Loaded:
    """The settings; raises `BadConfiguration` with all that is wrong where they cannot be used."""
    loaded = examine(flags, environment, directory, places=places)
    if loaded.errors:
        raise refusal(loaded.errors)
    return loaded


def examine(  # noqa: PLR0913 - two of them say how much is read
    flags: Flags,
    environment: Mapping[str, str],
    directory: Path,
    *,
    places: Places | None = None,
    before: Loaded | None = None,
    is_review: bool = False,
    replaced: Mapping[Path, bytes] | None = None,
) -> Loaded:
    """The same without raising: for saying what is wrong.

    Args:
        flags: what was said on the command line.
        environment: the variables that settings may name.
        directory: the working folder.
        places: the user's own folders.
        before: what this process uses now. An approved project file that has changed since stays in use as it was.
        is_review: whether pending files are read with everything they include, for a person to review them.
        replaced: contents that are taken in place of those of files of the user's own, to see what they would do.
    """
    environment = RecordingEnvironment(environment)
    reading = Reading(
        environment,
        directory.absolute(),
        places or Places.of_user(),
        in_use={} if before is None else before.in_use,
        is_review=is_review,
        replaced=replaced or {},
    )
    spoken = list(_spoken(flags, environment))
    files = list(reading.layers(_named_file(flags, environment), flags.include))
    # Last, so that a database of one's own comes before it, and one that is called `shop` in place of it.
    sample = [Layer(source=SAMPLE_SOURCE, databases={"shop": sample_shop()})] if flags.sample else []
    layers = [*spoken, *files, *sample]
    today = datetime.now(UTC).date()
    combined = combine(layers, store=reading.places.store, sample=reading.places.sample, today=today)
    unknown = _unknown_models(combined.settings, combined.why)
    search, lost = installed(combined.settings.search, encoder_lacks(), combined.why["search.index"])
    return Loaded(
        settings=replace(
            combined.settings, search=search, pending_files=tuple(str(one.path) for one in reading.pending)
        ),
        issues=(*combined.issues, *reading.issues, *unknown, *lost),
        stamps=reading.stamps,
        why=combined.why,
        unread=tuple(reading.unread),
        pending=tuple(reading.pending),
        records=frozenset(reading.records),
        in_use=reading.used,
        variables=frozenset(environment.consulted),
        client_files=reading.client_files,
        is_bound_to_folder="workspaceFolder" in environment.consulted
        or any(layer.is_bound_to_folder for layer in files),
    )


def review(path: Path, environment: Mapping[str, str], directory: Path, *, places: Places | None = None) -> PendingFile:
    """A project file with what it would do, for a person to approve it.

    Raises:
        UnreadableFile: there is no such file, or it cannot be read.
    """
    folder = directory.absolute() / path
    if folder.name in POLICY_FILES and not folder.is_dir():
        folder = folder.parent
    reading = Reading(environment, directory.absolute(), places or Places.of_user())
    found = reading.review(folder)
    if found is None:
        why = "; ".join(issue.sentence() for issue in reading.issues) or f"`{path}` is not there"
        raise UnreadableFile(
            why, suggestion="name an ullage.toml, an MCP file, or a folder with models.json and policies.json"
        )
    return found


def _named_file(flags: Flags, environment: Mapping[str, str]) -> Path | None:
    named = environment.get("ULLAGE_CONFIG")
    return flags.config or (Path(named) if named else None)


def _spoken(flags: Flags, environment: Mapping[str, str]) -> Iterator[Layer]:
    """What flags and variables say, one layer each."""
    tables = {"gateway": GATEWAY, "results": RESULTS, "store": STORE_KEYS}
    kinds = {f"{table}.{key.name}": key.kind for table, keys in tables.items() for key in keys} | _DELEGATE
    said = (
        ("--store", "store.url", flags.store),
        ("--model", "gateway.model", flags.model),
        ("--mode", "gateway.mode", flags.mode),
        ("ULLAGE_STORE", "store.url", environment.get("ULLAGE_STORE") or None),
        ("ULLAGE_MODEL", "gateway.model", environment.get("ULLAGE_MODEL") or None),
        ("ULLAGE_MODE", "gateway.mode", environment.get("ULLAGE_MODE") or None),
        ("ULLAGE_BUDGET", "results.budget", environment.get("ULLAGE_BUDGET") or None),
        ("ORCH_LOG_LEVEL", "delegate.log_level", environment.get("ORCH_LOG_LEVEL") or None),
        ("ORCH_COST_ALERT_USD", "delegate.cost_alert", environment.get("ORCH_COST_ALERT_USD") or None),
        ("ORCH_USAGE_EXPORT", "delegate.usage_export", environment.get("ORCH_USAGE_EXPORT") or None),
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
    if kind.nature != "a number" or not re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text, re.ASCII):
        return text
    return float(text) if "." in text else int(text)


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


_LONGEST_BURST = 20
"""So many moments a file may go on changing before it is told anyhow."""


async def watch(seen: Stamps, *, interval: float = 1.0, settle: float = 0.2) -> AsyncGenerator[frozenset[Path], None]:
    """The files that changed since they were `seen`, each time some have: edited, replaced, created or deleted."""
    while True:
        found, seen = await _next(seen, interval, settle)
        yield found


async def _next(seen: Stamps, interval: float, settle: float) -> tuple[frozenset[Path], Stamps]:
    """What changes next, and the stamps after it."""
    while True:
        await anyio.sleep(interval)
        now = await _still(seen, settle)
        found = changed(seen, now)
        if found:
            return found, now
        seen = now


async def _still(seen: Stamps, settle: float) -> Stamps:
    """The stamps once they stop changing."""
    now = await _look(seen)
    for _ in range(_LONGEST_BURST if changed(seen, now) else 0):
        await anyio.sleep(settle)
        later = await _look(seen)
        if not changed(now, later):
            break
        now = later
    return now


async def _look(files: Stamps) -> Stamps:
    return await anyio.to_thread.run_sync(partial(stamps_of, tuple(files)), abandon_on_cancel=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload:
    """What came of a change that matters."""

    loaded: Loaded
    """The settings in force from now on: the new ones, or the old where `refused`."""
    refused: tuple[Issue, ...] = ()
    """Why the change was not taken over; empty where it was."""


@dataclass(slots=True, kw_only=True)
class Reloading:
    """Keeps settings up to date. Iterate `changes()` once, and read `loaded` at any time."""

    loaded: Loaded
    again: Callable[[Loaded], Loaded]
    """Reads everything anew without raising, given what is in use now; runs in a thread."""
    interval: float = 1.0
    settle: float = 0.2
    _refused: tuple[Issue, ...] = field(default=(), init=False)

    async def changes(self) -> AsyncGenerator[Reload, None]:
        """Each change that matters. A refusal is told once, however often the file is saved with the same fault."""
        seen = self.loaded.stamps
        while True:
            await _next(seen, self.interval, self.settle)
            try:
                fresh = await anyio.to_thread.run_sync(self.again, self.loaded, abandon_on_cancel=True)
            except Exception as error:  # noqa: BLE001 - a file that breaks a reader must not end the watching
                seen = await _look(seen)
                refused = (Issue(severity="error", message=f"the settings cannot be read: {type(error).__name__}"),)
                before, self._refused = self._refused, refused
                told = None if refused == before else Reload(loaded=self.loaded, refused=refused)
            else:
                seen = fresh.stamps
                told = self._taken(fresh)
            if told is not None:
                yield told

    def _taken(self, fresh: Loaded) -> Reload | None:
        # Errors, and files of other programs that nobody could read just now: their servers must not vanish
        # for a typo.
        unread = (issue for issue in fresh.issues if issue.severity == "problem" and issue.file in fresh.unread)
        refused = (*fresh.errors, *unread)
        before, self._refused = self._refused, refused
        if refused:
            return None if refused == before else Reload(loaded=self.loaded, refused=refused)
        is_new = fresh.settings != self.loaded.settings
        self.loaded = fresh
        return Reload(loaded=fresh) if is_new else None
