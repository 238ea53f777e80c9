"""What is one client given?

A `Budgeted`, a `Find` and a `Metered` of its own around what all clients share, since what is listed and counted may
differ by its profile. What stands behind them is not known here.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from ullage import __version__
from ullage.config import Settings, approve_command
from ullage.gateway import (
    NAMES,
    Budgeted,
    Cached,
    Find,
    FindSettings,
    Guarded,
    Merge,
    Metered,
    Missing,
    OpenCalls,
    ResultRules,
    Rules,
    Surroundings,
    Underscored,
    Vault,
)
from ullage.ledger import Recorder
from ullage.tool import Caller, Era, ToolSource
from ullage.wire import Identity, Profile

from .background import QUIET, Work
from .counting import meter
from .delegating import DELEGATED
from .fingerprint import fingerprint
from .referring import references
from .retrieving import RETRIEVED
from .searches import Searches
from .surfaces import StoredSurfaces

__all__ = ["LISTED", "OWN", "Kit", "Served", "find_settings"]

OWN = "ullage"
"""What our own tools' server is called among the others, unless one of them is called so."""
LISTED = ("count-tokens", "read_result")
"""Of our own tools, those that are listed unless the settings hide them; the rest are found."""

_LONGEST_PATH = 400


@dataclass(slots=True)
class Served:
    """One client's part of the gateway."""

    find: Find
    profile: Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """What all clients share."""

    merge: Merge
    cached: Cached
    """Around the merge."""
    vault: Vault
    rules: Callable[[], ResultRules]
    recorder: Recorder
    surfaces: StoredSurfaces
    searches: Searches
    spawn: Callable[[Work], None]
    open_calls: OpenCalls
    when_met: Callable[[Era], None]

    def serve(self, settings: Settings, client: str | None, *, is_preview: bool = False) -> Served:
        """A client's part of the gateway. As a preview it is only asked what it lists, and prepares nothing."""
        chosen = settings.gateway_for(client)
        reference = references(meter(), chosen.window)
        around = Surroundings(
            recorder=self.recorder,
            reference=reference,
            memory=self.surfaces,
            forms=self.searches.forms,
            embedders=self.searches.embedders,
            vectors=self.searches.vectors,
            learning=self.searches.learning,
            spawn=None if is_preview else self.spawn,
            quiet=QUIET,
            lister=Caller(principal=OWN, session="lists", client=client, model=chosen.model),
        )
        budgeted = Budgeted(
            inner=Guarded(self.cached),
            rules=self.rules,
            vault=self.vault,
            meter=meter(),
            reference=reference,
            is_own=self._is_own,
        )
        find = Find(budgeted, meter(), find_settings(settings, client), around)
        source: ToolSource = Metered(
            inner=find,
            meter=meter(),
            recorder=self.recorder,
            clock=time.perf_counter,
            reference=reference,
            open_calls=self.open_calls,
        )
        if chosen.underscore_names:
            source = Underscored(inner=source, own=(*LISTED, *DELEGATED, RETRIEVED))
        identity = Identity(
            name="ullage", version=__version__, instructions=lambda: find.instructions(self.merge.known) or None
        )
        return Served(find, Profile(source=source, identity=identity, model=chosen.model, when_met=self.when_met))

    def _is_own(self, server: str) -> bool:
        return any(member.own and member.name == server for member in self.merge.members)


def _listed(own: Rules) -> Rules:
    """The tools that find the others are all that a model sees of them, so they stay listed whatever is to be hidden;
    what is denied is gone."""
    return replace(own, hidden=tuple(name for name in own.hidden if name not in NAMES))


def _pending(path: str) -> Missing:
    reason = "this project file waits for the user's approval; the user reviews and approves it with"
    return Missing(
        server=_plain_text(re.split(r"[/\\]", path)[-1]), reason=reason, command=_plain_text(approve_command(path))
    )


def _plain_text(text: str) -> str:
    """A path as it may stand in a reply: what is not printable is escaped, and it is cut where it is very long."""
    shown = "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)
    return shown if len(shown) <= _LONGEST_PATH else f"{shown[:_LONGEST_PATH]}…"


def find_settings(settings: Settings, client: str | None) -> FindSettings:
    chosen = settings.gateway_for(client)
    return FindSettings(
        mode=chosen.mode,
        direct_below=chosen.direct_below,
        find_budget=chosen.find_budget,
        index=settings.search.index,
        learn=settings.search.learn,
        join_calls=chosen.join_calls,
        start_wait=chosen.start_wait,
        own=_listed(settings.own),
        pending=tuple(_pending(path) for path in settings.pending_files),
        # A name that has no profile decides nothing, so it shares what was decided for everybody.
        key=f"{client if client in settings.clients else ''}:{fingerprint(settings, chosen)}",
        configuration=fingerprint(settings, chosen),
    )
