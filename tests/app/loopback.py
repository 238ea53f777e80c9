"""A provider on loopback that answers on all four wires, over real HTTP."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from delegate.streams import ANSWERS, events

__all__ = ["Loopback", "loopback"]

_WIRES = {
    "/responses": "responses",
    "/chat/completions": "chat",
    "/v1/messages": "anthropic",
    ":streamGenerateContent?alt=sse": "gemini",
}


@dataclass
class Loopback:
    address: str = ""
    refusing: dict[str, int] = field(default_factory=dict[str, int])
    """Models to the status with which they are refused."""
    cut: set[str] = field(default_factory=set[str])
    """Models whose answers end after their first piece of text."""
    text: str = "Hello there"
    """What every model answers, in two pieces."""
    asked: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list[Any])
    """Path, headers and body of each request."""

    @property
    def prompts(self) -> list[str]:
        return [json.dumps(body, ensure_ascii=False) for _, _, body in self.asked]

    def providers(self) -> str:
        """The tables that lead here, for an `ullage.toml`."""
        ends = {"openai": "/v1", "anthropic": "", "google": ""}
        return "".join(f'[providers.{name}]\nbase_url = "{self.address}{end}"\n' for name, end in ends.items())


def _saying(answer: list[Any], text: str) -> list[Any]:
    first, rest = json.dumps(text[:5])[1:-1], json.dumps(text[5:])[1:-1]
    written = json.dumps(answer).replace("Hello there", first + rest).replace('"Hello"', f'"{first}"')
    return json.loads(written.replace('" there"', f'"{rest}"'))


def _handler(script: Loopback) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            script.asked.append((self.path, {key.lower(): value for key, value in self.headers.items()}, body))
            status = script.refusing.get(str(body.get("model")), 200)
            self.send_response(status)
            self.send_header("content-type", "text/event-stream" if status == 200 else "application/json")
            self.end_headers()
            wire = next(name for end, name in _WIRES.items() if self.path.endswith(end))
            said = events(_saying(ANSWERS[wire], script.text))[: 2 if body.get("model") in script.cut else None]
            for piece in said if status == 200 else [b'{"error": {"message": "no"}, "body": "SECRET BODY"}']:
                self.wfile.write(piece)
                self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    return Handler


@contextmanager
def loopback(**refusing: int) -> Generator[Loopback]:
    script = Loopback(refusing={name.replace("_", "-"): status for name, status in refusing.items()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(script))
    script.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
