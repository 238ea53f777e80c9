"""One attempt to get an answer from one model.

One request to one model.

The answer is streamed and kept until it is whole; whatever goes wrong before that is a `ProviderFailed` that names its
kind. Reading stops at the wire's end marker, and what breaks after the answer is whole does not lose it. Whether to ask
again is not decided here.

Its reason, and not what it quotes to give it: some servers repeat the key or the prompt in what they say of them, and
an error goes into logs that neither may be in. Stretches that stand in the request are taken out.

Every half second at most, and only where something came: how many characters there are so far. Never the text itself,
which may yet be thrown away.

Removal of events that a stream sends twice.

Some proxies deliver every event twice, or a whole answer a second time behind the first; put together as they come, its
text would be doubled. Events are compared as they were sent. A stream that really says the same piece twice in a row
passes: only one whose events come in pairs from its first event on is a doubled one.

Removal of the second copy from a stream that was sent more than once.

A proxy that asks two servers at once, or asks again after a break, may deliver two copies of one answer: one behind the
other, event by event, the second some events late, or begun anew in the middle. Copies are recognised by the event that
opens an answer, which no answer has twice. Ids and times may differ between copies.
"""

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
from ullage.tool import Json, JsonObject, Progress

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
from .providers import failed_with
from .providers.answer_stream import parsed

__all__ = ["Hear", "Numbers", "RawEvent", "RepeatFilter", "attempt", "single_copy", "telling", "unquoted"]

RawEvent = tuple[str | None, str]
"""An event's name, where it has one, and its data."""
_CERTAIN = 2
"""Pairs from the beginning after which a stream is taken to be doubled."""


_NUMBER = re.compile(r'"sequence_number":\s*(\d+)')


@dataclass(slots=True)
class Numbers:
    """Recognises events that are sent again, after a connection was resumed, by the number that each of them has."""

    _seen: dict[str, RawEvent] = field(default_factory=dict[str, RawEvent])
    _are_unique: bool = True
    """Whether no two different events had one number; others say nothing."""

    def is_replay(self, identity: str, event: RawEvent) -> bool:
        """Whether this very event came before.

        Args:
            identity: the event's id, or an empty text.
            event: the next of the stream. On a wire whose events have sequence numbers, that is its number.
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
    """Whether the answer has begun anew, or its end marker has come: nothing after that belongs to it."""
    _first: RawEvent | None = None
    _pairs: int = 0
    _open: RawEvent | None = None
    """The event whose twin is to come."""
    _is_single: bool = False
    """Whether an event came without its twin, so that the stream is no doubled one."""
    _held: list[RawEvent] = field(default_factory=list[RawEvent])
    """What is not passed on before it is clear whether the stream is doubled."""

    def pass_on(self, event: RawEvent, *, is_whole: bool) -> list[RawEvent]:
        """The events to be read now, in order.

        Args:
            event: the next of the stream.
            is_whole: whether the answer was complete before it; its first event then begins a second copy.
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
            # The same three times and more: a piece that is repeated, not a stream that is doubled.
            self._is_single = True
            return [*self.held_back(), event]
        if self._open is None:
            self._open = event
            if self._pairs >= _CERTAIN:
                return [event]
            self._held.append(event)
            return []
        if event == self._open:
            return self._close_pair(event)
        self._is_single = self._pairs < _CERTAIN
        self._open = event
        return [*self.held_back(), event]

    def _close_pair(self, event: RawEvent) -> list[RawEvent]:
        self._pairs, self._open = self._pairs + 1, None
        if self._pairs == 1:
            # Of the first pair one was passed on; its twin waits until the next pair shows what it is.
            self._held.append(event)
            return []
        if self._pairs == _CERTAIN:
            self._held.clear()
            return [event]
        return []

    def held_back(self) -> list[RawEvent]:
        """What is still held back when the stream ends; nothing is held back after it."""
        held, self._held = self._held, []
        return held


_LEAST = 20
"""Characters in a row that are a quotation; shorter ones are words that anyone may use."""
_STEP = _LEAST // 2
"""A quotation has at least one whole piece of so many, counted from the beginning: only those are looked for."""
_SECRET = 6
"""Characters of a secret; what is shorter hides nothing."""


def unquoted(said: str, messages: Iterable[Message], secrets: Iterable[str | None]) -> str:
    for secret in secrets:
        if secret and len(secret) >= _SECRET:
            said = said.replace(secret, "***")
    if len(said) < _LEAST:
        return said
    asked = "\n".join(" ".join(text.split()) for message in messages for text in _texts(message.parts))
    return "".join(_kept(said, asked))


def _kept(said: str, asked: str) -> Iterator[str]:
    done = at = 0
    while at + _STEP <= len(said):
        start, end = _quotation(said, at, asked, done)
        if end - start >= _LEAST:
            yield f"{said[done:start]}…"
            done = end
        at = max(at + _STEP, end)
    yield said[done:]


def _quotation(said: str, at: int, asked: str, least: int) -> tuple[int, int]:
    """The longest stretch around a piece that stands in the request as well; nothing where the piece does not."""
    start, end = at, at + _STEP
    if said[start:end] not in asked:
        return at, at
    while end < len(said) and said[start : end + 1] in asked:
        end += 1
    while start > least and said[start - 1 : end] in asked:
        start -= 1
    return start, end


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
"""What may differ between two copies of an event."""
_MARKERS = ('"message_start"', '"response.created"', '"role"')
"""Of a first event that has one, its copies have it too; most streams are known by that to be one copy."""
_OPENINGS = frozenset({"message_start", "response.created"})


def single_copy(events: Sequence[RawEvent]) -> list[RawEvent] | None:
    """The events of one copy in their order; None where the stream holds no more than one."""
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
        # The opening came again, and what followed it there does not follow here.
        return None
    # What is kept may be of several copies, and some readers take another id for another answer.
    return [_without_id(events[number]) for number in kept]


def _first_copy(keys: Sequence[RawEvent], *, keep_pace: bool) -> tuple[list[int], list[int]]:
    """The numbers of the events that are no repetition, and how far into them each further copy came.

    Args:
        keys: the events, alike where they are copies of each other.
        keep_pace: whether a copy that has caught up with the first goes on beside it, as in a stream that sends each
            event twice. A copy that began after a break becomes the answer instead.
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
    """Whether an answer can have its first event only once."""
    first = _read(events[0])
    if text_at(first, "type") in _OPENINGS:
        return True
    if _has_several_ids(events):
        return True
    following = next((_read(event) for key, event in zip(keys, events, strict=True) if key != keys[0]), None) or first
    if "candidates" in first:
        return table_at(first, "usageMetadata") != table_at(following, "usageMetadata")
    delta = _delta(first)
    return "role" in delta and (not text_at(delta, "content") or "role" not in _delta(following))


def _has_several_ids(events: Sequence[RawEvent]) -> bool:
    """Whether the events are of two answers or more, by their ids. A server that gives each event an id of its own has
    no id twice."""
    read = [_read(event) for event in events]
    ids = Counter(found for one in read if (found := text_at(one, "responseId") or text_at(one, "id")) is not None)
    return len(ids) > 1 and min(ids.values()) > 1


def _without_id(event: RawEvent) -> RawEvent:
    said = {key: value for key, value in _read(event).items() if key not in ("id", "responseId")}
    return event[0], json.dumps(said) if said else event[1]


def _delta(event: JsonObject) -> JsonObject:
    choices = tables_at(event, "choices")
    return table_at(choices[0], "delta") if choices else {}


def _read(event: RawEvent) -> JsonObject:
    try:
        return parsed(event[1])
    except ProviderFailed:
        return {}


Hear = Callable[[Event], None]
"""Told of each piece as it comes, of answers too that are then not whole."""

_ERROR_BODY = 64_000
"""Bytes of an error's body that are looked at."""
_EVENT = 32_000_000
"""Bytes of one event: some wires repeat the whole answer in their last, pictures and sealed reasoning included."""
_TRAILER = 5.0
"""Seconds for what may follow a whole answer, such as its usage, on wires whose end marker is still to come."""
_TRAILER_COUNTED = 1.0
"""The same where the usage has come, and only the end marker is missing."""
_CLOSING = 0.05
"""Seconds for the server to end the response after the end marker, so that its connection can be used again."""
_KEEP_ALIVES = frozenset({"ping", "keepalive", "keep-alive", "heartbeat"})
"""Names of events that carry nothing."""
_END = "[DONE]"


async def attempt(
    client: httpx2.AsyncClient, provider: Provider, outgoing: Outgoing, hear: Hear, reader: Reader | None = None
) -> Completion:
    """Asks once.

    Args:
        client: sends the request; its own time-outs are not used.
        provider: whom to ask; its time-outs are longer for a model that is known to reason.
        outgoing: the request.
        hear: called with each piece of the answer as it arrives.
        reader: a new reader of the provider's wire, for a caller that wants to know what was reported by the time it
            cancels.

    Raises:
        ProviderFailed: there was no whole answer.
    """
    reader, asked, came = reader or provider.wire.reader(), anyio.current_time(), list[RawEvent]()
    timeouts = provider.timeouts.for_reasoning() if outgoing.thinks else provider.timeouts
    try:
        try:
            async with _response(client, provider, outgoing, timeouts) as response:
                if _media_type(response) == "application/json":
                    await _read_whole(response, reader, timeouts, hear)
                else:
                    listening = _Listening(
                        reader=reader,
                        timeouts=timeouts,
                        asked=asked,
                        hear=hear,
                        came=came,
                        is_reasoning=outgoing.thinks,
                    )
                    await _listen(response, listening)
        except ProviderFailed:
            # Whatever broke after the answer was whole took nothing away from it.
            if not reader.is_whole:
                raise
        return _finish(reader, provider, came)
    except ProviderFailed as failure:
        failure.usage = reader.so_far()
        secrets = (provider.key, *provider.headers.values())
        failure.message = unquoted(failure.message, outgoing.messages, secrets)
        failure.args = (failure.message,)
        raise


def _finish(reader: Reader, provider: Provider, came: Sequence[RawEvent]) -> Completion:
    """The answer; of a stream that holds several copies of it, one of them, read anew."""
    answer, single = reader.finish(), single_copy(came)
    if single is None:
        return answer
    again = provider.wire.reader()
    try:
        for name, data in single:
            again.feed(name, data)
        return again.finish()
    except ProviderFailed:
        # What came behind the end of the first copy is no part of it; without that end there is only this answer.
        return again.finish() if again.is_whole else answer


@asynccontextmanager
async def _response(
    client: httpx2.AsyncClient, provider: Provider, outgoing: Outgoing, timeouts: Timeouts
) -> AsyncGenerator[httpx2.Response]:
    """A response whose headers have come; an error status is raised."""
    request = _request(client, provider, outgoing)
    with _translated("connect"):
        with _within(timeouts.first_byte, "first_byte"):
            response = await client.send(request, stream=True)
        try:
            if response.status_code >= 400:
                with _within(timeouts.idle, "idle"):
                    raise await _refusal(response)
            yield response
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                await response.aclose()


def _request(client: httpx2.AsyncClient, provider: Provider, outgoing: Outgoing) -> httpx2.Request:
    written = provider.wire.write(outgoing)
    headers = {**{key: str(value) for key, value in written.headers.items()}, **provider.headers}
    if provider.key is not None:
        headers |= provider.wire.authorize(provider.key)
    timeouts = httpx2.Timeout(None, connect=provider.timeouts.connect, pool=provider.timeouts.connect)
    return client.build_request(
        "POST",
        provider.base_url.rstrip("/") + written.path,
        headers={**headers, "content-type": "application/json", "accept": "text/event-stream"},
        content=json.dumps(written.body, ensure_ascii=False).encode("utf-8", "replace"),
        timeout=timeouts,
    )


class _Stream(httpx2.AsyncByteStream):
    """The body of a response; each piece of it, a keep-alive comment too, is reported as activity."""

    def __init__(self, body: httpx2.AsyncByteStream, touch: Callable[[], None]) -> None:
        self._body, self._touch = body, touch

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._body:
            self._touch()
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


@dataclass(slots=True, kw_only=True)
class _Listening:
    """What has come of one stream, and how long it may be silent."""

    reader: Reader
    timeouts: Timeouts
    asked: float
    hear: Hear
    came: list[RawEvent]
    """The events that were read, in their order."""
    is_reasoning: bool = False
    repeats: RepeatFilter = field(default_factory=RepeatFilter)
    numbers: Numbers = field(default_factory=Numbers)
    carried: float | None = None
    """When the last event came that was no keep-alive; None before the first."""

    @property
    def is_over(self) -> bool:
        return self.repeats.is_over or self.reader.is_over

    def take(self, event: httpx2.ServerSentEvent) -> None:
        if event.event not in _KEEP_ALIVES and event.data.strip():
            self.carried = anyio.current_time()
            came = (event.event, event.data)
            if not self.numbers.is_replay(event.id, came):
                self.read(self.repeats.pass_on(came, is_whole=self.reader.is_whole))

    def read(self, events: Iterable[RawEvent]) -> None:
        for name, data in events:
            if data.strip() == _END:
                self.repeats.is_over = True
                return
            self.came.append((name, data))
            for heard in self.reader.feed(name, data):
                if isinstance(heard, ThinkingDelta) and not self.is_reasoning:
                    self.timeouts, self.is_reasoning = self.timeouts.for_reasoning(), True
                self.hear(heard)

    def deadline(self) -> float:
        """Until when there must be another sign of life."""
        limits, first = self.timeouts, self.asked + self.timeouts.first_byte
        if self.carried is not None and self.reader.is_whole:
            # A keep-alive behind the answer is none of it.
            return self.carried + (_TRAILER if self.reader.so_far().output is None else _TRAILER_COUNTED)
        wait = limits.first_byte if self.carried is None else limits.idle
        last = max(first, (self.asked if self.carried is None else self.carried) + limits.keep_alive)
        return min(anyio.current_time() + wait, last)

    def silent(self) -> ProviderFailed:
        if self.carried is None:
            return _silent(self.timeouts.first_byte, "first_byte")
        return _silent(min(self.timeouts.idle, self.timeouts.keep_alive), "idle")


async def _listen(response: httpx2.Response, listening: _Listening) -> None:
    """Reads events until the end marker, the end of the stream, or too long a silence.

    Headers alone are no beginning: many providers send them before the model has thought. Keep-alives count as activity
    for `Timeouts.keep_alive` seconds after the last event that carried something.
    """

    def touch() -> None:
        """Moves the deadline on. One scope whose deadline moves costs less than a new one for each event."""
        silence.deadline = listening.deadline()

    response.stream = _Stream(cast("httpx2.AsyncByteStream", response.stream), touch)
    silence = anyio.CancelScope(deadline=listening.asked + listening.timeouts.first_byte)
    try:
        with _translated(), silence:
            events = aiter(httpx2.EventSource(response, _EVENT))
            async for event in events:
                listening.take(event)
                touch()
                if listening.is_over:
                    with anyio.move_on_after(_CLOSING), suppress(httpx2.HTTPError):
                        async for _ in events:
                            pass
                    return
            listening.read(listening.repeats.held_back())
        if silence.cancelled_caught:
            raise listening.silent()
    finally:
        if not listening.is_over:
            # However the stream broke, the end of the answer may be among what waited for its twin.
            with suppress(ProviderFailed):
                listening.read(listening.repeats.held_back())


async def _read_whole(response: httpx2.Response, reader: Reader, timeouts: Timeouts, hear: Hear) -> None:
    """Reads an answer of a provider that does not stream, although it was asked to. One that is whole is not lost where
    the response is not ended."""
    body, broken = bytearray(), None
    try:
        with _translated(), _within(timeouts.first_byte, "first_byte"):
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > _EVENT:
                    break
    except ProviderFailed as failed:
        broken = failed
    if len(body) > _EVENT:
        raise ProviderFailed("answered with more than can be read", kind="malformed")
    said = _attempt_read(bytes(body))
    if broken is not None and isinstance(said, str):
        raise broken
    for one in said if isinstance(said, list) else [said]:
        for heard in reader.feed(None, json.dumps(one)):
            hear(heard)
    if not reader.is_whole:
        raise broken or ProviderFailed("answered with neither a stream of events nor a whole answer", kind="malformed")


def _media_type(response: httpx2.Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _refusal(response: httpx2.Response) -> ProviderFailed:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > _ERROR_BODY:
            break
    return failed_with(response.status_code, _attempt_read(bytes(body)), _retry_after(response.headers))


def _attempt_read(body: bytes) -> Json:
    try:
        return cast("Json", json.loads(body))
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds, however it is put: in milliseconds, in seconds, or as a date; None for what is no time to wait."""
    exact, plain = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    for said, unit in ((exact, 1000), (plain, 1)):
        with suppress(ValueError):
            return max(0.0, float(said) / unit)
    with suppress(ValueError, OverflowError):
        return max(0.0, email.utils.parsedate_to_datetime(plain).timestamp() - time.time())
    return None


@contextmanager
def _within(seconds: float, kind: FailureKind) -> Generator[None]:
    """Not longer than so; the block must not be left in another way than its end."""
    with anyio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise _silent(seconds, kind)


def _silent(seconds: float, kind: FailureKind) -> ProviderFailed:
    said = "did not begin to answer" if kind == "first_byte" else "said nothing more"
    return ProviderFailed(f"{said} for {seconds:g} seconds", kind=kind)


@contextmanager
def _translated(otherwise: FailureKind = "cut") -> Generator[None]:
    """Makes `ProviderFailed` of the HTTP client's own errors, without addresses or headers."""
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
        # A request that was written may have been worked on, though no answer came.
        failed.was_sent = not isinstance(error, httpx2.WriteError | httpx2.WriteTimeout)
        raise failed from error


def _unreachable(error: BaseException) -> tuple[str, str]:
    """Why there is no connection, and what to do about it: DNS, refused, TLS, or no answer in time."""
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
class _Heard:
    characters: int = 0

    def hear(self, event: Event) -> None:
        self.characters += len(event.text)


@asynccontextmanager
async def telling(progress: Progress | None) -> AsyncGenerator[Hear]:
    heard = _Heard()
    if progress is None:
        yield heard.hear
        return
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_tell, heard, progress)
        try:
            yield heard.hear
        except Exception as error:  # noqa: BLE001 - raised again below: a task group would wrap it
            failure = error
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _tell(heard: _Heard, progress: Progress) -> None:
    told = 0
    while True:
        await anyio.sleep(_PAUSE)
        if heard.characters > told:
            told = heard.characters
            await progress(float(told), None, f"{told:,} characters")
