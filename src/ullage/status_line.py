"""Print one line for a program's status line: window, session cost, today's cost, tokens saved.

Reads Claude Code's status-line JSON from standard input; without it, only today is shown. Figures come from the ledger;
at most once a minute, the logs are imported into it in the background.
"""

import json
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["print_status_line"]

_DAY, _READ_EVERY = 86_400, 60
_MODEL_KIND = 5
"""Place of model calls among `ullage.ledger.rows.KINDS`, which would take too long to import."""
_PICO = 1e-12
_LARGEST = 1e9


def print_status_line(store: str | None = None, *, as_json: bool = False) -> None:
    """Print the line.

    Args:
        store: The store with the ledger; None for the settings' own.
        as_json: Print the figures instead.
    """
    given = _given()
    session = given.get("session_id")
    # No store has a lone surrogate.
    session = session.encode("utf-8", "replace").decode("utf-8") if isinstance(session, str) else None
    figures = _figures(store, session)
    _read_logs_aside(store)
    logged = figures.pop("loggedSessionDollars", None)
    said = _number(given, "cost", "total_cost_usd")
    found: dict[str, Any] = {
        "windowPercent": _window(given),
        "sessionDollars": logged if said is None else said,
        **figures,
    }
    sys.stdout.write((json.dumps(found) if as_json else _line(given, found)) + "\n")


def _given() -> "dict[str, Any]":
    """Return the data that the program writes to standard input; empty if there is none."""
    if sys.stdin is None or sys.stdin.isatty() or not select.select([sys.stdin], [], [], 0.05)[0]:
        return {}
    try:
        value = json.loads(sys.stdin.buffer.read())
    except (ValueError, OSError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _number(given: "dict[str, Any]", *path: str) -> float | None:
    value: Any = given
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    # Values that cannot be a figure of a session are not shown.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LARGEST:
        return None
    return float(value)


def _window(given: "dict[str, Any]") -> float | None:
    """Return the percentage used, as given by the program, else computed from its tokens and window size."""
    said = _number(given, "context_window", "used_percentage")
    if said is not None:
        return said
    size = _number(given, "context_window", "context_window_size")
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    used = [_number(given, "context_window", "current_usage", name) for name in names]
    if not size or used[0] is None:
        return None
    return 100 * sum(one or 0 for one in used) / size


def _figures(store: str | None, session: str | None) -> dict[str, float | int | None]:
    """Return sums of the ledger; empty for a store that cannot be read, because a status line must not fail."""
    import sqlite3
    from contextlib import closing

    local = time.localtime()
    midnight = time.mktime((*local[:3], 0, 0, 0, 0, 0, -1))
    path = _path(store)
    if path is None:
        return _figures_of_server(store, session, midnight)
    quoted = os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    try:
        with closing(sqlite3.connect(f"file:{quoted}?mode=ro", uri=True, timeout=0.2)) as database:

            def ask(query: str, values: dict[str, object]) -> "tuple[Any, ...]":
                return database.execute(query, values).fetchone()

            return _summed(ask, session, midnight)
    except (sqlite3.Error, OSError):
        return {}


def _summed(
    ask: "Callable[[str, dict[str, object]], Any]", session: str | None, midnight: float
) -> dict[str, float | int | None]:
    spent = ask("SELECT SUM(picodollars), COUNT(*) FROM ullage_model_calls WHERE time >= :since", {"since": midnight})
    saved = ask("SELECT SUM(saved) FROM ullage_entries WHERE time >= :since", {"since": midnight})
    found: dict[str, float | int | None] = {
        "todayDollars": float(spent[0]) * _PICO if spent[0] is not None else (0.0 if not spent[1] else None),
        "todaySavedTokens": int(saved[0] or 0),
    }
    if session is not None:
        # From the sums by session: a session's calls themselves are not found by an index.
        mine = ask(
            "SELECT SUM(picodollars), SUM(entries - unpriced) FROM ullage_session_hours WHERE kind = :kind "
            "AND session IN (SELECT id FROM ullage_sessions WHERE session = :session)",
            {"session": session, "kind": _MODEL_KIND},
        )
        found["loggedSessionDollars"] = float(mine[0]) * _PICO if mine[1] else None
    return found


def _read_logs_aside(store: str | None) -> None:
    """Start `ullage usage` in the background to import the logs, if the last import began over a minute ago."""
    path = _path(store)
    if path is None or sys.platform == "win32":
        return
    mark = f"{path}.logs-read"
    try:
        if time.time() - os.stat(mark).st_mtime < _READ_EVERY:
            return
    except OSError:
        pass
    try:
        os.makedirs(os.path.dirname(os.path.abspath(mark)), mode=0o700, exist_ok=True)
        os.close(os.open(mark, os.O_CREAT | os.O_WRONLY, 0o600))
        os.utime(mark)
        nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        url = f"sqlite:///{os.path.abspath(path)}"
        # `-P`: the working folder may be a stranger's repository with a module of one of our names.
        words = [sys.executable, "-P", "-m", "ullage", "usage", "--json", "--since", "today", "--store", url]
        os.posix_spawn(sys.executable, words, os.environ, file_actions=nowhere, setsid=True)
    except (OSError, NotImplementedError):
        return


def _path(store: str | None) -> str | None:
    """Return the store's file; None where it is no file. Settings are read only if no variable or flag names it."""
    url = store or os.environ.get("ULLAGE_STORE")
    if not url:
        url = _configured()
    if url.startswith("sqlite:///"):
        return url.removeprefix("sqlite:///")
    return None if "://" in url else url


_UNKNOWN = "unknown://"


def _configured() -> str:
    """Return the store of the user's settings. The file is parsed only if it names one. Settings that cannot be read
    name no store, and the rest of the line is shown."""
    import platformdirs

    config, data = platformdirs.user_config_path("ullage"), platformdirs.user_data_path("ullage")
    file = config / "ullage.toml"
    try:
        text = file.read_text("utf-8")
    except OSError:
        text = ""
    except UnicodeDecodeError:
        return _UNKNOWN
    if "store" in text:
        from pathlib import Path

        from ullage.config import Flags, load
        from ullage.errors import UllageError

        try:
            return load(Flags(), os.environ, Path.cwd()).settings.store
        except UllageError:
            return _UNKNOWN
    return str(data / "ullage.db")


def _figures_of_server(store: str | None, session: str | None, midnight: float) -> dict[str, float | int | None]:
    from pathlib import Path

    from ullage.config import Flags, load
    from ullage.errors import UllageError
    from ullage.store import Database

    try:
        url = store or os.environ.get("ULLAGE_STORE") or load(Flags(), os.environ, Path.cwd()).settings.store
        database = Database.open(url, patience=1.0)
    except UllageError:
        return {}
    try:
        return database.read(
            lambda connection: _summed(lambda query, values: connection.execute(query, values).one(), session, midnight)
        )
    except UllageError:
        return {}
    finally:
        database.close()


def _line(given: "dict[str, Any]", found: "dict[str, Any]") -> str:
    parts = list[str]()
    model = given.get("model")
    name: Any = model.get("display_name") if isinstance(model, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if isinstance(name, str):
        parts.append("".join(letter for letter in name if letter.isprintable())[:24])
    if found["windowPercent"] is not None:
        parts.append(f"{found['windowPercent']:.0f}% of the window")
    if found["sessionDollars"] is not None:
        parts.append(f"${found['sessionDollars']:,.2f} session")
    if found.get("todayDollars") is not None:
        parts.append(f"${found['todayDollars']:,.2f} today")
    if found.get("todaySavedTokens"):
        parts.append(f"{_short(found['todaySavedTokens'])} tokens saved today")
    return " · ".join(parts) if parts else "ullage: nothing recorded yet"


def _short(tokens: int) -> str:
    size = abs(tokens)
    for limit, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if size >= limit:
            return f"{tokens / limit:.1f}{unit}"
    return str(tokens)
