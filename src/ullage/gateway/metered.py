"""What did this answer cost?

`Metered` puts tokens, time and, on a table, its size on every reply of a tools/call, whoever answered and whether or
not it failed, and writes them down. Which tokenizer counts for a caller is `reference`'s matter, what of a reply is
counted `shown`'s, what of it is a table `tabular`'s. A reply that still needs something is no answer and passes as it
is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from ullage.errors import ProtocolError, UllageError, UnknownTool
from ullage.ledger import Entry, Recorder
from ullage.tokens import Count, Meter, Method, patiently
from ullage.tool import Call, Caller, Json, JsonObject, Listing, Reply, ToolSource

from .failed import failed
from .open_calls import OpenCalls
from .passing import Passing
from .reference import INEXACT, Reference
from .sanitize import sanitized_result
from .tabular import table_data
from .weighing import weighed

__all__ = ["META", "Metered", "inner_meta"]

META = "dev.ullage/meta"


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metered(Passing[ToolSource]):
    """A source whose every reply says what it cost."""

    inner: ToolSource
    meter: Meter
    recorder: Recorder
    clock: Callable[[], float]
    """Seconds that only ever grow, such as `time.perf_counter`."""
    reference: Callable[[Caller], Reference]
    open_calls: OpenCalls = field(default_factory=OpenCalls)
    now: Callable[[], datetime] = _now
    recorded_elsewhere: frozenset[str] = frozenset({"find_tool"})
    """Tools whose answers, but not failures, are written down by whoever makes them, with figures not known here."""

    async def tools(self) -> Listing:
        return await self.inner.tools()

    async def call(self, call: Call) -> Reply:
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
        if reply.is_error or call.tool not in self.recorded_elsewhere:
            self.recorder.record(self._entry(call, reply, reference, count, milliseconds))
        return replace(reply, meta={**reply.meta, META: meta})

    def _entry(self, call: Call, reply: Reply, reference: Reference, count: Count, milliseconds: float) -> Entry:
        caller, origin = call.caller, reply.origin
        return Entry(
            time=self.now(),
            kind="result",
            principal=caller.principal,
            session=caller.session,
            session_inferred=caller.session_inferred,
            client=caller.client,
            server=None if origin is None else origin.server,
            tool=call.tool if origin is None else origin.tool,
            model=reference.model,
            tokens=count.tokens,
            method=count.method,
            milliseconds=milliseconds,
            is_error=reply.is_error,
            cached=_was_cached(inner_meta(reply)),
        )


async def _meta(reply: Reply, reference: Reference, count: Count, milliseconds: float) -> dict[str, Json]:
    """What a source put there itself stays, save for the two figures that are known here."""
    inner = inner_meta(reply)
    if not {"data", "handle"} & inner.keys() and (data := await table_data(reply)) is not None:
        inner = {**inner, "data": data}
    tokens: dict[str, Json] = {"estimated": count.tokens, "approximationMethod": reference.label}
    if not reference.exact or count.method is not Method.EXACT:
        tokens["warning"] = INEXACT
    performance: dict[str, Json] = {"executionTimeMs": round(milliseconds), "cachedResult": _was_cached(inner)}
    return {**inner, "tokens": tokens, "performance": performance}


def inner_meta(reply: Reply) -> JsonObject:
    """What a reply says under `META`; empty where that is nothing."""
    inner = reply.meta.get(META)
    return inner if isinstance(inner, dict) else {}


def _was_cached(inner: JsonObject) -> bool:
    performance = inner.get("performance")
    return isinstance(performance, Mapping) and performance.get("cachedResult") is True
