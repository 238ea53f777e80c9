"""A server over standard input and output that says what became of its calls, for tests of that transport."""

import sys
from functools import partial
from pathlib import Path

import anyio

from ullage.testing import FakeSource
from ullage.tool import Call, Reply, Tool
from ullage.wire import Identity, Profile, serve_stdio


async def _answer(log: Path, call: Call) -> Reply:
    if call.arguments.get("ask") and call.ask is not None:
        return Reply.text(str((await call.ask("roots/list", {})).get("roots")))
    try:
        await anyio.sleep(float(str(call.arguments.get("seconds", 0))))
    except anyio.get_cancelled_exc_class():
        log.write_text("cancelled", encoding="utf-8")
        raise
    return Reply.text("done")


def main() -> None:
    tool = Tool(name="wait", description="waits", input_schema={"type": "object"})
    source = FakeSource(offered=(tool,), answer=partial(_answer, Path(sys.argv[1])))
    profile = Profile(source=source, identity=Identity(name="toy", version="1"))
    anyio.run(partial(serve_stdio, profile, client="tests"))


if __name__ == "__main__":
    main()
