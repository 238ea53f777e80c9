"""How does a client take orders from `make bench-faults`, in whichever environment it lives?

Over standard input, a line of JSON an order; it answers each with a line. Only what every environment has is imported.
"""

import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

Ask = Callable[[bool], Awaitable[str]]
"""Asks once, streamed or not as a user of that client would have it; the text that came."""
Fresh = Callable[[str], Ask]
"""A client that has seen nothing yet, with both providers behind this address."""


def answer_orders(fresh: Fresh) -> None:
    anyio.run(_orders, fresh)


async def _orders(fresh: Fresh) -> None:
    # What the client itself prints must not be taken for an answer.
    out, sys.stdout = sys.stdout, sys.stderr
    ask: Ask | None = None
    print(json.dumps({"ready": True}), file=out, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if ask is None or order["fresh"]:
            ask = fresh(order["address"])
        print(json.dumps(await _timed(ask, streamed=order["streamed"])), file=out, flush=True)


async def _timed(ask: Ask, *, streamed: bool) -> dict[str, Any]:
    started = time.perf_counter()
    text, error = None, None
    try:
        text = await ask(streamed)
    except Exception as failure:  # noqa: BLE001  (whatever a client raises is its outcome)
        error = type(failure).__name__
    return {"text": text, "error": error, "seconds": time.perf_counter() - started}
