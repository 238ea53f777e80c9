"""Loads the settings from flags, variables and files, and watches the files for changes.

Flags, variables and every file are joined, highest precedence first, and checked. `read_files` decides which files are
read. If an encoder is configured but not installed, the static table that comes with the package is used and a
problem is reported; the caller passes what is missing.

`watch` compares the files' stamps at intervals: it needs no dependency and works on every file system. A burst of
changes, as made by editors that save by renaming, is reported as one change, once the files have been unchanged for a
moment. After an invalid edit the previous settings stay in force.
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

from .config_file import Issue, Places, RecordingEnvironment, Stamps, find_changed_files, refusal, stamps_of
from .entries import FILES as POLICY_FILES
from .entries import sample_shop
from .layers import ClientFile, Layer
from .merge_layers import SAMPLE_SOURCE, combine
from .permissions import Lists, Withheld, fold_server_name, permissions_of
from .project_trust import PENDING_KEY, PendingFile, Unit
from .read_files import Reading
from .setting_definitions import CHOICES, GATEWAY, LEVEL, MONEY, RESULTS, STORE_KEYS, TELEMETRY, TEXT
from .settings import Search, Settings, Token

__all__ = [
    "Flags",
    "Loaded",
    "Reload",
    "Reloading",
    "examine",
    "load",
    "read_tokens",
    "restrict_to_installed",
    "review",
    "watch",
]


def restrict_to_installed(search: Search, lacking: Sequence[str], place: str) -> tuple[Search, tuple[Issue, ...]]:
    """Return the search settings that can be used without the modules in `lacking`, and notes about it. `place` is the
    source of the setting."""
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
"""Settings that only variables can set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """Values of the command line's flags; None for those not given."""

    config: Path | None = None
    """The file read instead of the project's and the user's file."""
    include: tuple[Path, ...] = ()
    """Other programs' files, which precede those that the settings include."""
    store: str | None = field(default=None, repr=False)
    model: str | None = None
    mode: str | None = None
    sample: bool = False
    """Whether to add the sample shop as a source `shop`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The settings together with what was found while loading them: issues, sources of values, and files to watch."""

    settings: Settings
    """The merged settings. If there are errors: the part that could be read, for display only."""
    issues: tuple[Issue, ...]
    stamps: Stamps = field(repr=False)
    """Stamps of every file that was read or looked for, taken just before reading."""
    why: Mapping[str, str]
    """Source of each dotted key (`gateway.mode`, `servers.github`): a flag, a variable, a file, or `default`."""
    unread: tuple[str, ...] = ()
    """Files that exist but could not be parsed."""
    pending: tuple[PendingFile, ...] = ()
    """Project files that the user has not approved and that therefore only restrict."""
    records: frozenset[Path] = frozenset()
    """Among `stamps`, the files in which approvals are kept."""
    in_use: Mapping[Path, Unit] = field(default_factory=dict[Path, Unit], repr=False)
    """Approved project files as they were used, by identity."""
    variables: frozenset[str] = frozenset()
    """Names of the variables that were looked up, whether set or not."""
    is_bound_to_folder: bool = False
    """Whether the settings differ from one working folder to another."""
    client_files: Mapping[Path, ClientFile] = field(default_factory=dict[Path, ClientFile], repr=False)
    """The relevant parts of other programs' JSON files, by path."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Settings files: those that exist and those that may be created later."""
        return tuple(path for path in self.stamps if path not in self.records)

    @property
    def pending_issues(self) -> tuple[Issue, ...]:
        """One issue for each project file that waits for approval."""
        return tuple(issue for issue in self.issues if issue.key == PENDING_KEY)

    @property
    def errors(self) -> tuple[Issue, ...]:
        return tuple(issue for issue in self.issues if issue.severity == "error")


ClientRules = Mapping[str, Sequence[str]]
"""Rules about tools on the command line of a client, under `deny` and `ask`."""


def load(
    flags: Flags,
    environment: Mapping[str, str],
    directory: Path,
    *,
    places: Places | None = None,
    client_rules: ClientRules | None = None,
) -> Loaded:
    """Load the settings.

    Args:
        flags: Values of the command line's flags.
        environment: The variables that settings may name.
        directory: The working folder.
        places: The user's own folders; None for those of the platform.
        client_rules: Restrictions of the run of a client that this process serves.

    Raises:
        BadConfiguration: The settings cannot be used; the error lists everything that is wrong.
    """
    loaded = examine(flags, environment, directory, places=places, client_rules=client_rules)
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
    client_rules: ClientRules | None = None,
) -> Loaded:
    """Load the settings without raising, to report what is wrong.

    Args:
        flags: Values of the command line's flags.
        environment: The variables that settings may name.
        directory: The working folder.
        places: The user's own folders.
        before: The settings in use by this process. An approved project file that changed since keeps its old content.
        is_review: Whether pending files are read with everything they include, for a person to review them.
        replaced: Contents used in place of the user's own files, to see their effect.
        client_rules: Restrictions of the run of a client that this process serves.
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
    spoken = list(_flag_layers(flags, environment))
    named = environment.get("ULLAGE_CONFIG")
    named_file = flags.config or (Path(named) if named else None)
    files = list(reading.layers(named_file, flags.include))
    # Last, so that a configured database precedes it, and one that is called `shop` replaces it.
    sample = [Layer(source=SAMPLE_SOURCE, databases={"shop": sample_shop()})] if flags.sample else []
    ruled = [] if client_rules is None else [_client_rules_layer(client_rules, files)]
    layers = [*spoken, *ruled, *files, *sample]
    today = datetime.now(UTC).date()
    combined = combine(layers, store=reading.places.store, sample=reading.places.sample, today=today)
    unknown = _unknown_models(combined.settings, combined.why)
    search, lost = restrict_to_installed(combined.settings.search, encoder_lacks(), combined.why["search.index"])
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
    """Read a project file with its effects, for a person to approve it.

    Raises:
        UnreadableFile: The file does not exist or cannot be read.
    """
    folder = directory.absolute() / path
    if folder.name in POLICY_FILES and not folder.is_dir():
        folder = folder.parent
    reading = Reading(environment, directory.absolute(), places or Places.of_user())
    found = reading.review(folder)
    if found is None:
        why = "; ".join(issue.sentence() for issue in reading.issues) or f"`{path}` does not exist"
        raise UnreadableFile(
            why, suggestion="name an ullage.toml, an MCP file, or a folder with models.json and policies.json"
        )
    return found


def _flag_layers(flags: Flags, environment: Mapping[str, str]) -> Iterator[Layer]:
    """Yield the layers of flags and variables, one each."""
    tables = {"gateway": GATEWAY, "results": RESULTS, "store": STORE_KEYS, "telemetry": TELEMETRY}
    kinds = {f"{table}.{key.name}": key.kind for table, keys in tables.items() for key in keys} | _DELEGATE
    said = (
        ("--store", "store.url", flags.store),
        ("--model", "gateway.model", flags.model),
        ("--mode", "gateway.mode", flags.mode),
        ("ULLAGE_STORE", "store.url", environment.get("ULLAGE_STORE") or None),
        ("ULLAGE_MODEL", "gateway.model", environment.get("ULLAGE_MODEL") or None),
        ("ULLAGE_MODE", "gateway.mode", environment.get("ULLAGE_MODE") or None),
        ("ULLAGE_BUDGET", "results.budget", environment.get("ULLAGE_BUDGET") or None),
        ("ULLAGE_TELEMETRY", "telemetry.endpoint", environment.get("ULLAGE_TELEMETRY") or None),
        ("ORCH_LOG_LEVEL", "delegate.log_level", environment.get("ORCH_LOG_LEVEL") or None),
        ("ORCH_COST_ALERT_USD", "delegate.cost_alert", environment.get("ORCH_COST_ALERT_USD") or None),
        ("ORCH_USAGE_EXPORT", "delegate.usage_export", environment.get("ORCH_USAGE_EXPORT") or None),
    )
    for source, key, value in said:
        if value is None:
            continue
        kind = kinds[key]
        if kind.nature != "a number" or not re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", value, re.ASCII):
            text_value = value
        else:
            text_value = float(value) if "." in value else int(value)
        read = kind.read(text_value)
        if read is None:
            message, options = f"`{source}` must be {kind.wanted}", CHOICES.get(kind.wanted, ())
            yield Layer(source=source, issues=(Issue(severity="error", message=message, key=key, options=options),))
        else:
            yield Layer(source=source, values={key: read})


CLIENT_COMMAND = "the client's command line"
_RENAMED = re.compile(r"-(?:claude|qwen)(?:-[0-9]+)?$")
"""What `ullage install` adds to the name of a server where another one has its name."""


def _client_rules_layer(rules: ClientRules, files: Sequence[Layer]) -> Layer:
    """Return the layer of rules that apply to one run of a client. It can only restrict."""
    named = {name for layer in files for name in layer.servers if _RENAMED.search(name)}
    permissions = permissions_of(Lists({"permissions": rules}), ())
    called = {name: frozenset({fold_server_name(_RENAMED.sub("", name))}) for name in named}
    return Layer(
        source=CLIENT_COMMAND,
        is_foreign=True,
        is_project=True,
        is_pending=True,
        withheld=Withheld(called=called, permissions=permissions),
    )


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
    """Return the bearer tokens by name, for serving over HTTP.

    Raises:
        BadConfiguration: A token is not set, not readable, empty, or equal to another one.
    """
    found = dict[str, str]()
    for token in tokens:
        if token.file is None:
            value = environment.get(token.env or "", "").strip()
        else:
            try:
                value = Path(token.file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError):
                value = ""
        if not value or value in found.values():
            place = f"the variable `{token.env}`" if token.env else f"the file `{token.file}`"
            fault = "is another token's as well" if value else "is not set, not readable or empty"
            raise BadConfiguration(f"the bearer token `{token.name}`: {place} {fault}")
        found[token.name] = value
    return found


_LONGEST_BURST = 20
"""Number of `settle` intervals for which files may keep changing before the change is reported anyway."""


async def watch(seen: Stamps, *, interval: float = 1.0, settle: float = 0.2) -> AsyncGenerator[frozenset[Path], None]:
    """Yield the files that changed since the stamps in `seen`, each time some have been edited, replaced, created or
    deleted."""
    while True:
        found, seen = await _next(seen, interval, settle)
        yield found


async def _next(seen: Stamps, interval: float, settle: float) -> tuple[frozenset[Path], Stamps]:
    """Wait for the next change; return the changed files and the stamps after it."""
    while True:
        await anyio.sleep(interval)
        now = await _look(seen)
        # Wait until the files stop changing.
        for _ in range(_LONGEST_BURST if find_changed_files(seen, now) else 0):
            await anyio.sleep(settle)
            later = await _look(seen)
            if not find_changed_files(now, later):
                break
            now = later
        found = find_changed_files(seen, now)
        if found:
            return found, now
        seen = now


async def _look(files: Stamps) -> Stamps:
    return await anyio.to_thread.run_sync(partial(stamps_of, tuple(files)), abandon_on_cancel=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload:
    """The outcome of a relevant change."""

    loaded: Loaded
    """The settings in force from now on: the new ones, or the old ones if `refused` is set."""
    refused: tuple[Issue, ...] = ()
    """Why the change was rejected; empty if it was not."""


@dataclass(slots=True, kw_only=True)
class Reloading:
    """Keeps settings up to date. Iterate `changes()` once, and read `loaded` at any time."""

    loaded: Loaded
    again: Callable[[Loaded], Loaded]
    """Reads all settings again without raising, given those in use now; runs in a thread."""
    interval: float = 1.0
    settle: float = 0.2
    _refused: tuple[Issue, ...] = field(default=(), init=False)

    async def changes(self) -> AsyncGenerator[Reload, None]:
        """Yield each relevant change. A rejection is reported once, however often the file is saved with the same
        error."""
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
                told = self._make_reload(fresh)
            if told is not None:
                yield told

    def _make_reload(self, fresh: Loaded) -> Reload | None:
        # Reject errors, and files of other programs that cannot be read at the moment: their servers must not vanish
        # because of a typing error.
        unread = (issue for issue in fresh.issues if issue.severity == "problem" and issue.file in fresh.unread)
        refused = (*fresh.errors, *unread)
        before, self._refused = self._refused, refused
        if refused:
            return None if refused == before else Reload(loaded=self.loaded, refused=refused)
        is_new = fresh.settings != self.loaded.settings
        self.loaded = fresh
        return Reload(loaded=fresh) if is_new else None
