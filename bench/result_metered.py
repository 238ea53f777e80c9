"""How much CPU does it take to put its figures on a reply?

The same calls to the same source, with `Metered` around it and without, turn by turn; every reply's text is new, so
that nothing is remembered.
"""

import json
import time
from random import Random
from statistics import median

import anyio

from ullage.gateway import Metered, References
from ullage.models import shipped
from ullage.testing import FakeRecorder, FakeSource
from ullage.tokens import Meter
from ullage.tool import Call, Reply, Tool, ToolSource

ROUNDS, CALLS = 25, 200


def reply_texts(random: Random, count: int) -> list[str]:
    """Tables of about a kilobyte, as JSON: what costs most to look at."""
    return [
        json.dumps([{"id": random.randint(1, 10**6), "name": f"p {random.randint(1, 999)}"} for _ in range(32)])
        for _ in range(count)
    ]


def milliseconds_added() -> float:
    """CPU a call, the median of many rounds."""
    return anyio.run(_added)


async def _added() -> float:
    random, meter = Random(7), Meter(shipped())
    texts: list[str] = []

    async def answer(_: Call) -> Reply:
        return Reply.text(texts.pop())

    bare = FakeSource(offered=(Tool(name="toy", input_schema={}),), answer=answer)
    metered = Metered(
        inner=bare,
        meter=meter,
        recorder=FakeRecorder(),
        clock=time.perf_counter,
        reference=References(meter.models),
    )
    added: list[float] = []
    for _ in range(ROUNDS):
        texts += reply_texts(random, 2 * CALLS)
        without = await _spent(bare)
        added.append((await _spent(metered) - without) / CALLS * 1_000)
    return median(added)


async def _spent(source: ToolSource) -> float:
    begin = time.process_time()
    for _ in range(CALLS):
        await source.call(Call(tool="toy"))
    return time.process_time() - begin
