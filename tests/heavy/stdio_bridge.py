"""Streamable HTTP in front of a program that speaks MCP on standard input and output, for suites that know HTTP only.

`python stdio_bridge.py COMMAND …` prints its address on standard error. Every client of the handshake era gets its own
process, all later clients share one. It is no more than a test needs: it judges the headers of later requests as the
SDK does, gives errors the status that the protocol wants, and passes everything else on as it is. A message that does
not say to which request it belongs goes to the newest one that is open.
"""

import contextlib
import json
import queue
import subprocess
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS, InboundLadderRejection, classify_inbound_request

Message = dict[str, Any]
PREFIX = "io.modelcontextprotocol/"
VERSION, SUBSCRIPTION = f"{PREFIX}protocolVersion", f"{PREFIX}subscriptionId"
ENDED: Message = {}


class Program:
    """One process, and who waits for what it says."""

    def __init__(self, command: list[str], *, is_modern: bool) -> None:
        self.is_modern = is_modern
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lock = threading.Lock()
        self.last = 0
        self.open: dict[int, Message] = {}
        """Requests by the number that the program knows them by."""
        self.queues: dict[int, queue.SimpleQueue[Message]] = {}
        self.stream: queue.SimpleQueue[Message] = queue.SimpleQueue()
        """What belongs to no request."""
        threading.Thread(target=self._read, daemon=True).start()

    def ask(self, message: Message) -> "tuple[int, queue.SimpleQueue[Message]]":
        waiting: queue.SimpleQueue[Message] = queue.SimpleQueue()
        with self.lock:
            self.last += 1
            number = self.last
            self.open[number] = message
            self.queues[number] = waiting
        self.send({**message, "id": number})
        return number, waiting

    def send(self, message: Message) -> None:
        assert self.process.stdin is not None
        if message.get("method") == "notifications/cancelled":
            wanted = message["params"].get("requestId")
            known = [number for number, one in self.open.items() if one["id"] == wanted]
            message = {**message, "params": {**message["params"], "requestId": known[-1] if known else wanted}}
        with self.lock:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def leave(self, number: int) -> None:
        """The client no longer waits: later clients say it by closing the connection."""
        if self.open.pop(number, None) is not None and self.is_modern:
            cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
            self.send(cancelled)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(20)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message: Message = json.loads(line)
            if "method" not in message:
                asked = self.open.pop(message["id"], None)
                if asked is not None:
                    self.queues.pop(message["id"]).put({**message, "id": asked["id"]})
            else:
                self._route(message)
        for waiting in (*self.queues.values(), self.stream):
            waiting.put(ENDED)

    def _route(self, message: Message) -> None:
        params = message.get("params") or {}
        token, number = params.get("progressToken"), (params.get("_meta") or {}).get(SUBSCRIPTION)
        open_ones = dict(self.open)
        if number in open_ones:
            stamped = {**params, "_meta": {**params["_meta"], SUBSCRIPTION: open_ones[number]["id"]}}
            self.queues[number].put({**message, "params": stamped})
            return
        named = [at for at, one in open_ones.items() if token is not None and _meta(one).get("progressToken") == token]
        answered = [at for at, one in open_ones.items() if one["method"] != "subscriptions/listen"]
        belongs = named or ([] if message["method"].endswith(("list_changed", "updated")) else answered)
        (self.queues[belongs[-1]] if belongs else self.stream).put(message)


def _meta(message: Message) -> Message:
    found = (message.get("params") or {}).get("_meta")
    return found if isinstance(found, dict) else {}


class Bridge(ThreadingHTTPServer):
    """All programs of one address."""

    daemon_threads = True

    def __init__(self, command: list[str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.command = command
        self.sessions: dict[str, Program] = {}
        self.lock = threading.Lock()
        self.modern: Program | None = None

    def later(self) -> Program:
        with self.lock:
            if self.modern is None:
                self.modern = Program(self.command, is_modern=True)
            return self.modern


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Bridge  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is named there
        del format, args

    def do_POST(self) -> None:
        message: Message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if VERSION in _meta(message) or (message.get("method") != "initialize" and self._is_later()):
            return self._later(message)
        session = self.headers.get("mcp-session-id")
        if message.get("method") == "initialize":
            session = uuid.uuid4().hex
            self.server.sessions[session] = Program(self.server.command, is_modern=False)
        program = self.server.sessions.get(session or "")
        if program is None:
            return self._json(400 if session is None else 404, _error(message, "no such session"))
        if "id" in message and "method" in message:
            return self._answer(program, message, {"mcp-session-id": session or ""})
        program.send(message)
        return self._json(202, None)

    def _is_later(self) -> bool:
        return self.headers.get("mcp-session-id") is None and self.headers.get("mcp-protocol-version", "") > "2026"

    def _later(self, message: Message) -> None:
        if "id" not in message:
            return self._json(202, None)
        headers = {name.lower(): value for name, value in self.headers.items()}
        judged = classify_inbound_request(message, headers=headers)
        if isinstance(judged, InboundLadderRejection):
            error = {"code": judged.code, "message": judged.message, "data": judged.data}
            return self._json(ERROR_CODE_HTTP_STATUS.get(judged.code, 200), {**_error(message, ""), "error": error})
        if message["method"] == "initialize":
            # On a pipe it is refused by naming the versions; over HTTP the method does not exist in this era.
            error = {"code": -32601, "message": "Method not found"}
            return self._json(404, {**_error(message, ""), "error": error})
        return self._answer(self.server.later(), message, {})

    def _answer(self, program: Program, message: Message, headers: dict[str, str]) -> None:
        number, waiting = program.ask(message)
        first = waiting.get()
        if "method" not in first:
            code: Any = (first.get("error") or {}).get("code")
            return self._json(ERROR_CODE_HTTP_STATUS.get(code, 200) if program.is_modern else 200, first, headers)
        try:
            self._stream(waiting, first, headers)
        except OSError:
            program.leave(number)

    def do_GET(self) -> None:
        program = self.server.sessions.get(self.headers.get("mcp-session-id") or "")
        if program is None:
            return self._json(405, None)
        with contextlib.suppress(OSError):
            self._stream(program.stream, None, {})
        return None

    def do_DELETE(self) -> None:
        program = self.server.sessions.pop(self.headers.get("mcp-session-id") or "", None)
        if program is not None:
            program.end()
        self._json(405 if program is None else 200, None)

    def _stream(self, waiting: "queue.SimpleQueue[Message]", first: Message | None, headers: dict[str, str]) -> None:
        """Events until the answer to the request has been one of them."""
        self.send_response(200)
        for name, value in {"content-type": "text/event-stream", "transfer-encoding": "chunked", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        message = first
        while message is None or (message and "method" in message):
            if message is not None:
                self._chunk(f"event: message\ndata: {json.dumps(message)}\n\n".encode())
            try:
                message = waiting.get(timeout=0.5)
            except queue.Empty:
                message = None
                self._chunk(b": still here\n\n")
        if message:
            self._chunk(f"event: message\ndata: {json.dumps(message)}\n\n".encode())
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _json(self, status: int, message: Message | None, headers: dict[str, str] | None = None) -> None:
        body = b"" if message is None else json.dumps(message).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _error(message: Message, text: str) -> Message:
    return {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": -32600, "message": text}}


def main() -> None:
    bridge = Bridge(sys.argv[1:])
    print(f"http://127.0.0.1:{bridge.server_port}/mcp", file=sys.stderr, flush=True)  # noqa: T201
    try:
        bridge.serve_forever()
    finally:
        for program in (*bridge.sessions.values(), *([] if bridge.modern is None else [bridge.modern])):
            program.process.kill()


if __name__ == "__main__":
    main()
