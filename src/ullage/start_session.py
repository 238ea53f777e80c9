"""Answers a client's first requests on standard input and output while the rest of Ullage is being loaded.

`initialize`, `server/discover`, `ping` and the first `tools/list` are answered from an entry of the cache. Every other
line, and each unusual request, is kept in order for the server that is being loaded.

Loading begins only after the first messages, or a short wait for them, so that they are answered while the processor is
free. After that a thread answers, and the main thread loads.
"""

import json
import os
import select
import sys
import time
from _thread import allocate_lock, start_new_thread

from .start_cache import as_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal

    from .start_cache import Entry

__all__ = ["Handover", "StartSession", "claim_input", "claim_output", "era_asked_in"]

_FIRST_WAIT = 0.1
"""Maximum seconds to wait for the first message before loading begins. Waiting takes no processor time."""
_NEXT_WAIT = 0.05
"""Maximum seconds to wait for the message after an answer."""
_CHUNK = 65_536
_LONGEST = 65_536
"""Maximum bytes of a line that is examined here."""
_MOST_KEPT = 4 * 1024 * 1024
"""Maximum bytes kept for the server; beyond that the client has to wait."""
_LAST_SECONDS = 2.0
"""Seconds for a client to read the errors that end its requests."""
_SWITCH = 0.0005
"""Seconds that the loading thread may run while this one has something to answer."""
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_ENVELOPE = (_VERSION_KEY, "io.modelcontextprotocol/clientInfo", "io.modelcontextprotocol/clientCapabilities")
_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
_INTERNAL_ERROR = -32603
_INVALID_PARAMS = -32602


def claim_input() -> int:
    """Return a duplicate of standard input; child processes find an empty one in its place."""
    private = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return private


def claim_output() -> int:
    """Return a duplicate of standard output; other output of the process goes to standard error."""
    private = os.dup(1)
    os.dup2(2, 1)
    return private


def era_asked_in(line: bytes) -> "Literal['handshake', 'stateless'] | None":
    """Return the protocol era of a client's first request; None for what is not a request."""
    try:
        message = as_table(json.loads(line[:_LONGEST]))
    except ValueError:
        return None
    if not isinstance(message.get("method"), str) or "id" not in message:
        return None
    is_modern = _VERSION_KEY in as_table(as_table(message.get("params")).get("_meta"))
    return "stateless" if is_modern and message["method"] != "initialize" else "handshake"


class Handover:
    """A connection on standard input and output that is already in use, as a server takes it over.

    It is no dataclass, because importing these would delay the first answer.
    """

    __slots__ = (
        "initialize",
        "is_ended",
        "lines",
        "outgoing",
        "protocol_version",
        "reader",
        "rest",
        "tools_digest",
        "writer",
    )

    def __init__(  # noqa: PLR0913 - the whole state of a connection
        self,
        *,
        reader: int,
        writer: int,
        lines: "Sequence[bytes]" = (),
        rest: bytes = b"",
        is_ended: bool = False,
        outgoing: bytes = b"",
        initialize: "dict[str, Any] | None" = None,
        protocol_version: "str | None" = None,
        tools_digest: "str | None" = None,
    ) -> None:
        """Args:
        reader: the descriptor to read from. Standard input itself is empty by then.
        writer: the descriptor to write to. Standard output itself leads to standard error by then.
        lines: lines that were read and not answered, in order, without line ends.
        rest: the beginning of an incomplete line.
        is_ended: whether the input has ended.
        outgoing: the end of the answers that the client has not read yet. It may begin within a line.
        initialize: the parameters of the `initialize` request that was answered; None where none was.
        protocol_version: the negotiated revision, or the one named by the first request of the stateless era.
        tools_digest: `digest_of_tools` of the list that was sent; None where none was.
        """
        self.reader = reader
        self.writer = writer
        self.lines = lines
        self.rest = rest
        self.is_ended = is_ended
        self.outgoing = outgoing
        self.initialize = initialize
        self.protocol_version = protocol_version
        self.tools_digest = tools_digest


class StartSession:
    """One client's connection from its first byte until a server takes it over."""

    def __init__(self, entry: "Entry", reader: int, writer: int) -> None:
        self._entry = entry
        self._reader = reader
        self._writer = writer
        self._lines: list[bytes] = []
        self._rest = b""
        self._kept = 0
        self._outgoing = b""
        self._is_ended = False
        self._is_passive = False
        """Whether everything is left to the server, because the client began with something unusual."""
        self._era: str | None = None
        self._initialize: dict[str, Any] | None = None
        self._version: str | None = None
        self._tools_digest: str | None = None
        self._is_waiting = False
        """Whether an unanswered request is kept."""
        self._is_closed = False
        self._wake = -1, -1
        self._done = allocate_lock()

    # -- Reading and answering

    def answer_first(self) -> bool:
        """Answer what comes at once; return whether anything is left to load the server for."""
        deadline = time.monotonic() + _FIRST_WAIT
        while not self._is_ended and not self._is_waiting and not self._is_passive:
            left = deadline - time.monotonic()
            if left <= 0 or not self._step(left):
                break
            deadline = time.monotonic() + _NEXT_WAIT
        return not self.is_finished

    def answer_aside(self) -> None:
        """Continue answering in a thread until `hand_over` or `refuse`.

        The thread switch interval is shortened, so that the loading main thread gives way more often; the server resets
        it.
        """
        self._wake = os.pipe()
        self._done.acquire()
        sys.setswitchinterval(_SWITCH)
        start_new_thread(self._run, ())

    @property
    def client_era(self) -> "Literal['handshake', 'stateless'] | None":
        """The protocol era in which the client has begun; None where it has not."""
        if self._era is not None:
            return "stateless" if self._era == "modern" else "handshake"
        return next((era for line in self._lines[:8] if (era := era_asked_in(line)) is not None), None)

    @property
    def is_finished(self) -> bool:
        """Whether the client has closed its input and waits for no answer."""
        return self._is_ended and not self._is_waiting and not self._is_passive and not self._outgoing

    def _run(self) -> None:
        try:
            while self._step(None):
                pass
        finally:
            self._done.release()

    def _step(self, timeout: "float | None") -> bool:
        """Wait for something to read or write, and do it; return False on timeout, or if nothing more is to be done."""
        reading = [] if self._is_ended or self._kept > _MOST_KEPT else [self._reader]
        writing = [self._writer] if self._outgoing else []
        waking = [self._wake[0]] if self._wake[0] >= 0 else []
        if not reading and not writing and not waking:
            return False
        readable, writable, _ = select.select([*reading, *waking], writing, [], timeout)
        if writable:
            self._write()
        if self._reader in readable:
            self._read()
        return self._wake[0] not in readable and bool(readable or writable)

    def _read(self) -> None:
        try:
            chunk = os.read(self._reader, _CHUNK)
        except BlockingIOError:
            return
        except OSError:  # a socket that was reset has ended
            chunk = b""
        if not chunk:
            self._is_ended = True
            if self._rest:
                self._keep(self._rest)
                self._rest = b""
            return
        self._kept += len(chunk)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            answer = None if self._is_passive or len(line) > _LONGEST else self._answer(line)
            if answer is None:
                self._keep(line)
            else:
                self._kept -= len(line) + 1
                self._send(answer)

    def _keep(self, line: bytes) -> None:
        self._lines.append(line)
        self._is_waiting = self._is_waiting or b'"id"' in line

    def _send(self, answer: bytes) -> None:
        self._outgoing += answer
        if select.select([], [self._writer], [], 0)[1]:
            self._write()

    def _write(self) -> None:
        """Write as much as a pipe takes at once."""
        try:
            written = os.write(self._writer, self._outgoing[: select.PIPE_BUF])
        except BlockingIOError:
            return
        except OSError:  # the reading end is closed; the end of the input will follow
            self._outgoing = b""
        else:
            self._outgoing = self._outgoing[written:]

    # -- Messages

    def _answer(self, line: bytes) -> "bytes | None":
        """Return the answer to a line, empty if it needs none; None for one that the server has to process."""
        try:
            message = as_table(json.loads(line))
        except (ValueError, RecursionError):
            return None
        if "id" not in message:
            return None
        method, identity = message.get("method"), message["id"]
        is_usual = (
            message.get("jsonrpc") == "2.0"
            and message.keys() <= {"jsonrpc", "id", "method", "params"}
            and (message.get("params") is None or isinstance(message["params"], dict))
            and _is_plain(identity)
        )
        result = self._result(method, as_table(message.get("params"))) if is_usual and isinstance(method, str) else None
        if result is None:
            # The first request decides the protocol era of the connection.
            self._is_passive = self._era is None and isinstance(method, str)
            return None
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (json.dumps(identity).encode(), result)

    def _result(self, method: str, params: "dict[str, Any]") -> "bytes | None":
        meta = as_table(params.get("_meta"))
        if _VERSION_KEY in meta:
            return self._modern_result(method, params, meta)
        if self._era == "modern" or not isinstance(params.get("_meta", {}), dict):
            return None
        if method == "initialize":
            version, abilities, program = (
                params.get(name) for name in ("protocolVersion", "capabilities", "clientInfo")
            )
            is_usual = isinstance(version, str) and _is_table(abilities) and _is_program(program)
            if self._era is not None or not is_usual:
                return None
            answers = self._entry.answers
            known = answers["versions"]
            self._version = version if version in known else known[-1]
            self._era, self._initialize = "handshake", params
            return _dump({**answers["initialize"], "protocolVersion": self._version})
        if method == "ping" and self._era is not None and params.keys() <= {"_meta"}:
            return b"{}"
        if method == "tools/list" and self._initialize is not None and _has_no_cursor(params):
            return self._tools_answer("tools", self._entry.tools)
        return None

    def _modern_result(self, method: str, params: "dict[str, Any]", meta: "dict[str, Any]") -> "bytes | None":
        version, program, abilities = (meta.get(name) for name in _ENVELOPE)
        is_usual = (
            version in self._entry.answers["modern_versions"]
            and _is_table(abilities)
            and (program is None or _is_program(program))
            and meta.get(_LEVEL_KEY, "info") == "info"
            and isinstance(meta.get("progressToken", ""), str | int)
        )
        if not is_usual or self._era == "handshake":
            return None
        if method == "server/discover" and params.keys() <= {"_meta"}:
            result: bytes | None = _dump(self._entry.answers["discover"])
        elif method == "tools/list" and _has_no_cursor(params):
            result = self._tools_answer("tools_modern", self._entry.tools_modern)
        else:
            return None
        if result is not None:
            self._era, self._version = "modern", version
        return result

    def _tools_answer(self, name: str, tools: bytes) -> "bytes | None":
        """Return the list of tools, once: the next request for it is the server's."""
        if self._tools_digest is not None:
            return None
        before, after, self._tools_digest = self._entry.answers[name]
        return b"%b%b%b" % (before.encode(), tools, after.encode())

    # -- The end

    def hand_over(self) -> "Handover":
        """Stop answering, and return the connection with all that was not answered."""
        self._stop()
        return Handover(
            reader=self._reader,
            writer=self._writer,
            lines=self._lines,
            rest=self._rest,
            is_ended=self._is_ended,
            outgoing=self._outgoing,
            initialize=self._initialize,
            protocol_version=self._version,
            tools_digest=self._tools_digest,
        )

    def refuse(self, error: "Mapping[str, Any]", *, is_input: bool = False) -> None:
        """Answer every kept request with an error, where no server takes them over.

        Args:
            error: `error_code`, `message`, `suggestion` and `available_options`.
            is_input: whether the user can fix it, as with a settings file.
        """
        if self._is_closed:
            return
        self._stop()
        number = _INVALID_PARAMS if is_input else _INTERNAL_ERROR
        body = _dump({"code": number, "message": error["message"], "data": dict(error)})
        for line in self._lines:
            try:
                message = as_table(json.loads(line))
            except (ValueError, RecursionError):
                continue
            if "method" in message and isinstance(message.get("id"), int | str):
                self._outgoing += b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (json.dumps(message["id"]).encode(), body)
        deadline = time.monotonic() + _LAST_SECONDS
        while self._outgoing and select.select([], [self._writer], [], max(0.0, deadline - time.monotonic()))[1]:
            self._write()

    def _stop(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._wake[0] >= 0:
            os.write(self._wake[1], b"\n")
            self._done.acquire()
            for descriptor in self._wake:
                os.close(descriptor)


def _dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _is_plain(identity: object) -> bool:
    """Return whether an id stays the same however it is encoded in JSON."""
    if isinstance(identity, str):
        return len(identity) <= 200 and identity.isascii() and identity.isprintable()
    return isinstance(identity, int) and not isinstance(identity, bool) and abs(identity) < 1 << 53


def _is_table(value: object) -> bool:
    """Return whether a value is an object of objects."""
    return as_table(value) is value and all(isinstance(one, dict) for one in as_table(value).values())


def _is_program(value: object) -> bool:
    return all(isinstance(as_table(value).get(name), str) for name in ("name", "version"))


def _has_no_cursor(params: "dict[str, Any]") -> bool:
    return params.keys() <= {"_meta", "cursor"} and params.get("cursor") is None
