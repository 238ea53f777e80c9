"""One request to one model.

The answer is streamed and kept until it is whole; whatever goes wrong before that is a `ProviderFailed` that names its
kind. Reading stops at the wire's end marker, and what breaks after the answer is whole does not lose it. Whether to ask
again is not decided here.
"""

import email.utils
import json
import socket
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import cast

import anyio
import httpx2

from ullage.tool import Json

from .copies import single_copy
from .exchange import Completion, Event, Outgoing, Reader, ThinkingDelta
from .failure import FailureKind, ProviderFailed
from .provider import Provider, Timeouts
from .providers import failed_with
from .repeats import Numbers, RawEvent, RepeatFilter
from .unquoted import unquoted

__all__ = ["Hear", "attempt"]

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
    said = _read(bytes(body))
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
    return failed_with(response.status_code, _read(bytes(body)), _retry_after(response.headers))


def _read(body: bytes) -> Json:
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
