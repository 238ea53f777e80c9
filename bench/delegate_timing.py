"""How does a client say what its calls cost it, in whichever environment it lives?

It takes orders over standard input, a line of JSON each, and answers with its own processor's time. Only what every
environment has is imported.
"""

import json
import sys
import time
from collections.abc import Awaitable, Callable, Mapping

import anyio

Call = Callable[[], Awaitable[str]]
"""One call; the text that came."""
Clients = Callable[[str], Mapping[str, Call]]
"""Each way of calling by its name, for a server at this address."""


def take_orders(clients: Clients) -> None:
    anyio.run(_orders, clients)


async def _orders(clients: Clients) -> None:
    # What a client itself prints must not be taken for an answer.
    out, sys.stdout = sys.stdout, sys.stderr
    calls: Mapping[str, Call] = {}
    for line in sys.stdin:
        order = json.loads(line)
        if "address" in order:
            calls = clients(order["address"])
            answer = json.dumps(list(calls))
        else:
            answer = json.dumps(await _milliseconds(calls[order["who"]], order["times"], order["text"]))
        print(answer, file=out, flush=True)


async def _milliseconds(call: Call, times: int, text: str) -> float:
    """Of processor, a call. Raises where another text came."""
    started = time.process_time()
    for _ in range(times):
        said = await call()
        if said != text:
            raise ValueError(f"it said {said!r}")
    return (time.process_time() - started) / times * 1000
