"""Which tool is really called through `call_tool`, and may it go through this door?

Finds the tool that is meant, keeps what may change something out of the door for reading, and makes the arguments fit.
A tool that only reads may go through the other door: nobody is harmed, and refusing would cost a round trip. Whether a
call is allowed at all, the inner source decides.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ullage.errors import InvalidArguments, UnknownTool
from ullage.tool import Call, Json, Reply

from ..merge.view import Entry, View
from ..results import BUDGET
from ..step_budget import LimitLog
from .aside import Aside
from .envelope import Spoken, read_call
from .fitting import Fitting
from .index import Hashes
from .settings import FindSettings, Searched
from .tools import CALL, CALL_WRITE, NAMES
from .validate import Checker

__all__ = ["HEALED", "UNCHECKED", "Calling"]

_log = logging.getLogger(__name__)

HEALED = "dev.ullage/healed"
"""In a reply's `meta`: what was mended in the arguments."""
UNCHECKED = "dev.ullage/unchecked"
"""In a reply's `meta`: why the arguments were not checked."""
_BUDGET = "max_tokens"
"""Beside `parameters`: the tokens that the caller wants at most."""


@dataclass(frozen=True, slots=True)
class Calling:
    """Turns calls of `call_tool` into calls of what is meant."""

    inner: Searched
    hashes: Hashes
    checker: Checker
    aside: Aside = field(default_factory=Aside)
    limits: LimitLog = field(default_factory=lambda: LimitLog(_log))

    async def call(self, call: Call, settings: FindSettings) -> Reply:
        spoken = read_call(call.arguments)
        entry, spoken = await self._meant(spoken, settings.start_wait)
        if call.tool == CALL.name and not settings.join_calls and not entry.is_read_only:
            raise _wrong_door(entry)
        spoken, budget = _budgeted(spoken, entry)
        await self.hashes.find([entry.tool])
        fit = await self.aside.fitting(spoken, entry, self.checker, self.hashes.of(entry.tool))
        if fit.unchecked is not None:
            self.limits.warn(entry.listed, f"arguments of `{entry.listed}` are passed on unvalidated: {fit.unchecked}")
        meta = call.meta if budget is None else {**call.meta, BUDGET: budget}
        reply = await self.inner.call(replace(call, tool=entry.listed, arguments=fit.arguments, meta=meta))
        return _noted(reply, fit)

    async def _meant(self, spoken: Spoken, wait: float) -> tuple[Entry, Spoken]:
        view = await self.inner.view()
        try:
            return _found(view, spoken)
        except UnknownTool as error:
            if not view.missing:
                raise _unknown(error) from error
        try:
            return _found(await self.inner.view(wait), spoken)
        except UnknownTool as error:
            raise _unknown(error) from error


def _found(view: View, spoken: Spoken) -> tuple[Entry, Spoken]:
    """By the name as it was said, for tools are called all sorts of things; only then by what it begins with."""
    try:
        return _found_as_said(view, spoken)
    except UnknownTool:
        if spoken.bare == spoken.tool:
            raise
        return _found_as_said(view, replace(spoken, tool=spoken.bare))


def _found_as_said(view: View, spoken: Spoken) -> tuple[Entry, Spoken]:
    try:
        return view.find(spoken.tool, spoken.server), spoken
    except UnknownTool:
        named = _by_full_name(view, spoken)
        if named is None:
            raise
        note = f"no server is called `{spoken.server}`; the tool's name says which"
        return named, replace(spoken, notes=(*spoken.notes, note))


def _by_full_name(view: View, spoken: Spoken) -> Entry | None:
    """The tool that is listed by exactly this name, where the server beside it does not exist and so cannot differ."""
    if spoken.server is None or spoken.server in view.servers:
        return None
    return next((entry for entry in view.entries if entry.listed == spoken.tool), None)


def _budgeted(spoken: Spoken, entry: Entry) -> tuple[Spoken, int | None]:
    """The call without the budget that stood beside it, and that; a tool's own parameter of the name is the tool's."""
    properties, budget = entry.tool.input_schema.get("properties"), spoken.beside.get(_BUDGET)
    is_the_tools = isinstance(properties, dict) and _BUDGET in properties
    if is_the_tools or not isinstance(budget, int) or isinstance(budget, bool):
        return spoken, None
    beside, said = dict(spoken.beside), dict(spoken.said)
    del beside[_BUDGET], said[_BUDGET]
    return replace(spoken, beside=beside, said=said), budget


def _unknown(error: UnknownTool) -> InvalidArguments:
    """`call_tool` itself is known; that its argument names no tool is a failed result, no error of the protocol."""
    return InvalidArguments(error.message, suggestion=error.suggestion, options=error.options)


def _wrong_door(entry: Entry) -> InvalidArguments:
    return InvalidArguments(
        f"`{entry.listed}` is not known to be read-only, and `{CALL.name}` runs only what is",
        suggestion=f"Call it with `{CALL_WRITE.name}` and the same arguments.",
        options=NAMES[2:],
    )


def _noted(reply: Reply, fit: Fitting) -> Reply:
    notes: Mapping[str, Json] = {
        **({HEALED: list[Json](fit.healed)} if fit.healed else {}),
        **({UNCHECKED: fit.unchecked} if fit.unchecked else {}),
    }
    return replace(reply, meta={**reply.meta, **notes}) if notes else reply
