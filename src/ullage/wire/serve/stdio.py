"""Serve MCP on standard input and output.

Nothing but protocol goes to standard output; messages for people go to standard error. Every request that was read is
answered before the process ends: when the input ends the calls in flight finish first, and when Ullage is told to end
they have `shutdown_grace` seconds for it and are answered with an error otherwise.
"""

import math
import uuid

import anyio

from ullage.handover import Handover
from ullage.start_session import claim_input, claim_output
from ullage.tool import Caller

from ..jsonrpc import Line, LineReader
from .answering import Answering, WhoCalls
from .core import Core
from .offers import offers_of
from .profile import Profile
from .request import Request
from .serve import envelope_of, user_name
from .shutdown import Activity, Shutdown, finish_requests
from .standard import Input, Output
from .unread import read_message

__all__ = ["serve_descriptors", "serve_stdio"]

_FLUSH_SECONDS = 2.0
"""Time for the last answers to be written to a client that is slow to read them."""
_MOST_UNWRITTEN = 64 * 1024 * 1024
"""Bytes of answers that the client has not read, beyond which no more of its requests are taken."""


async def serve_stdio(
    profile: Profile,
    *,
    client: str | None = None,
    shutdown: Shutdown | None = None,
    handover: Handover | None = None,
) -> None:
    """Serve until standard input ends or `shutdown` tells to, and every request is answered.

    The process is the session.

    Args:
        client: The name that the user gave this client by a flag.
        handover: A connection on which the start module has answered requests already; None where it is new.
    """
    caller = Caller(principal=user_name(), session=uuid.uuid4().hex, client=client, model=profile.model)

    def who_calls(_: Request) -> Caller:
        return caller

    reader = claim_input() if handover is None else handover.reader
    writer = claim_output() if handover is None else handover.writer
    await serve_descriptors(profile, who_calls, reader, writer, shutdown=shutdown, handover=handover)


async def serve_descriptors(  # noqa: PLR0913 - `serve_stdio` in its parts
    profile: Profile,
    who_calls: WhoCalls,
    reader: int,
    writer: int,
    *,
    shutdown: Shutdown | None = None,
    handover: Handover | None = None,
) -> None:
    """Serve one client on two descriptors, which stay open."""
    activity, shutdown, output = Activity(), shutdown or Shutdown(), Output(writer)
    offers = offers_of(profile.source)
    answering = Answering(profile.source, offers, who_calls, activity)
    answering.when_met = profile.when_met
    async with answering.live() as live:
        core = Core(
            answering=answering,
            envelope=envelope_of(profile.identity, offers),
            live=live,
            output=output,
            is_ending=shutdown.told.is_set,
        )
        reading = _Reading(reader, core)
        try:
            async with anyio.create_task_group() as tasks:
                reading.start(handover)
                if handover is not None and handover.tools_digest is not None:
                    tasks.start_soon(core.correct_tools, handover.tools_digest)
                tasks.start_soon(_end_when_told, core, activity, shutdown, tasks.cancel_scope)
                await reading.ended.wait()
                output.watch_closing()
                await core.wait_idle_or_abandoned()
                await finish_requests(core.wait_idle, activity, shutdown)
                tasks.cancel_scope.cancel()
        finally:
            reading.stop()
            await core.close(_FLUSH_SECONDS)
            output.close()


async def _end_when_told(core: Core, activity: Activity, shutdown: Shutdown, serving: anyio.CancelScope) -> None:
    await shutdown.told.wait()
    await finish_requests(core.wait_idle, activity, shutdown)
    serving.cancel()


class _Reading:
    """The client's lines on their way to the core; paused while the client does not read its answers."""

    def __init__(self, descriptor: int, core: Core) -> None:
        self._core = core
        self._lines = LineReader(read_message, self._take, longest=math.inf)
        self._input = Input(descriptor, self._lines.feed, self._input_ended)
        self._lines.pause, self._lines.resume = self._input.pause, self._input.resume
        self.ended = anyio.Event()

    def start(self, handover: Handover | None) -> None:
        if handover is None or not handover.is_ended:
            self._input.start()
        if handover is not None:
            self._core.adopt(handover)
            self._lines.feed(b"".join(line.rstrip(b"\n") + b"\n" for line in handover.lines) + handover.rest)
            if handover.is_ended:
                self._input.stop()
                self._input_ended()

    def stop(self) -> None:
        self._input.stop()
        self._lines.stop()

    def _take(self, _: Line, message: object) -> None:
        core, output = self._core, self._core.output
        core.take(message)
        if output.unwritten > _MOST_UNWRITTEN:
            self._lines.hold(is_held=True)
            output.when_changed = self._go_on

    def _go_on(self) -> None:
        output = self._core.output
        if output.unwritten < _MOST_UNWRITTEN:
            output.when_changed = self._core.stir
            self._lines.hold(is_held=False)
        self._core.stir()

    def _input_ended(self) -> None:
        self._lines.finish(self._all_taken, with_rest=True)

    def _all_taken(self) -> None:
        self._core.end_input()
        self.ended.set()
