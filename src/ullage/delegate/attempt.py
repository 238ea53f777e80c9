"""How is one model asked once?

The answer is streamed and kept until it is whole: whatever goes wrong on the way is a `ProviderFailed` that says of
which kind. Whether to ask again is not decided here.
"""

import email.utils
import json
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import cast

import anyio
import httpx2

from ullage.tool import Json

from .exchange import Completion, Event, Outgoing, Reader
from .failure import FailureKind, ProviderFailed
from .provider import Provider, Timeouts
from .providers import failed_with
from .unquoted import unquoted

__all__ = ["Hear", "attempt"]

Hear = Callable[[Event], None]
"""Told of each piece as it comes, of answers too that are then not whole."""

_ERROR_BODY = 64_000
"""Bytes of an error's body that are looked at."""
_EVENT = 32_000_000
"""Bytes of one event: some wires repeat the whole answer in their last, pictures and sealed reasoning included."""


async def attempt(
    client: httpx2.AsyncClient, provider: Provider, outgoing: Outgoing, hear: Hear, reader: Reader | None = None
) -> Completion:
    """The whole answer; raises `ProviderFailed`. To end it, cancel; whoever gives the reader, a new one of the
    provider's wire, then knows what was reported by then."""
    reader, asked = reader or provider.wire.reader(), anyio.current_time()
    try:
        async with _response(client, provider, outgoing) as response:
            await _listen(response, reader, provider.timeouts, asked, hear)
        return reader.finish()
    except ProviderFailed as failure:
        failure.usage = reader.so_far()
        secrets = (provider.key, *provider.headers.values())
        failure.message = unquoted(failure.message, outgoing.messages, secrets)
        failure.args = (failure.message,)
        raise


@asynccontextmanager
async def _response(
    client: httpx2.AsyncClient, provider: Provider, outgoing: Outgoing
) -> AsyncGenerator[httpx2.Response]:
    """An answer that has begun, and is a stream."""
    request = _request(client, provider, outgoing)
    with _translated("connect"):
        with _within(provider.timeouts.first_byte, "first_byte"):
            response = await client.send(request, stream=True)
        try:
            if response.status_code >= 400:
                with _within(provider.timeouts.idle, "idle"):
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


async def _listen(response: httpx2.Response, reader: Reader, timeouts: Timeouts, asked: float, hear: Hear) -> None:
    """Until the stream ends. Headers alone are no beginning: many providers send them before the model has thought."""
    kind, seconds = "first_byte", timeouts.first_byte
    # One scope whose deadline moves on: a new one for each event would cost more than the event.
    with _translated("cut"), anyio.CancelScope(deadline=asked + seconds) as silence:
        async for event in httpx2.EventSource(response, _EVENT):
            kind, seconds = "idle", timeouts.idle
            silence.deadline = anyio.current_time() + seconds
            for heard in reader.feed(event.event, event.data):
                hear(heard)
    if silence.cancelled_caught:
        raise _silent(seconds, kind)


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
    """Seconds, however it is put: in milliseconds, in seconds, or as a date."""
    exact, plain = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    for said, unit in ((exact, 1000), (plain, 1)):
        try:
            return max(0.0, float(said) / unit)
        except ValueError:
            continue
    try:
        return max(0.0, email.utils.parsedate_to_datetime(plain).timestamp() - time.time())
    except ValueError:
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
def _translated(otherwise: FailureKind) -> Generator[None]:
    """The HTTP client's own errors, without addresses or headers."""
    try:
        yield
    except httpx2.SSEError as error:
        raise ProviderFailed("answered with something other than a stream of events", kind="malformed") from error
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
        raise ProviderFailed("cannot be reached", kind="connect", suggestion="check the provider's address") from error
    except (httpx2.DecodingError, httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
        raise ProviderFailed(f"cannot be spoken to: {type(error).__name__}", kind="malformed") from error
    except httpx2.HTTPError as error:
        raise ProviderFailed(f"broke the connection: {type(error).__name__}", kind=otherwise) from error
