"""What becomes of a settings file that is edited while a gateway runs?

What it says is taken over, and whoever runs the gateway is told so, in one line on its log: what was refused and why,
what was left out, and what waits for the next start. No value is repeated, since it may be a secret.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from ullage.config import Issue, Loaded, Reloading, Settings
from ullage.errors import UllageError

__all__ = ["follow", "until_restart"]

_log = logging.getLogger(__name__)

_SETTLED = ("model", "window", "underscore_names")
"""Of a client's profile, what holds from when it connects; the rest is looked up each time."""


async def follow(loaded: Loaded, again: Callable[[Loaded], Loaded], adopt: Callable[[Loaded], Awaitable[None]]) -> None:
    """Has every change that matters adopted, for as long as it runs; `again` reads everything anew."""
    async for change in Reloading(loaded=loaded, again=again).changes():
        if change.refused:
            _log.warning("the settings were changed and not taken over: %s", _sentences(change.refused))
            continue
        try:
            await adopt(change.loaded)
        except UllageError as error:
            _log.warning("the settings were changed and not taken over: %s", error.message)
            continue
        except Exception:  # noqa: BLE001 - whoever is served by what held until now goes on being served
            _log.exception("the settings were changed and not taken over")
            continue
        _report(loaded, change.loaded)
        loaded = change.loaded


def _report(before: Loaded, after: Loaded) -> None:
    """Logs what a change came to. A file that only waits for approval now changed nothing."""
    if replace(before.settings, pending_files=()) == replace(after.settings, pending_files=()):
        fresh = [issue for issue in after.pending_issues if issue not in before.pending_issues]
        for issue in fresh:
            _log.warning("%s", issue.sentence())
        return
    _log.warning("the settings were changed and taken over%s", _reservations(before, after))


def _reservations(before: Loaded, after: Loaded) -> str:
    """What of a change is not as it may have been meant, as the rest of a sentence."""
    late = until_restart(before.settings, after.settings)
    fresh = tuple(issue for issue in after.issues if issue.severity == "problem" and issue not in before.issues)
    parts = [f"from the next start on: {', '.join(late)}"] if late else []
    return "".join(f"; {part}" for part in (*parts, _sentences(fresh)) if part)


def _sentences(issues: tuple[Issue, ...]) -> str:
    return "; ".join(issue.sentence() for issue in issues)


def until_restart(before: Settings, after: Settings) -> tuple[str, ...]:
    """Keys that differ, and that were settled when somebody connected or something was opened."""
    changed = ["store.url"] if before.store != after.store else []
    changed += ["http.tokens"] if before.tokens != after.tokens else []
    kept = ("keep_hours", "keep_megabytes")
    changed += [f"results.{key}" for key in kept if getattr(before.results, key) != getattr(after.results, key)]
    changed += [f"gateway.{key}" for key in _SETTLED if getattr(before.gateway, key) != getattr(after.gateway, key)]
    for name in sorted(before.clients.keys() & after.clients.keys()):
        old, new = before.clients[name], after.clients[name]
        changed += [f"clients.{name}.{key}" for key in _SETTLED if getattr(old, key) != getattr(new, key)]
    return tuple(changed)
