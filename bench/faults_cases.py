"""What goes wrong in `make bench-faults`, and with whom?

llmock plays both providers. Of each case the one asked first is ill and the other well; both have a sentence of their
own to say, so that a text tells who said it, and whether all of it came.
"""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from delegate_peers import python_of

PRIMARY = "The one that was asked first says this, word by word, and it ends with the word apricot."
BACKUP = "The one that was asked second says something else, at some length, and it ends with the word medlar."
LATE = 20
"""Seconds, four times as long as anybody waits."""
_STARTING = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    behavior: Mapping[str, Any]
    """In llmock's words."""
    streamed: bool = False
    """Whether the fault is one of streams; peers that do not always stream do so then."""
    again: bool = False
    """Whether the next call matters too."""


def _stream(kind: str) -> dict[str, Any]:
    return {"type": "stream_fault", "kind": kind, "after_chunks": 6, "stall_seconds": LATE, "times": None}


LONG_WAIT = Case(
    name="429 for ever, Retry-After 30",
    behavior={"type": "fail", "status": 429, "retry_after": 30, "times": None},
    again=True,
)
WRONG = Case(name="400 for ever", behavior={"type": "fail", "status": 400, "times": None})
STREAMS = (
    Case(name="stream cut", behavior=_stream("disconnect"), streamed=True),
    Case(name="stream ends early, cleanly", behavior=_stream("truncate"), streamed=True),
    Case(name="stream malformed", behavior=_stream("malformed"), streamed=True),
    Case(name=f"stream stalls {LATE} s", behavior=_stream("stall"), streamed=True),
)
CASES = (
    Case(name="429 twice, Retry-After 1", behavior={"type": "fail", "status": 429, "retry_after": 1, "times": 2}),
    Case(name="503 twice", behavior={"type": "fail", "status": 503, "times": 2}),
    Case(name="503 for ever", behavior={"type": "fail", "status": 503, "times": None}),
    LONG_WAIT,
    WRONG,
    Case(
        name=f"first token after {LATE} s",
        behavior={"type": "slow_first_token", "seconds": LATE, "times": None},
        streamed=True,
    ),
    *STREAMS,
)


@dataclass(frozen=True, slots=True)
class Providers:
    """Both of them, at one address."""

    address: str

    def play(self, case: Case, ill: str) -> None:
        """`ill` is llmock's name of the one that is asked first."""
        self._ask("POST", "reset")
        match = {"provider": ill, **({"stream": True} if case.streamed else {})}
        said = [
            {"type": "reply", "text": text, "times": None, "match": {"provider": provider}}
            for provider, text in ((ill, PRIMARY), ("anthropic", BACKUP))
        ]
        self._ask("POST", "scenario", {"behaviors": [{**case.behavior, "match": match}, *said]})

    def asked(self) -> Counter[str]:
        """How often each was asked since the last time."""
        requests = self._ask("GET", "requests")["requests"]
        self._ask("DELETE", "requests")
        return Counter("second" if one["provider"] == "anthropic" else "first" for one in requests)

    def _ask(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}/_llmock/{path}", data=data, method=method)
        with urllib.request.urlopen(request, timeout=_STARTING) as reply:
            return json.load(reply)


@contextmanager
def playing() -> Generator[Providers]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = str(python_of("llmock").parent / "llmock")
    command = [program, "serve", "--host", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        providers = Providers(f"http://127.0.0.1:{port}")
        _wait(providers)
        yield providers
    finally:
        process.kill()
        process.wait()


def _wait(providers: Providers) -> None:
    end = time.monotonic() + _STARTING
    while True:
        try:
            providers.asked()
        except urllib.error.URLError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return
