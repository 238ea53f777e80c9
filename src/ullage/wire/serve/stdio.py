"""How is a server spoken to over standard input and output?

Nothing but protocol goes to standard output; whoever wants to say something to a person says it on standard error.
"""

import uuid
from collections.abc import AsyncIterator
from typing import Any, cast

import anyio
from mcp.server.stdio import stdio_server

from ullage.tool import Caller

from ..halves import whole
from .profile import Profile
from .serve import Activity, Context, build_server, user_name
from .standard import Output, claim_input, claim_output, lines
from .unread import refusals

__all__ = ["serve_stdio"]

_PAUSE = 0.05
"""Seconds in which a request that was read is begun, or an answer that was made is written."""
_LONGEST_END = 60.0
"""Seconds for which what was asked is still answered when the input has ended: whoever asked may be gone for good."""


async def serve_stdio(profile: Profile, *, client: str | None = None) -> None:
    """Serves until standard input ends and what was asked is answered, or someone interrupts.

    The process is the session.
    """
    caller = Caller(principal=user_name(), session=uuid.uuid4().hex, client=client, model=profile.model)
    activity = Activity()

    def who_calls(_: Context) -> Caller:
        return caller

    server = build_server(profile.source, profile.identity, who_calls, activity)
    answers = Output(claim_output())
    asked = _answered(lines(claim_input()), answers, activity)
    async with stdio_server(stdin=cast("Any", asked), stdout=cast("Any", answers)) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


async def _answered(asked: AsyncIterator[str], answers: Output, activity: Activity) -> AsyncIterator[str]:
    """The lines that can be read; the others are answered here. Their end comes only when what they asked has been
    answered, because the SDK then drops the rest."""
    async for line in asked:
        # The SDK drops a request for half a character in it.
        sound = whole(line)
        refused = refusals(sound)
        if refused is None:
            yield sound
            continue
        for one in refused:
            await answers.write(one)
    await anyio.sleep(_PAUSE)
    with anyio.move_on_after(_LONGEST_END):
        while activity.open:
            await anyio.sleep(_PAUSE)
