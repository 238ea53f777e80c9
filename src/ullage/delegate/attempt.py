"""One attempt to get an answer from one model.

`attempt` sends one request and streams the answer until it is complete; any earlier failure is a `ProviderFailed` with
its kind. Reading stops at the wire's end marker, and an error after the answer is complete does not lose it. `retry`
decides whether to try again.

`remove_quotations` removes quotations of the request from a provider's error message, and keys: some servers repeat the
key or the prompt in their messages, and neither may be written to logs.

`progress_listener` reports progress at most every half second, and only if something arrived: the number of characters
so far, never the text, which may still be discarded.

`RepeatFilter` removes events that a stream sends twice. Some proxies deliver every event twice, or the whole answer a
second time after the first, which would double its text. Events are compared as they were sent. A stream that repeats a
piece twice in a row is left alone: only one whose events come in pairs from its first event on counts as doubled.

`single_copy` removes further copies of a whole answer. A proxy that asks two servers at once, or retries after a break,
may deliver two copies: one after the other, interleaved event by event, the second some events late, or restarted in
the middle. Copies are recognised by the event that opens an answer, which occurs once in each answer. Ids and times may
differ between copies.
"""

import codecs
import email.utils
import json
import re
import socket
import ssl
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import cast

import anyio
import httpx2

from ullage.messages import Message, Part, Text, Thinking, ToolCall, ToolResult, table_at, tables_at, text_at
from ullage.models import Usage
from ullage.tool import Json, JsonObject, Progress
from ullage.tracing import trace_fields

from .model_call import (
    Completion,
    Event,
    FailureKind,
    Outgoing,
    Provider,
    ProviderFailed,
    Reader,
    ThinkingDelta,
    Timeouts,
)
from .providers import status_error
from .providers.answer_stream import parse_event

__all__ = [
    "Hear",
    "RawEvent",
    "RepeatFilter",
    "SequenceNumbers",
    "attempt",
    "progress_listener",
    "remove_quotations",
    "single_copy",
]

RawEvent = tuple[str | None, str]
"""An event's name, if it has one, and its data."""
_CERTAIN = 2
"""Pairs from the beginning that identify a stream as doubled."""


_NUMBER = re.compile(r'"sequence_number":\s*(\d+)')


@dataclass(slots=True)
class SequenceNumbers:
    """Recognises events that are sent again after a connection was resumed, by their sequence numbers."""

    _seen: dict[str, RawEvent] = field(default_factory=dict[str, RawEvent])
    _are_unique: bool = True
    """Whether no two different events have shared a number; otherwise numbers are ignored."""

    def is_replay(self, identity: str, event: RawEvent) -> bool:
        """Return whether this event has arrived before.

        Args:
            identity: the event's id, or an empty string.
            event: the next event of the stream; its sequence number, if it has one, is used instead of the id.
        """
        numbered = _NUMBER.search(event[1])
        number = numbered[1] if numbered else identity
        if not number or not self._are_unique:
            return False
        if number not in self._seen:
            self._seen[number] = event
            return False
        self._are_unique = self._seen[number] == event
        return self._are_unique


@dataclass(slots=True)
class RepeatFilter:
    """Passes on each event of one stream once."""

    is_over: bool = False
    """Whether the answer has restarted or its end marker has arrived; later events do not belong to it."""
    _first: RawEvent | None = None
    _pairs: int = 0
    _open: RawEvent | None = None
    """The event whose duplicate is expected."""
    _is_single: bool = False
    """Whether an event arrived without a duplicate, so that the stream is not doubled."""
    _held: list[RawEvent] = field(default_factory=list[RawEvent])
    """Events kept until it is clear whether the stream is doubled."""

    def pass_on(self, event: RawEvent, *, is_whole: bool) -> list[RawEvent]:
        """Return the events to read now, in order.

        Args:
            event: the next event of the stream.
            is_whole: whether the answer was already complete; the answer's first event then begins a second copy.
        """
        if self._first is None:
            self._first = self._open = event
            return [event]
        if is_whole and event == self._first:
            self.is_over = True
            return []
        if self._is_single:
            return [event]
        if self._open is None and self._pairs < _CERTAIN and event == self._first:
            # The same event three times or more is a repeated piece, not a doubled stream.
            self._is_single = True
            return [*self.take_held(), event]
        if self._open is None:
            self._open = event
            if self._pairs >= _CERTAIN:
                return [event]
            self._held.append(event)
            return []
        if event == self._open:
            self._pairs, self._open = self._pairs + 1, None
            if self._pairs == 1:
                # One event of the first pair was passed on; its duplicate waits until the next pair decides.
                self._held.append(event)
                return []
            if self._pairs == _CERTAIN:
                self._held.clear()
                return [event]
            return []
        self._is_single = self._pairs < _CERTAIN
        self._open = event
        return [*self.take_held(), event]

    def take_held(self) -> list[RawEvent]:
        """Return the events still kept when the stream ends, and clear them."""
        held, self._held = self._held, []
        return held


_LEAST = 20
"""Minimum length of a quotation in characters; shorter matches are ordinary words."""
_STEP = _LEAST // 2
"""Only pieces of this length at multiples of it are looked up, because every quotation contains at least one."""
_SECRET = 6
"""Minimum length of a secret in characters; shorter ones are not masked."""


def remove_quotations(said: str, messages: Iterable[Message], secrets: Iterable[str | None]) -> str:
    """Return a provider's message with secrets masked and quotations of the request replaced by `…`."""
    for secret in secrets:
        if secret and len(secret) >= _SECRET:
            said = said.replace(secret, "***")
    if len(said) < _LEAST:
        return said
    asked = "\n".join(" ".join(text.split()) for message in messages for text in _texts(message.parts))
    kept: list[str] = []
    done = at = 0
    while at + _STEP <= len(said):
        # The longest stretch around the piece that also occurs in the request.
        start, end = at, at + _STEP
        if said[start:end] in asked:
            while end < len(said) and said[start : end + 1] in asked:
                end += 1
            while start > done and said[start - 1 : end] in asked:
                start -= 1
        else:
            end = at
        if end - start >= _LEAST:
            kept.append(f"{said[done:start]}…")
            done = end
        at = max(at + _STEP, end)
    kept.append(said[done:])
    return "".join(kept)


def _texts(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        match part:
            case Text() | Thinking():
                yield part.text
            case ToolCall():
                yield part.arguments
            case ToolResult():
                yield from _texts(part.parts)
            case _:
                pass


_IDENTITY = re.compile(
    r'"(?:id|responseId|item_id|created|created_at|sequence_number|obfuscation)":\s*(?:"[^"\\]*"|[\d.]+)'
)
"""Fields that may differ between two copies of an event."""
_MARKERS = ('"message_start"', '"response.created"', '"role"')
"""If the first event contains one of these, so do its copies; a quick test that most streams are a single copy."""
_OPENINGS = frozenset({"message_start", "response.created"})


def single_copy(events: Sequence[RawEvent]) -> list[RawEvent] | None:
    """Return the events of one copy in order; None if the stream contains only one."""
    marker = next((one for one in _MARKERS if events and one in events[0][1]), "")
    if sum(marker in data for _, data in events) < 2:
        return None
    keys = [(name, _IDENTITY.sub("", data)) for name, data in events]
    if keys.count(keys[0]) < 2 or not _is_opening(keys, events):
        return None
    kept, places = _first_copy(keys, keep_pace=True)
    if any(place < len(kept) - 1 for place in places):
        kept, places = _first_copy(keys, keep_pace=False)
    if any(place < len(kept) // 2 for place in places):
        # The opening event came again, but its continuation differs from the first one's.
        return None
    # The kept events may come from several copies, and some readers treat another id as another answer.
    without_ids: list[RawEvent] = []
    for number in kept:
        event = events[number]
        said = {key: value for key, value in _read(event).items() if key not in ("id", "responseId")}
        without_ids.append((event[0], json.dumps(said) if said else event[1]))
    return without_ids


def _first_copy(keys: Sequence[RawEvent], *, keep_pace: bool) -> tuple[list[int], list[int]]:
    """Return the indexes of the events that are not repetitions, and how many events of them each further copy matched.

    Args:
        keys: the events, normalised so that copies are equal.
        keep_pace: whether a copy that has caught up with the first continues beside it, as in a stream that sends each
            event twice. Otherwise a copy that began after a break becomes the answer.
    """
    kept, places = list[int](), list[int]()
    for number, key in enumerate(keys):
        copy = next((one for one, at in enumerate(places) if at < len(kept) and keys[kept[at]] == key), None)
        if copy is not None:
            places[copy] += 1
        elif kept and key == keys[0]:
            places.append(1)
        else:
            kept.append(number)
        if not keep_pace:
            places = [at for at in places if at < len(kept)]
    return kept, places


def _is_opening(keys: Sequence[RawEvent], events: Sequence[RawEvent]) -> bool:
    """Return whether the first event can occur only once in an answer."""
    first = _read(events[0])
    if text_at(first, "type") in _OPENINGS:
        return True
    # A server that gives each event an id of its own uses no id twice.
    read = [_read(event) for event in events]
    ids = Counter(found for one in read if (found := text_at(one, "responseId") or text_at(one, "id")) is not None)
    if len(ids) > 1 and min(ids.values()) > 1:
        return True
    following = next((_read(event) for key, event in zip(keys, events, strict=True) if key != keys[0]), None) or first
    if "candidates" in first:
        return table_at(first, "usageMetadata") != table_at(following, "usageMetadata")
    delta = _delta(first)
    return "role" in delta and (not text_at(delta, "content") or "role" not in _delta(following))


def _delta(event: JsonObject) -> JsonObject:
    choices = tables_at(event, "choices")
    return table_at(choices[0], "delta") if choices else {}


def _read(event: RawEvent) -> JsonObject:
    try:
        return parse_event(event[1])
    except ProviderFailed:
        return {}


Hear = Callable[[Event], None]
"""Called with each piece as it arrives, also of answers that are not completed."""

_ERROR_BODY = 64_000
"""Bytes of an error response that are read."""
_EVENT = 32_000_000
"""Maximum bytes of one event: some wires repeat the whole answer in the last one, with images and encrypted reasoning.
"""
_TRAILER = 5.0
"""Seconds to wait for what follows a complete answer, such as its usage, until the end marker."""
_TRAILER_COUNTED = 1.0
"""Seconds to wait for the end marker alone, once the usage has arrived."""
_CLOSING = 0.05
"""Seconds for the server to end the response after the end marker, so that the connection can be reused."""
_KEEP_ALIVES = frozenset({"ping", "keepalive", "keep-alive", "heartbeat"})
"""Names of events without content."""
_EMPTY = frozenset({"", "null"})
"""Data of such events."""
_END = "[DONE]"
_BLANK = codecs.BOM_UTF8 + b" \t\r\n"
"""What may stand before a body; a byte order mark may arrive in pieces."""


async def attempt(
    client: httpx2.AsyncClient, provider: Provider, outgoing: Outgoing, hear: Hear, reader: Reader | None = None
) -> Completion:
    """Send one request and return the answer.

    Args:
        client: sends the request; its own time-outs are not used.
        provider: the provider; its time-outs are longer for a model that is known to reason.
        outgoing: the request.
        hear: called with each piece of the answer as it arrives.
        reader: a new reader of the provider's wire, for a caller that needs the usage reported up to a cancellation.

    Raises:
        ProviderFailed: no complete answer arrived.
    """
    reader, asked, read_events = reader or provider.wire.reader(), anyio.current_time(), list[RawEvent]()
    timeouts = provider.timeouts.for_reasoning() if outgoing.thinks else provider.timeouts
    try:
        try:
            async with _response(client, provider, outgoing, timeouts) as response:
                listening = _Listening(
                    reader=reader,
                    timeouts=timeouts,
                    asked=asked,
                    hear=hear,
                    read_events=read_events,
                    is_reasoning=outgoing.thinks,
                )
                await _listen(response, listening)
        except ProviderFailed:
            # An error after the answer was complete does not affect it.
            if not reader.is_whole:
                raise
        # If the stream contains several copies, one of them is read again.
        answer, single = reader.finish(), single_copy(read_events)
        if single is None:
            return answer
        again = provider.wire.reader()
        try:
            for name, data in single:
                again.feed(name, data)
            return again.finish()
        except ProviderFailed:
            # What follows the end of the first copy is not part of it; without that end, only this answer exists.
            return again.finish() if again.is_whole else answer
    except ProviderFailed as failure:
        failure.usage = reader.so_far()
        secrets = (provider.key, *provider.headers.values())
        failure.message = remove_quotations(failure.message, outgoing.messages, secrets)
        failure.args = (failure.message,)
        raise


@asynccontextmanager
async def _response(
    client: httpx2.AsyncClient, provider: Provider, outgoing: Outgoing, timeouts: Timeouts
) -> AsyncGenerator[httpx2.Response]:
    """Send a request and yield the response when its headers have arrived.

    Raises:
        ProviderFailed: the connection failed, or the response has an error status.
    """
    written = provider.wire.write(outgoing)
    headers = {**{key: str(value) for key, value in written.headers.items()}, **provider.headers}
    if provider.key is not None:
        headers |= provider.wire.authorize(provider.key)
    request = client.build_request(
        "POST",
        provider.base_url.rstrip("/") + written.path,
        headers={**trace_fields(), **headers, "content-type": "application/json", "accept": "text/event-stream"},
        content=json.dumps(written.body, ensure_ascii=False).encode("utf-8", "replace"),
        timeout=httpx2.Timeout(None, connect=provider.timeouts.connect, pool=provider.timeouts.connect),
    )
    with _translate_client_errors("connect"):
        with _within(timeouts.first_byte, "first_byte"):
            response = await client.send(request, stream=True)
        try:
            if response.status_code >= 300:
                with _within(timeouts.idle, "idle"):
                    body = bytearray()
                    async for piece in response.aiter_bytes():
                        body += piece
                        if len(body) > _ERROR_BODY:
                            break
                    raise status_error(response.status_code, _attempt_read(bytes(body)), _retry_after(response.headers))
            yield response
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                await response.aclose()


class _Raw(httpx2.AsyncByteStream):
    """The body of a response as it is sent, which reports each piece, keep-alive comments included, as activity."""

    def __init__(self, body: httpx2.AsyncByteStream, touch: Callable[[], None]) -> None:
        self._body, self._touch = body, touch

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._body:
            self._touch()
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


class _Stream(httpx2.AsyncByteStream):
    """The decoded body of a response as a stream of events.

    Whether it is one is decided by how it begins, because some servers send a wrong media type. A body that begins like
    JSON is kept in `document` instead. An empty line is added at the end of a stream, because some servers send none
    after the last event.
    """

    def __init__(self, response: httpx2.Response, touch: Callable[[], None]) -> None:
        self._response = response
        response.stream = _Raw(cast("httpx2.AsyncByteStream", response.stream), touch)
        self.has_ended = False
        self.document: bytearray | None = None
        """The body so far, if it is a JSON document."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        start = b""
        async for piece in self._response.aiter_bytes():
            if self.document is None and not start:
                start = piece.lstrip(_BLANK)[:1]
                self.document = bytearray() if start in (b"{", b"[") else None
            if self.document is None:
                yield piece
                continue
            self.document += piece
            if len(self.document) > _EVENT:
                raise ProviderFailed("answered with more than can be read", kind="malformed")
        self.has_ended = True
        if self.document is None:
            yield b"\n\n"

    async def aclose(self) -> None:
        await self._response.aclose()


@dataclass(slots=True, kw_only=True)
class _Listening:
    """The events received from one stream, and how long it may be silent."""

    reader: Reader
    timeouts: Timeouts
    asked: float
    hear: Hear
    read_events: list[RawEvent]
    """The events read, in order."""
    is_reasoning: bool = False
    repeats: RepeatFilter = field(default_factory=RepeatFilter)
    numbers: SequenceNumbers = field(default_factory=SequenceNumbers)
    last_content: float | None = None
    """When the last event other than a keep-alive arrived; None before the first."""

    @property
    def is_over(self) -> bool:
        return self.repeats.is_over or self.reader.is_over

    def take(self, event: httpx2.ServerSentEvent) -> None:
        if event.event not in _KEEP_ALIVES and event.data.strip() not in _EMPTY:
            self.last_content = anyio.current_time()
            lines = [line.strip() for line in event.data.split("\n") if line.strip()]
            # Some servers send no empty line between events, so that each line of the data is an event.
            is_joined = all(line == _END or (line[0] == "{" and line[-1] == "}") for line in lines)
            for data in lines if len(lines) > 1 and is_joined else [event.data]:
                came = (event.event, data)
                if not self.is_over and not self.numbers.is_replay(event.id, came):
                    self.read(self.repeats.pass_on(came, is_whole=self.reader.is_whole))

    def read(self, events: Iterable[RawEvent]) -> None:
        for name, data in events:
            if data.strip() == _END:
                self.repeats.is_over = True
                return
            self.read_events.append((name, data))
            for heard in self.reader.feed(name, data):
                if isinstance(heard, ThinkingDelta) and not self.is_reasoning:
                    self.timeouts, self.is_reasoning = self.timeouts.for_reasoning(), True
                self.hear(heard)

    def deadline(self) -> float:
        """Return the time by which further activity must arrive."""
        limits, first = self.timeouts, self.asked + self.timeouts.first_byte
        if self.last_content is not None and self.reader.is_whole:
            # A keep-alive after the answer does not count.
            return self.last_content + (_TRAILER if self.reader.so_far().output is None else _TRAILER_COUNTED)
        wait = limits.first_byte if self.last_content is None else limits.idle
        last = max(first, (self.asked if self.last_content is None else self.last_content) + limits.keep_alive)
        return min(anyio.current_time() + wait, last)

    def silent(self) -> ProviderFailed:
        if self.last_content is None:
            return _silence_error(self.timeouts.first_byte, "first_byte")
        return _silence_error(min(self.timeouts.idle, self.timeouts.keep_alive), "idle")


async def _listen(response: httpx2.Response, listening: _Listening) -> None:
    """Read events until the end marker, the end of the stream, or a time-out.

    Headers alone do not count as the beginning, because many providers send them before the model has reasoned.
    Keep-alives count as activity for `Timeouts.keep_alive` seconds after the last event with content.
    """

    def touch() -> None:
        """Move the deadline. Moving the deadline of one scope is cheaper than a new scope for each event."""
        silence.deadline = listening.deadline()

    stream = _Stream(response, touch)
    # Events are UTF-8 whatever the headers say, and may begin with a byte order mark.
    decoded = httpx2.Response(
        200, headers={"content-type": "text/event-stream"}, stream=stream, request=response.request
    )
    decoded.encoding = "utf-8-sig"
    silence = anyio.CancelScope(deadline=listening.asked + listening.timeouts.first_byte)
    try:
        with _translate_client_errors(), silence:
            await _read_events(httpx2.EventSource(decoded, _EVENT), stream, listening, touch)
        if silence.cancelled_caught:
            raise listening.silent()
        if (
            stream.document is None
            and not listening.read_events
            and response.headers.get("content-type", "").partition(";")[0].strip().lower() != "text/event-stream"
        ):
            raise ProviderFailed("answered with neither a stream of events nor a whole answer", kind="malformed")
    finally:
        if not listening.is_over:
            # Even if the stream broke, the end of the answer may be among the events that wait for their duplicate.
            with suppress(ProviderFailed):
                listening.read(listening.repeats.take_held())
        if stream.document is not None:
            # A provider that does not stream sends one JSON value, or one per line. A complete answer is read even if
            # the response does not end.
            said = _attempt_read(bytes(stream.document))
            if isinstance(said, str):
                lines = [_attempt_read(line.encode()) for line in said.splitlines() if line.strip()]
                said = [line for line in lines if not isinstance(line, str)] if len(lines) > 1 else []
            for one in said if isinstance(said, list) else [said]:
                for heard in listening.reader.feed(None, json.dumps(one)):
                    listening.hear(heard)
    if stream.document is not None and not listening.reader.is_whole:
        raise ProviderFailed("answered with neither a stream of events nor a whole answer", kind="malformed")


async def _read_events(
    source: httpx2.EventSource, stream: _Stream, listening: _Listening, touch: Callable[[], None]
) -> None:
    events = aiter(source)
    async for event in events:
        try:
            listening.take(event)
        except ProviderFailed as failed:
            # Half an event at the end says that the stream is truncated, which `finish` finds out.
            if failed.kind != "malformed" or not stream.has_ended:
                raise
        touch()
        if listening.is_over:
            with anyio.move_on_after(_CLOSING), suppress(httpx2.HTTPError, ProviderFailed):
                async for late in events:
                    # Some servers send the usage after the end marker.
                    if listening.reader.is_whole and listening.reader.so_far() == Usage() and '"usage"' in late.data:
                        listening.reader.feed(late.event, late.data)
            return
    listening.read(listening.repeats.take_held())


def _attempt_read(body: bytes) -> Json:
    try:
        return cast("Json", json.loads(body.removeprefix(codecs.BOM_UTF8)))
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Return the wait in seconds, given in milliseconds, in seconds or as a date; None for an invalid value."""
    exact, plain = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    for said, unit in ((exact, 1000), (plain, 1)):
        with suppress(ValueError):
            return max(0.0, float(said) / unit)
    with suppress(ValueError, OverflowError):
        return max(0.0, email.utils.parsedate_to_datetime(plain).timestamp() - time.time())
    return None


@contextmanager
def _within(seconds: float, kind: FailureKind) -> Generator[None]:
    """Limit a block to some seconds. The block must run to its end, without `return` or `break`."""
    with anyio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise _silence_error(seconds, kind)


def _silence_error(seconds: float, kind: FailureKind) -> ProviderFailed:
    said = "did not begin to answer" if kind == "first_byte" else "said nothing more"
    return ProviderFailed(f"{said} for {seconds:g} seconds", kind=kind)


@contextmanager
def _translate_client_errors(otherwise: FailureKind = "cut") -> Generator[None]:
    """Convert the HTTP client's errors to `ProviderFailed`, without addresses or headers."""
    try:
        yield
    except httpx2.SSEError as error:
        raise ProviderFailed("answered with something other than a stream of events", kind="malformed") from error
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
        said, hint = _unreachable(error)
        raise ProviderFailed(f"cannot be reached{said}", kind="connect", suggestion=hint) from error
    except (httpx2.DecodingError, httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
        hint = "check the provider's `base_url`"
        failed = ProviderFailed(f"cannot be spoken to: {type(error).__name__}", kind="malformed", suggestion=hint)
        failed.was_sent = isinstance(error, httpx2.DecodingError)
        raise failed from error
    except ExceptionGroup as error:
        if error.subgroup(OverflowError) is None:
            raise
        said = "cannot be reached: its port is above 65535"
        raise ProviderFailed(said, kind="connect", suggestion="check the provider's `base_url`") from error
    except httpx2.HTTPError as error:
        failed = ProviderFailed(f"broke the connection: {type(error).__name__}", kind=otherwise)
        # A request that was sent may have been worked on, although no answer arrived.
        failed.was_sent = not isinstance(error, httpx2.WriteError | httpx2.WriteTimeout)
        raise failed from error


def _unreachable(error: BaseException) -> tuple[str, str]:
    """Return why the connection failed (DNS, refused, TLS, or time-out) and what to do about it."""
    chain, seen = list[BaseException](), error
    while seen not in chain:
        chain.append(seen)
        group = cast("tuple[BaseException, ...]", getattr(seen, "exceptions", ()))
        seen = seen.__cause__ or seen.__context__ or (group[0] if group else seen)
    if isinstance(error, httpx2.PoolTimeout):
        return ": no connection was free in time", "make fewer calls at once"
    if any(isinstance(one, socket.gaierror) for one in chain):
        return ": its name has no address (DNS)", "check the host in the provider's `base_url`, and the network"
    for one in chain:
        if isinstance(one, ssl.SSLCertVerificationError):
            why = getattr(one, "verify_message", "") or "not trusted"
            return f": its certificate is not accepted (TLS: {why})", "check the provider's certificate"
        if isinstance(one, ssl.SSLError):
            return (
                ": no encrypted connection (TLS)",
                "check whether the provider's `base_url` begins with http or https",
            )
    if any(isinstance(one, ConnectionRefusedError) for one in chain):
        return ": the connection was refused", "check the provider's port, and whether its server runs"
    if isinstance(error, httpx2.ConnectTimeout) or any(isinstance(one, TimeoutError) for one in chain):
        return ": no connection in time", "check the provider's address, the network, and `connect_timeout`"
    return "", "check the provider's address"


_PAUSE = 0.5


@dataclass(slots=True)
class _CharacterCount:
    characters: int = 0

    def hear(self, event: Event) -> None:
        self.characters += len(event.text)


@asynccontextmanager
async def progress_listener(progress: Progress | None) -> AsyncGenerator[Hear]:
    """Yield a listener that reports progress to the client while an answer arrives."""
    heard = _CharacterCount()
    if progress is None:
        yield heard.hear
        return

    async def report() -> None:
        reported = 0
        while True:
            await anyio.sleep(_PAUSE)
            if heard.characters > reported:
                reported = heard.characters
                await progress(float(reported), None, f"{reported:,} characters")

    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(report)
        try:
            yield heard.hear
        except Exception as error:  # noqa: BLE001 - raised again below: a task group would wrap it
            failure = error
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
