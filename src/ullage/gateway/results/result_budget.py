"""Keeps the replies of tool calls within a token budget.

`Budgeted` passes on what fits: a small reply unchanged, JSON tables in their cheapest form, and of a large reply the
most useful head with a last line that states what was left out and how to read it. The whole reply is stored before the
shortened one is sent; if it cannot be stored, the reply is not shortened. `truncate_result` shortens replies.

The definition of `read_result` is written to be short, because every request carries it.
"""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import anyio.to_thread

from ullage.errors import OverBudget
from ullage.options import Handling, ResultRules
from ullage.table import read_pieces
from ullage.tokens import Count, Meter, Method, Steps, drain, patiently
from ullage.tool import Call, Caller, Json, Listing, Origin, Reply, Structured, Tool

from ..merge.tool_view import Entry, MergedSource, MergedWrapper, View
from ..reply_metadata import ACCOUNT, META, Reference, Unwritten, character_limit, shown, weighed
from ..slim.schema_walk import is_small
from ..tool_source import definition_hash, failed, revision_of
from .held_result import Held, Scale, contents, is_recodable
from .result_store import NotStored, Vault

if TYPE_CHECKING:
    from .shape_memory import ShapeMemory

__all__ = ["BUDGET", "READ", "Budgeted"]

_LOADED: dict[str, Json] = {"_meta": {"anthropic/alwaysLoad": True}}
"""Makes Claude Code load the tool at once instead of deferring it, like `find_tool` and `call_tool`. No client shows
this to its model."""

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
"""Key in a call's `meta`: the most tokens that its caller wants back."""
_OWN_BUDGET = "max_tokens"
"""Name of the argument for the budget in Ullage's own tools."""
_LONG = 50_000
"""Bytes above which a reply is handled in a worker thread."""
_DEEPEST = 500
"""Maximum nesting of such a text."""
_LONGEST_COUNTED = 400_000
"""Most characters of a shortened reply that are counted for the ledger; a longer one is estimated."""
_VALUES = 2_000
"""Most values of structured content that are handled on the event loop."""
_BAND = 16
_ERROR = 8_000
"""Most bytes of one of Ullage's own errors that is passed on whole, whatever the budget."""


@dataclass(slots=True, kw_only=True)
class Budgeted(MergedWrapper):
    """Wraps merged sources; keeps every result within a budget."""

    inner: MergedSource
    rules: Callable[[], ResultRules]
    """Called for each request, because the settings may change."""
    vault: Vault
    meter: Meter
    reference: Callable[[Caller], Reference]
    whole: Callable[[], tuple[str, ...]] = tuple[str, ...]
    """Returns the tools, by listed names or patterns, whose results this client gets as their source sent them."""
    shapes: Callable[[], "ShapeMemory | None"] = lambda: None
    """Returns what learns from replies what tools return; None where nothing is to be learnt."""
    _seen: tuple[View, ResultRules, tuple[str, ...], View] | None = field(default=None, repr=False)
    """The last inner view, its rules, the client's whole tools, and the view derived from them."""

    async def tools(self) -> Listing:
        tools = (await self.view()).listing.tools
        return Listing(tools, revision_of(map(definition_hash, tools)))

    async def view(self, wait: float = 0.0) -> View:
        """Return the view, with an `outputSchema` only for tools whose results are never shortened: a shortened
        result would not satisfy it."""
        view, rules, whole = await self.inner.view(wait), self.rules(), self.whole()
        seen = self._seen
        if seen is None or seen[0] is not view or seen[1] is not rules or seen[2] != whole:
            seen = self._seen = view, rules, whole, _promising(view, rules, whole)
        return seen[3]

    async def call_entry(self, entry: Entry, call: Call) -> Reply:
        """Run a call and shorten its result to the budget, storing the whole."""
        if whole := self.whole():
            call = _asking_for_whole(entry, call, whole)
        reply = await self.inner.call_entry(entry, call)
        origin = reply.origin or Origin(entry.server, entry.original)
        is_own = self._is_own(origin.server)
        if not is_own and reply.needs is None and (shapes := self.shapes()) is not None:
            shapes.observe(call.caller.principal, reply, self._definition)
        if reply.needs is not None or (is_own and (origin.tool == READ.name or _is_short_error(reply))):
            return reply
        limit = character_limit(call.caller)
        handling = self.rules().handling(origin, _asked(call, is_own=is_own)).limited(limit)
        if reply.json_lists is not None:
            handling = replace(handling, encode=False)
        if handling.is_for_program and is_own:
            reply = await _with_structure(reply)
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
        if handling.is_for_program and limit is None:
            return await self.vault.aside(lambda: self._refuse(reply, held))
        return await self.vault.aside(lambda: self._cut(reply, settled, held))

    def _is_own(self, server: str) -> bool:
        """Return whether a server is part of Ullage; its tools may take a budget as an argument."""
        return any(member.own and member.name == server for member in self.inner.members)

    async def _definition(self, origin: Origin) -> Tool | None:
        """Return the definition of a server's tool under its own name; None if it is not listed."""
        view = await self.inner.view()
        found = (one for one in view.entries if one.original == origin.tool and one.server == origin.server)
        entry = next(found, None)
        return None if entry is None else replace(entry.tool, name=entry.original)

    def _cut(self, reply: Reply, settled: Reply, held: "_Holding") -> Reply:
        """Store a reply and return what fits of it. Runs in a thread."""
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

    def _refuse(self, reply: Reply, held: "_Holding") -> Reply:
        """Store a whole reply over the user's ceiling, and return an error with its handle: a program could not tell
        a part of it from the whole. Runs in a thread."""
        parts = tuple(content.part for content in drain(contents(reply)))
        origin, ceiling = held.origin, held.handling.budget
        tokens = _whole_weight(reply, [part.text for part in parts], self.meter, held.scale.model)
        how = "Ask for less, or lift `results.ceiling` in the user's ullage.toml."
        try:
            kept = Held(principal=held.principal, server=origin.server, tool=origin.tool, parts=parts)
            handle = self.vault.keep(kept)
            how = f'Read it in parts: read_result(handle="{handle}", …). {how}'
        except NotStored:
            handle = ""
        error = OverBudget(
            f"the whole result has {tokens.tokens:,} tokens, more than the {ceiling:,} that the user allows",
            suggestion=how,
            options=(handle,) if handle else (),
        )
        refused = failed(error)
        meta: dict[str, Json] = {**refused.meta, **({META: {"handle": handle}} if handle else {})}
        return _accounted(replace(refused, origin=origin, meta=meta), tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Holding:
    """The principal, origin and scale that a reply is stored with."""

    principal: str
    origin: Origin
    scale: Scale
    handling: Handling


def _accounted(reply: Reply, baseline: Count) -> Reply:
    """Return the reply with its tokens before shortening, for the ledger."""
    account: dict[str, Json] = {"baseline": baseline.tokens, "method": baseline.method.value}
    return replace(reply, meta={**reply.meta, ACCOUNT: account})


def _whole_weight(reply: Reply, texts: Sequence[str], meter: Meter, model: str) -> Count:
    """Count the tokens of a reply; those of a very long one are estimated from the head of its texts."""
    length = sum(map(len, texts))
    if length <= _LONGEST_COUNTED:
        return drain(weighed(reply, meter, model))
    head = "\n".join(texts)[:_LONGEST_COUNTED]
    tokens = round(meter.count(head, model).tokens * length / len(head))
    return Count(tokens=tokens, method=Method.ESTIMATED, low=tokens * 3 // 4, high=tokens * 5 // 4)


def _is_short_error(reply: Reply) -> bool:
    """Return whether a reply is a short error, which is useless if cut. A long error quotes a database and is
    treated as any other reply."""
    return reply.is_error and (_size(reply) or _ERROR) < _ERROR


def _size(reply: Reply) -> int | None:
    """Return an upper bound of the bytes shown; None if that is not easily known."""
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
    """Return an upper bound of the text's bytes."""
    return len(text) * (1 if text.isascii() else 4)


def _is_small(reply: Reply, size: int, handling: Handling) -> bool:
    """Return whether a reply certainly fits and cannot be shortened.

    No text has more tokens than bytes, but the upper edge of an estimate may exceed that.
    """
    if handling.budget is not None and 2 * size + _BAND > handling.budget:
        return False
    return not handling.encode or not is_recodable(reply)


def _settled(reply: Reply, handling: Handling, scale: Scale) -> Steps[tuple[Reply, bool]]:
    """Return the reply in the form in which it would be passed on whole, and whether it fits."""
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


def _promising(view: View, rules: ResultRules, whole: tuple[str, ...]) -> View:
    entries = tuple(_promised(entry, rules, whole) for entry in view.entries)
    changed = [entry.listed for entry, before in zip(entries, view.entries, strict=True) if entry is not before]
    if not changed:
        return view
    return replace(view, entries=entries, revision=revision_of([view.revision, json.dumps(changed)]))


def _promised(entry: Entry, rules: ResultRules, whole: tuple[str, ...]) -> Entry:
    if entry.tool.output_schema is None or _matches(entry.listed, whole):
        return entry
    if rules.handling(Origin(entry.server, entry.original)).keeps_structure:
        return entry
    return replace(entry, tool=replace(entry.tool, output_schema=None), declared=entry.tool.output_schema)


def _asked(call: Call, *, is_own: bool) -> int | None:
    """Return the caller's own budget: beside the call, or among the arguments of Ullage's own tools."""
    said = [call.meta.get(BUDGET), *([call.arguments.get(_OWN_BUDGET)] if is_own else [])]
    return next((one for one in said if isinstance(one, int) and not isinstance(one, bool) and one >= 0), None)


def _asking_for_whole(entry: Entry, call: Call, whole: tuple[str, ...]) -> Call:
    """Return the call with a budget of 0, where the client gets the tool's results whole and names no budget itself."""
    has_budget = BUDGET in call.meta or _OWN_BUDGET in call.arguments
    return call if has_budget or not _matches(entry.listed, whole) else replace(call, meta={**call.meta, BUDGET: 0})


def _matches(listed: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(listed, pattern) for pattern in patterns)


async def _with_structure(reply: Reply) -> Reply:
    """Return a reply of Ullage's own whose text is a JSON object with that object as structured content, as programs
    read it."""
    text = str(reply.content[0].get("text", "")) if len(reply.content) == 1 else ""
    if reply.structured is not None or reply.is_error or text[:1] != "{":
        return reply
    try:
        value: Json = (
            await anyio.to_thread.run_sync(read_pieces, text, _DEEPEST) if len(text) > _LONG else json.loads(text)
        )
    except (ValueError, RecursionError):
        return reply
    return replace(reply, structured=Structured(value)) if isinstance(value, dict) else reply
