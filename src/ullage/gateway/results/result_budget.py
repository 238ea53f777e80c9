"""Holds the replies of tool calls to a token budget.

`Budgeted` lets through what fits: a small reply as it is, JSON tables in their cheapest form, of a large one the
most useful head with a last line that says what was left out and how to get it. The whole then lies in the vault
before the reply goes out; where it cannot be kept, the reply is not cut. How a reply is cut, `cutting` knows, and
what the user wants, `rules`.

One definition, written to be short: every request carries it. What it does, `reader` knows.
"""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from ullage.options import Handling, ResultRules
from ullage.tokens import Count, Meter, Method, Steps, drain, patiently
from ullage.tool import Call, Caller, Json, Listener, Listing, Origin, Reply, Tool

from ..merge.tool_view import Entry, View
from ..metering import ACCOUNT, Reference, Unwritten, character_limit, shown, weighed
from ..slim.schema_walk import is_small
from ..tool_source import Passing, definition_hash, revision_of
from .held_result import Held, Scale, contents, is_recodable
from .result_store import NotStored, Vault

__all__ = ["BUDGET", "READ", "Budgeted", "Holdable"]

_LOADED: dict[str, Json] = {"_meta": {"anthropic/alwaysLoad": True}}
"""Has Claude Code show it at once, as the tools that find and call. No client shows this to its model."""

READ = Tool(
    name="read_result",
    description=(
        "Read more of a cut result: from offset, by grep (regex), JSON path, or SQL on table `result` and other "
        "handles; sql=schema."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "handle": {"type": "string"},
            "offset": {"type": "integer"},
            "limit": {"type": "integer"},
            "grep": {"type": "string"},
            "path": {"type": "string"},
            "sql": {"type": "string"},
            "max_tokens": {"type": "integer"},
        },
        "required": ["handle"],
    },
    annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
    extra=_LOADED,
)

_log = logging.getLogger(__name__)

BUDGET = "dev.ullage/budget"
"""In a call's `meta`: the tokens that its caller wants at most."""
_OWN_BUDGET = "max_tokens"
"""The same among the arguments of our own tools."""
_LONG = 50_000
"""Bytes above which a reply is handled in a worker thread."""
_LONGEST_COUNTED = 400_000
"""Characters of a cut reply that are counted for the ledger."""
_VALUES = 2_000
"""Of structured content that is handled at once."""
_BAND = 16
_ERROR = 8_000
"""Bytes of an error of ours that is passed on whole, whatever the budget."""


class Holdable(Protocol):
    """What `Guarded` offers, as far as it matters here."""

    async def tools(self) -> Listing: ...

    async def view(self, wait: float = 0.0) -> View: ...

    async def call(self, call: Call) -> Reply: ...

    def watch(self, listener: Listener) -> Callable[[], None]: ...

    async def close(self) -> None: ...


@dataclass(slots=True, kw_only=True)
class Budgeted(Passing[Holdable]):
    """Sources whose every result is held to a budget."""

    inner: Holdable
    rules: Callable[[], ResultRules]
    """Asked each time: the settings may change."""
    vault: Vault
    meter: Meter
    reference: Callable[[Caller], Reference]
    is_own: Callable[[str], bool] = lambda server: server == "ullage"
    """Whether a server is a part of Ullage, whose tools may take a budget among their arguments."""
    _seen: tuple[View, ResultRules, View] | None = field(default=None, repr=False)
    """The last view, and what was made of it by which rules."""

    async def tools(self) -> Listing:
        tools = (await self.view()).listing.tools
        return Listing(tools, revision_of(map(definition_hash, tools)))

    async def view(self, wait: float = 0.0) -> View:
        """With an outputSchema only where a result is passed on as it is: a cut one would not keep what it says."""
        view, rules = await self.inner.view(wait), self.rules()
        if self._seen is None or self._seen[0] is not view or self._seen[1] is not rules:
            self._seen = view, rules, _promising(view, rules)
        return self._seen[2]

    async def call(self, call: Call) -> Reply:
        reply = await self.inner.call(call)
        origin = reply.origin or Origin("", call.tool)
        is_own = self.is_own(origin.server)
        if reply.needs is not None or (is_own and (origin.tool == READ.name or _is_short_error(reply))):
            return reply
        limit = character_limit(call.caller)
        # The caller's own budget: beside the call, or among the arguments where the tool is ours.
        said = [call.meta.get(BUDGET), *([call.arguments.get(_OWN_BUDGET)] if is_own else [])]
        asked = next((one for one in said if isinstance(one, int) and not isinstance(one, bool) and one >= 0), None)
        handling = self.rules().handling(origin, asked).limited(limit)
        if reply.json_lists is not None:
            handling = replace(handling, encode=False)
        size = _size(reply)
        if handling.is_whole or (size is not None and _is_small(reply, size, handling)):
            return reply
        counted_as, budget = self.reference(call.caller).counted_as, handling.budget
        scale = Scale(self.meter, counted_as, budget / limit if budget and limit else 0.0)
        work = _settled(reply, handling, scale)
        is_long = size is None or size > _LONG
        settled, fits = await (self.vault.aside(lambda: drain(work)) if is_long else patiently(work))
        if fits:
            if settled is reply:
                return reply
            return _accounted(settled, await patiently(weighed(reply, self.meter, counted_as)))
        held = _Holding(principal=call.caller.principal, origin=origin, scale=scale, handling=handling)
        return await self.vault.aside(lambda: self._cut(reply, settled, held))

    def watch(self, listener: Listener) -> Callable[[], None]:
        return self.inner.watch(listener)

    async def close(self) -> None:
        await self.inner.close()

    def _cut(self, reply: Reply, settled: Reply, held: "_Holding") -> Reply:
        """In a thread: what fits of a reply that is kept whole from then on."""
        from .truncate_result import cut, cut_json

        found = drain(contents(reply))
        parts = tuple(content.part for content in found)
        origin = held.origin
        try:
            handle = self.vault.keep(
                Held(principal=held.principal, server=origin.server, tool=origin.tool, parts=parts)
            )
        except NotStored:
            _log.warning("a result of `%s` is passed on whole: there is no room to keep it", origin.tool)
            return settled
        baseline = _whole_weight(reply, [part.text for part in parts], self.meter, held.scale.model)
        if reply.json_lists is not None:
            return _accounted(drain(cut_json(reply, handle, held.scale, held.handling.budget or 0)), baseline)
        return _accounted(drain(cut(reply, found, handle, held.scale, held.handling)), baseline)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Holding:
    """For whom, from where and how a reply is held."""

    principal: str
    origin: Origin
    scale: Scale
    handling: Handling


def _accounted(reply: Reply, baseline: Count) -> Reply:
    """The reply with what it weighed before, for the ledger."""
    account: dict[str, Json] = {"baseline": baseline.tokens, "method": baseline.method.value}
    return replace(reply, meta={**reply.meta, ACCOUNT: account})


def _whole_weight(reply: Reply, texts: Sequence[str], meter: Meter, model: str) -> Count:
    """What a reply weighs; of a very long one estimated from the head of its texts."""
    length = sum(map(len, texts))
    if length <= _LONGEST_COUNTED:
        return drain(weighed(reply, meter, model))
    head = "\n".join(texts)[:_LONGEST_COUNTED]
    tokens = round(meter.count(head, model).tokens * length / len(head))
    return Count(tokens=tokens, method=Method.ESTIMATED, low=tokens * 3 // 4, high=tokens * 5 // 4)


def _is_short_error(reply: Reply) -> bool:
    """Half of it would help nobody. A long one quotes what a database said, and is held as any other reply."""
    return reply.is_error and (_size(reply) or _ERROR) < _ERROR


def _size(reply: Reply) -> int | None:
    """Bytes of what is shown, at most; None where that is not plain to see."""
    if reply.structured is not None and not is_small(reply.structured.value, values=_VALUES, letters=_LONG):
        return None
    size = 0
    for part in shown(reply):
        if not isinstance(part, str):
            return None
        size += _bytes(part)
    if reply.content and reply.structured is not None:
        # Some clients show their model this alone.
        size = max(size, _bytes(drain(Unwritten(reply.structured.value).text())))
    return size


def _bytes(text: str) -> int:
    """At most."""
    return len(text) * (1 if text.isascii() else 4)


def _is_small(reply: Reply, size: int, handling: Handling) -> bool:
    """Whether it can neither be too much nor be said shorter. No text has more tokens than bytes; a band may reach
    beyond that."""
    if handling.budget is not None and 2 * size + _BAND > handling.budget:
        return False
    return not handling.encode or not is_recodable(reply)


def _settled(reply: Reply, handling: Handling, scale: Scale) -> Steps[tuple[Reply, bool]]:
    """The reply as it may be passed on whole, and whether it may."""
    from .truncate_result import recoded

    changed = (yield from recoded(reply, scale)) if handling.encode else None
    settled = reply if changed is None else changed
    if handling.budget is None:
        return settled, True
    fits = (yield from scale.within(settled, handling.budget)) is not None
    if fits and settled.content and settled.structured is not None:
        # Some clients show their model this alone.
        fits = (yield from scale.within(Reply(structured=settled.structured), handling.budget)) is not None
    return settled, fits


def _promising(view: View, rules: ResultRules) -> View:
    entries = tuple(map(partial(_promised, rules=rules), view.entries))
    changed = [entry.listed for entry, before in zip(entries, view.entries, strict=True) if entry is not before]
    if not changed:
        return view
    return replace(view, entries=entries, revision=revision_of([view.revision, json.dumps(changed)]))


def _promised(entry: Entry, *, rules: ResultRules) -> Entry:
    if entry.tool.output_schema is None or rules.handling(Origin(entry.server, entry.original)).is_whole:
        return entry
    return replace(entry, tool=replace(entry.tool, output_schema=None))
