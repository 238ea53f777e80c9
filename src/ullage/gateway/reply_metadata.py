"""Counts the tokens of every reply and writes them to the ledger.

`Metered` adds tokens, time and, for a table, its size to every reply of a tools/call, from any source and also for
failures, and records them. A reply that needs further input is not final and passes unchanged.

The count of a reply is the sum over what a client shows of it: texts by the model's tokenizer, images and sounds by the
rule of the model's maker. `shown` selects it: texts, the texts of resources, and the JSON of every other block, without
parts meant for the client alone. Images and sounds count as media, never as the base64 they are sent in; other binary
content is not shown at all. Clients differ over structured content (some show only that, some never), but it repeats
the text, so it is counted only if there is no content.

A table is recognised in a reply's structured content, else in its only text. Most replies are small and examined at
once; a long JSON text is read in steps, and other large values in a worker thread.

A gateway does not know the client's model. Figures are those of the model configured for the client, else of o200k_base
and a window of 200,000 tokens, and are labelled accordingly.

`OpenCalls` tracks running calls, so that they can finish, or end with an error, when Ullage shuts down.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Final, Literal, TypeVar, cast

import anyio.to_thread

from ullage.errors import Denied, OverBudget, ProtocolError, Refused, ToolChanged, UllageError, Unavailable, UnknownTool
from ullage.ledger import AuditEvent, Entry, Recorder
from ullage.messages import Format, Media, Message, Request
from ullage.models import ModelTable
from ullage.options import FIND_NAMES
from ullage.table import find_table, find_table_in, scan
from ullage.tokens import ZERO, Count, Meter, Method, Steps, patiently
from ullage.tool import Call, Caller, Json, JsonObject, Origin, Reply, SourceWrapper, ToolSource
from ullage.tracing import annotate_span

from .sanitize import sanitized_result
from .slim.schema_walk import is_small
from .tool_source import failed

__all__ = [
    "ACCOUNT",
    "ASSUMED",
    "INEXACT",
    "META",
    "Metered",
    "OpenCalls",
    "Reference",
    "References",
    "Unwritten",
    "character_limit",
    "characters",
    "inner_meta",
    "shown",
    "shutting_down",
    "size_data",
    "table_data",
    "weighed",
]

ResultT = TypeVar("ResultT")


def shutting_down(what: str = "the call had not finished") -> Unavailable:
    """Return the error of a call that was not answered before Ullage shut down."""
    return Unavailable(
        f"Ullage is shutting down, and {what}",
        suggestion="start Ullage again and repeat the call; check first whether it has taken effect already",
    )


class OpenCalls:
    """The running calls of a gateway or of one server.

    A call is ended by cancelling its task. A cancel scope would cost every call more than everything else here.
    """

    def __init__(self) -> None:
        self._running: dict[asyncio.Task[object], int] = {}
        """Tasks, with the number of calls that each is running."""
        self._cancelled: set[asyncio.Task[object]] = set()
        self._is_ended = False
        self.started = 0
        """Number of calls so far."""

    def __len__(self) -> int:
        return sum(self._running.values())

    async def run(self, work: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Run the work.

        Raises:
            Unavailable: `end` was called before it finished.
        """
        if self._is_ended:
            raise shutting_down("takes no further calls")
        task = cast("asyncio.Task[object]", asyncio.current_task())
        self._running[task] = self._running.get(task, 0) + 1
        self.started += 1
        try:
            return await work()
        except asyncio.CancelledError:
            if task not in self._cancelled:
                raise
            raise shutting_down() from None
        finally:
            if self._running[task] > 1:
                self._running[task] -= 1
            else:
                del self._running[task]
            if task in self._cancelled:
                self._cancelled.discard(task)
                task.uncancel()

    def end(self) -> None:
        """End every call that is running and every later one with an error."""
        self._is_ended = True
        for task in self._running:
            if task not in self._cancelled and task.cancel():
                self._cancelled.add(task)


INEXACT = "Actual tokens may vary by LLM tokenizer"
"""Warning on a figure that is not exact for the caller."""
_CHARACTER_LIMITS: Final = {"gemini": 39_000, "gemini-cli": 39_000}
"""Characters of a tool's reply that a client shows whole. Gemini CLI truncates replies over 40,000 characters and
adds text of its own."""


def character_limit(caller: Caller) -> int | None:
    """Return the most characters that a reply to this caller may have; None for no limit."""
    return _CHARACTER_LIMITS.get((caller.client or "").lower().replace("_", "-"))


def characters(text: str) -> int:
    """Return the length of a text in UTF-16 units, as JavaScript measures it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The model that a caller's figures are counted for."""

    model: str | None
    """The model's id; None if none is configured."""
    counted_as: str
    """The model name passed to the meter."""
    label: str
    """Label of the figures: the model's id, or the vocabulary assumed."""
    window: int
    exact: bool
    """Whether it is the caller's own model. Whether a count is exact for that model is a property of the count."""


ASSUMED: Final = Reference(model=None, counted_as="gpt-4o", label="o200k_base", window=200_000, exact=False)
"""Used where no model is configured. The catalogue's token counts use it for all callers."""


@dataclass(frozen=True, slots=True)
class References:
    """The reference of each caller, by the model that the user configured for it."""

    models: ModelTable
    window: int | None = None
    """The window that the user set for every caller; None for each model's own."""
    _made: dict[str | None, Reference] = field(default_factory=dict[str | None, Reference], repr=False)
    """Cache by model; few models are configured."""

    def __call__(self, caller: Caller) -> Reference:
        made = self._made.get(caller.model)
        if made is None:
            model = caller.model
            match = None if model is None else self.models.get(model)
            if model is None or match is None:
                made = self._made[caller.model] = Reference(
                    model=None,
                    counted_as=ASSUMED.counted_as,
                    label=ASSUMED.label,
                    window=self.window or ASSUMED.window,
                    exact=False,
                )
            else:
                window = self.window or match.window or ASSUMED.window
                made = self._made[caller.model] = Reference(
                    model=match.card.id,
                    counted_as=model,
                    label=match.card.id,
                    window=window,
                    exact=not match.is_guess,
                )
        return made


_AT_ONCE = 64_000
"""Characters of text that are read in one step."""
_VALUES, _LETTERS = 2_000, 200_000
"""Most values and characters of structured content that are examined on the event loop."""

_Size = tuple[int, int]
"""Rows and columns."""


async def table_data(reply: Reply) -> dict[str, Json] | None:
    """Return the metadata of a reply that is a table; None for any other reply."""
    if reply.is_error:
        size = None
    elif reply.structured is not None:
        value, text = reply.structured.value, reply.structured.text
        is_short = text is not None and len(text) <= _AT_ONCE
        if is_short or is_small(value, values=_VALUES, letters=_LETTERS):
            found = find_table(value)
        else:
            found = await anyio.to_thread.run_sync(find_table, value)
        size = None if found is None else (found.row_count, found.column_count)
    else:
        text = _only_text(reply)
        if text is None:
            size = None
        elif len(text) > _AT_ONCE and text.lstrip()[:1] in ("[", "{"):
            # By its longest list of objects, where that is most of the text.
            longest = await patiently(scan(text))
            if longest is None or not longest.columns or not longest.is_most_of(text):
                size = None
            else:
                size = longest.count, len(longest.columns)
        else:
            found = (
                find_table_in(text) if len(text) <= _AT_ONCE else await anyio.to_thread.run_sync(find_table_in, text)
            )
            size = None if found is None else (found.row_count, found.column_count)
    return None if size is None else size_data(*size)


def size_data(rows: int, columns: int, *, truncated: bool = False) -> dict[str, Json]:
    """Return the metadata of a table: rows and columns shown, and whether there are more."""
    return {"rowCount": rows, "columnCount": columns, "truncated": truncated}


def _only_text(reply: Reply) -> str | None:
    if len(reply.content) != 1 or reply.content[0].get("type") != "text":
        return None
    text = reply.content[0].get("text")
    return text if isinstance(text, str) else None


_FOR_THE_CLIENT = frozenset({"_meta", "annotations", "icons"})
_BINARY = ("data", "blob")
_SHOWN_VALUES = 1_000
"""Values that are written as JSON in one step."""
_TEXT_STEP = 100_000
"""Characters of a text that are written as JSON in one step."""
_PORTION = 100
"""Members of a long list that are examined in one step."""
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Unwritten:
    """A value that is shown as JSON and may be large."""

    value: Json

    def text(self) -> Steps[str]:
        written: list[str] = []
        for piece in _pieces(self.value):
            written.append(piece)
            yield
        return "".join(written)


def _pieces(value: Json) -> Iterator[str]:
    """Yield the JSON of a value in small pieces."""
    if isinstance(value, list) and not _is_small(value):
        yield from _array(value)
    elif isinstance(value, dict) and not _is_small(value):
        opening = "{"
        for key, inner in value.items():
            yield f"{opening}{_encode(key)}:"
            yield from _pieces(inner)
            opening = ","
        yield "}"
    elif isinstance(value, str) and len(value) > _TEXT_STEP:
        yield '"'
        for start in range(0, len(value), _TEXT_STEP):
            yield _encode(value[start : start + _TEXT_STEP])[1:-1]
        yield '"'
    else:
        yield _encode(value)


def _array(value: list[Json]) -> Iterator[str]:
    opening = "["
    for start in range(0, len(value), _PORTION):
        portion = value[start : start + _PORTION]
        if _is_small(portion):
            yield f"{opening}{_encode(portion)[1:-1]}"
            opening = ","
            continue
        for inner in portion:
            yield opening
            yield from _pieces(inner)
            opening = ","
    yield "]"


def _is_small(value: Json) -> bool:
    left, todo = _SHOWN_VALUES, [value]
    while todo and left >= 0:
        outer = todo.pop()
        if isinstance(outer, dict | list):
            left -= len(outer)
            # Not examined if the number of members alone decides it.
            todo.extend((outer.values() if isinstance(outer, dict) else outer) if left >= 0 else ())
        elif isinstance(outer, str):
            left -= len(outer) // (_TEXT_STEP // _SHOWN_VALUES)
    return left >= 0


def shown(reply: Reply) -> Iterator[str | Media | Unwritten]:
    """Yield the parts of a reply that a client shows."""
    if not reply.content and reply.structured is not None:
        yield Unwritten(reply.structured.value)
    for block in reply.content:
        kind, text, resource = block.get("type"), block.get("text"), block.get("resource")
        if kind == "text" and isinstance(text, str):
            yield text
        elif kind in ("image", "audio"):
            yield _media("image" if kind == "image" else "audio", block, "data")
        elif kind == "resource" and isinstance(resource, dict):
            text, media_type = resource.get("text"), str(resource.get("mimeType"))
            yield str(resource.get("uri", ""))
            if isinstance(text, str):
                yield text
            elif media_type.startswith("image/"):
                yield _media("image", resource, "blob")
        else:
            left_out = _FOR_THE_CLIENT.union(_BINARY if "mimeType" in block else ())
            without_binary = {key: value for key, value in block.items() if key not in left_out}
            yield Unwritten(without_binary)


def _media(kind: Literal["image", "audio"], holder: JsonObject, key: str) -> Media:
    data, media_type = holder.get(key), holder.get("mimeType")
    return Media(
        kind=kind,
        media_type=media_type if isinstance(media_type, str) else None,
        data=data if isinstance(data, str) else None,
    )


_STRIDE = 4_096
"""Characters counted in one step; each block counts as 64 more than it has."""


def weighed(reply: Reply, meter: Meter, model: str) -> Steps[Count]:
    """Count the tokens of a reply in steps."""
    counted, stride = ZERO, 0
    for part in shown(reply):
        if stride > _STRIDE:
            stride = 0
            yield
        if isinstance(part, Media):
            with_media, without = (
                meter.weigh(
                    Request(format=Format.OPENAI_CHAT, model=model, messages=(Message(role="user", parts=parts),))
                )
                for parts in ((part,), ())
            )
            whole, frame = with_media.messages[0], without.messages[0].tokens
            counted += Count(
                tokens=max(0, whole.tokens - frame),
                method=max(whole.method, Method.CALIBRATED, key=list(Method).index),
                low=max(0, whole.low - frame),
                high=max(0, whole.high - frame),
            )
            stride += _STRIDE
        else:
            text = part if isinstance(part, str) else (yield from part.text())
            count = yield from meter.steps(text, model)
            # Most replies are one text, which then needs no sum.
            counted = count if counted is ZERO else counted + count
            stride += len(text) + 64
    return counted


META = "dev.ullage/meta"
ACCOUNT = "dev.ullage/account"
"""Key in a reply's `meta`, for the ledger only and never sent to a client: `baseline` tokens before the budget and
the `method` of their count, or the `server` and `tool` of the stored result that a page was read from."""


_REFUSALS = frozenset({Denied.code, OverBudget.code, Refused.code, ToolChanged.code})
"""Errors that are audited: a call was understood, and not allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metered(SourceWrapper[ToolSource]):
    """Wraps a source; adds tokens and time to every reply and records them."""

    inner: ToolSource
    meter: Meter
    recorder: Recorder
    clock: Callable[[], float]
    """Monotonic seconds, such as `time.perf_counter`."""
    reference: Callable[[Caller], Reference]
    open_calls: OpenCalls = field(default_factory=OpenCalls)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    recorded_elsewhere: frozenset[str] = frozenset({"find_tool"})
    """Tools whose replies, but not failures, are recorded by their own source, with figures not known here."""
    is_budgeted: bool = False
    """Whether a result without `ACCOUNT` passed the budget unchanged."""

    async def call(self, call: Call) -> Reply:
        """Run a call; add tokens and time to its reply and record it."""
        started = self.clock()
        try:
            reply = await self.open_calls.run(partial(self.inner.call, call))
        except (UnknownTool, ProtocolError):
            raise
        except UllageError as error:
            reply = failed(error)
        reply = await sanitized_result(reply)
        if reply.needs is not None:
            return reply
        milliseconds = round((self.clock() - started) * 1000, 3)
        reference = self.reference(call.caller)
        count = await patiently(weighed(reply, self.meter, reference.counted_as))
        meta = await _meta(reply, reference, count, milliseconds)
        if reply.origin is not None:
            annotate_span(ullage__server__name=reply.origin.server, ullage__tool__name=reply.origin.tool)
        annotate_span(ullage__result__tokens=count.tokens, ullage__error__code=reply.error_code)
        if reply.error_code in _REFUSALS:
            caller, origin, named = call.caller, reply.origin, call.arguments.get("tool_name")
            # The tool that `call_tool` was to call; a name, as far as a caller can be believed.
            subject = str(named) if named is not None and call.tool in FIND_NAMES else call.tool
            refusal = AuditEvent(
                time=self.now(),
                kind="refusal",
                principal=caller.principal,
                session=caller.session,
                client=caller.client,
                server=None if origin is None else origin.server,
                subject=subject if origin is None else origin.tool,
                reason=str(reply.error_code),
            )
            self.recorder.audit(refusal)
        if reply.is_error or call.tool not in self.recorded_elsewhere:
            self.recorder.record(self._entry(call, reply, reference, count, milliseconds))
        kept = {key: value for key, value in reply.meta.items() if key != ACCOUNT}
        return reply.changed(meta={**kept, META: meta})

    def _entry(self, call: Call, reply: Reply, reference: Reference, count: Count, milliseconds: float) -> Entry:
        caller, origin, account = call.caller, reply.origin, reply.meta.get(ACCOUNT)
        saved, baseline = None, None
        account = account if isinstance(account, dict) else {}
        if account:
            found = account.get("baseline")
            if isinstance(found, int):
                saved, baseline = found - count.tokens, found
            elif "tool" in account:
                origin = Origin(str(account.get("server")), str(account["tool"]))
                saved = -count.tokens
        return Entry(
            time=self.now(),
            kind="page" if saved is not None and baseline is None else "result",
            principal=caller.principal,
            session=caller.session,
            session_inferred=caller.session_inferred,
            client=caller.client,
            server=None if origin is None else origin.server,
            tool=call.tool if origin is None else origin.tool,
            model=reference.model,
            tokens=count.tokens,
            method=count.method,
            baseline_tokens=baseline,
            saved_tokens=0 if saved is None and self.is_budgeted else saved,
            milliseconds=milliseconds,
            is_error=reply.is_error,
            cached=_was_cached(inner_meta(reply)),
            detail={} if baseline is None else {"baseline_method": str(account.get("method"))},
        )


async def _meta(reply: Reply, reference: Reference, count: Count, milliseconds: float) -> dict[str, Json]:
    """Return the reply's metadata with the figures; of a source's own metadata only `tokens` and `performance` are
    replaced."""
    inner = inner_meta(reply)
    if not {"data", "handle"} & inner.keys() and (data := await table_data(reply)) is not None:
        inner = {**inner, "data": data}
    tokens: dict[str, Json] = {"estimated": count.tokens, "approximationMethod": reference.label}
    if not reference.exact or count.method is not Method.EXACT:
        tokens["warning"] = INEXACT
    performance: dict[str, Json] = {"executionTimeMs": round(milliseconds), "cachedResult": _was_cached(inner)}
    return {**inner, "tokens": tokens, "performance": performance}


def inner_meta(reply: Reply) -> JsonObject:
    """Return a reply's value under `META`; empty if there is none."""
    inner = reply.meta.get(META)
    return inner if isinstance(inner, dict) else {}


def _was_cached(inner: JsonObject) -> bool:
    performance = inner.get("performance")
    return isinstance(performance, Mapping) and performance.get("cachedResult") is True
