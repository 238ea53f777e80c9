"""Count the files of Ullage that a request passes through: a call, a search, SQL, `prepare`, a delegated task.

    python scripts/trace_files.py            a table
    python scripts/trace_files.py --files    and the files, with the number of calls in each

The requests are traced with `sys.setprofile` once they are warm, on the event loop and in worker threads: two for a
gateway from a client's line on standard input to the answer's line, the others from the call of the function.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parent.parent
SOURCE = f"{ROOT / 'src' / 'ullage'}{os.sep}"
WARM = 3
"""Requests of each kind before the one that is traced."""
PATIENCE = 30.0
KINDS = ("call_tool", "by name", "find_tool", "sql.query", "prepare", "delegate.run")

Request = Callable[[], Awaitable[None]]


@contextmanager
def traced() -> Generator[Counter[str]]:
    """Count the calls of Ullage's functions by file, in every thread."""
    calls = Counter[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            calls[frame.f_code.co_filename.removeprefix(SOURCE)] += 1

    threading.setprofile_all_threads(note) if sys.version_info >= (3, 12) else threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile_all_threads(None) if sys.version_info >= (3, 12) else threading.setprofile(None)


async def files_of(request: Request) -> Counter[str]:
    """Return the calls by file of one request that is warm and alone."""
    for _ in range(WARM):
        await request()
    await asyncio.sleep(1)
    with traced() as calls:
        await request()
    return calls


class _Provider(BaseHTTPRequestHandler):
    """A model's provider that always says the same."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        message = {"type": "message", "content": [{"type": "output_text", "text": "Hello"}]}
        usage = {"input_tokens": 9, "output_tokens": 1}
        done = {"model": "m-1", "status": "completed", "output": [message], "usage": usage}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in (
            {"type": "response.output_text.delta", "delta": "Hello"},
            {"type": "response.completed", "response": done},
        ):
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextmanager
def provider() -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()


class Client:
    """A client of a gateway in this process, over two pipes."""

    def __init__(self, reader: asyncio.StreamReader, into: int) -> None:
        self._reader, self._into, self._number = reader, into, 0

    async def ask(self, method: str, **params: object) -> dict[str, object]:
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            answer = json.loads(await asyncio.wait_for(self._reader.readline(), PATIENCE))
            if answer.get("id") == self._number:
                return answer["result"]

    def send(self, message: object) -> None:
        os.write(self._into, json.dumps(message).encode() + b"\n")

    async def call(self, name: str, **arguments: object) -> None:
        result = await self.ask("tools/call", name=name, arguments=arguments)
        if result.get("isError"):
            raise RuntimeError(f"{name}: {json.dumps(result)[:500]}")


@asynccontextmanager
async def client(folder: Path, url: str) -> AsyncIterator[Client]:
    """A client of a gateway with an echo server of fifty tools, the sample shop and a provider behind it."""
    from ullage.app.build_gateway import open_gateway
    from ullage.config import Flags, load
    from ullage.tool import Caller
    from ullage.wire.serve.stdio import serve_descriptors

    server = [str(ROOT / "bench" / "gateway_server.py"), "--tools", "50"]
    settings, work = folder / "ullage.toml", folder / "work"
    work.mkdir()  # settings in the working folder would be a project's and need approval
    settings.write_text(
        f'[gateway]\nmode = "search"\n[store]\nurl = {json.dumps(f"sqlite:///{folder}/store.db")}\n'
        f"[servers.echo]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(server)}\n"
        f"[delegate]\n[providers.openai]\nbase_url = {json.dumps(url)}\n",
        encoding="utf-8",
    )
    loaded = load(Flags(config=settings, sample=True), os.environ, work)
    into, source = os.pipe(), os.pipe()
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=1 << 24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(source[0], "rb"))
    async with open_gateway(loaded, environment=os.environ) as gateway:
        caller = Caller(principal="someone", session="one")
        serving = loop.create_task(serve_descriptors(gateway.flagged(None), lambda _: caller, into[0], source[1]))
        asked = Client(reader, into[1])
        info = {"name": "trace", "version": "1"}
        await asked.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=info)
        asked.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        await asked.ask("tools/list")
        yield asked
        os.close(into[1])
        await serving


def prepared() -> Request:
    from ullage import Context

    context = Context(model="claude-sonnet-5", system="You are a clerk.")

    async def request() -> None:
        context.add({"role": "user", "content": "Which orders are late?"})
        context.add({"role": "assistant", "content": "Order 7."})
        await context.prepare()

    return request


async def measure() -> dict[str, Counter[str]]:
    """Return the calls by file of each kind of request."""
    found = dict[str, Counter[str]]()
    with tempfile.TemporaryDirectory() as name, provider() as url:
        for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            os.environ[variable] = f"{name}/home"
        os.environ["OPENAI_API_KEY"] = "sk-trace"
        async with client(Path(name), url) as asked:
            echo = {"tool_name": "echo__echo", "parameters": {"text": "hello"}}
            query = {"tool_name": "query", "parameters": {"sql": "SELECT count(*) FROM products"}}
            task = {"tool_name": "delegate.run", "parameters": {"prompt": "Say hello"}}
            words = iter(("list invoices", "read a branch", "export dashboards", "check the volume"))
            requests: dict[str, Request] = {
                "call_tool": lambda: asked.call("call_tool", **echo),
                "by name": lambda: asked.call("echo__echo", text="hello"),
                "find_tool": lambda: asked.call("find_tool", tool_description=next(words)),
                "sql.query": lambda: asked.call("call_tool", **query),
                "delegate.run": lambda: asked.call("call_tool_write", **task),
                "prepare": prepared(),
            }
            for kind in KINDS:
                found[kind] = await files_of(requests[kind])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="list the files of each")
    arguments = parser.parse_args()
    found = asyncio.run(measure())
    print(f"{'request':14}{'files':>7}{'calls':>8}")
    for kind, calls in found.items():
        print(f"{kind:14}{len(calls):7}{calls.total():8}")
    if arguments.files:
        for kind, calls in found.items():
            print(f"\n{kind}")
            for file, count in sorted(calls.items(), key=lambda pair: -pair[1]):
                print(f"{count:7}  {file}")


if __name__ == "__main__":
    main()
