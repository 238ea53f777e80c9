"""Which provider do all clients of `make bench-delegate` ask?

This one, in a process of its own: it answers every request at once with the same text as a stream of events, on
OpenAI's chat and Responses wires and on Anthropic's, each event sent by itself as providers do. It looks at nothing but
the path, which begins with the number of pieces that the text is to come in. Says its port on standard output; ends
when its standard input does.
"""

import json
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread

_WORDS = ("The answer", " is that", " it depends", " on what", " is asked,", " by whom,", " and what", " for. ")
INPUT, OUTPUT = 12, 16
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_END = b"0\r\n\r\n"


def pieces(count: int) -> list[str]:
    return [_WORDS[number % len(_WORDS)] for number in range(count)]


def chat_events(count: int) -> Iterator[tuple[str | None, Any]]:
    for piece in pieces(count):
        yield None, _chunk([_choice({"role": "assistant", "content": piece})])
    yield None, _chunk([_choice({}, "stop")])
    yield None, _chunk([], {"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT})
    yield None, "[DONE]"


def _chunk(choices: list[Any], usage: dict[str, int] | None = None) -> dict[str, Any]:
    named = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-mini"}
    return {**named, "choices": choices, "usage": usage}


def _choice(delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish}


def responses_events(count: int) -> Iterator[tuple[str | None, Any]]:
    item = {"id": "msg_1", "type": "message", "role": "assistant"}
    part = {"type": "output_text", "text": "".join(pieces(count)), "annotations": []}
    yield _response("response.created", status="in_progress", output=[])
    for number, piece in enumerate(pieces(count)):
        kind = "response.output_text.delta"
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
        yield kind, {"type": kind, "delta": piece, "sequence_number": number + 1, **place}
    usage = {"input_tokens": INPUT, "output_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    output = [{**item, "status": "completed", "content": [part]}]
    yield _response("response.completed", status="completed", output=output, usage={**usage, **details})


def _response(kind: str, **more: Any) -> tuple[str, Any]:  # noqa: ANN401
    fixed = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "created_at": 1, "object": "response"}
    response = {"id": "resp_1", "model": "gpt-4o-mini", **fixed, **more}
    return kind, {"type": kind, "response": response, "sequence_number": 0}


def anthropic_events(count: int) -> Iterator[tuple[str | None, Any]]:
    named = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5", "content": []}
    usage = {"input_tokens": INPUT, "output_tokens": 1}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**named, "stop_reason": None, "stop_sequence": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
            for piece in pieces(count)
        ),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": OUTPUT},
        },
        {"type": "message_stop"},
    ]
    yield from ((event["type"], event) for event in events)


def written(events: Iterator[tuple[str | None, Any]]) -> list[bytes]:
    """Each event as one chunk of an HTTP body."""
    chunks = list[bytes]()
    for name, data in events:
        said = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
        event = (f"event: {name}\n" if name else "") + f"data: {said}\n\n"
        chunks.append(f"{len(event):x}\r\n{event}\r\n".encode())
    return chunks


_ENDS: dict[bytes, Callable[[int], Iterator[tuple[str | None, Any]]]] = {
    b"/chat/completions": chat_events,
    b"/responses": responses_events,
    b"/messages": anthropic_events,
}


@cache
def answer(path: bytes) -> list[bytes]:
    count = int(path.split(b"/", 2)[1])
    return next(written(events(count)) for end, events in _ENDS.items() if path.endswith(end))


async def converse(stream: anyio.abc.SocketStream) -> None:
    """One request after another on one connection."""
    received = b""
    async with stream:
        while True:
            head, separator, rest = received.partition(b"\r\n\r\n")
            if separator and len(rest) >= (length := _length(head)):
                received = rest[length:]
                await _answer(stream, head.split(b" ", 2)[1])
                continue
            try:
                received += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return


def _length(head: bytes) -> int:
    lines = [line.partition(b":") for line in head.lower().split(b"\r\n")]
    return next((int(value) for name, _, value in lines if name == b"content-length"), 0)


async def _answer(stream: anyio.abc.SocketStream, target: bytes) -> None:
    await stream.send(_HEAD)
    for chunk in answer(target.partition(b"?")[0]):
        await stream.send(chunk)
        await anyio.lowlevel.checkpoint()
    await stream.send(_END)


async def main() -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    print(listener.extra(anyio.abc.SocketAttribute.local_port), flush=True)
    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, converse)
        await anyio.to_thread.run_sync(sys.stdin.read)
        group.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(main)
