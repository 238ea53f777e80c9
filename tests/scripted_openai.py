"""A provider on loopback that speaks OpenAI's Responses API: it calls the first tool once, then answers."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["scripted_openai"]


@contextmanager
def scripted_openai(arguments: str, text: str) -> Generator[tuple[str, list[Any]]]:
    """Yields the base URL and the list of the bodies that were received.

    Args:
        arguments: JSON with which the first tool of a request is called after each message of the user's.
        text: The answer once the tool has replied.
    """
    bodies = list[Any]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            bodies.append(body)
            response = _response(body, arguments, text, len(bodies))
            is_streamed = bool(body.get("stream"))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream" if is_streamed else "application/json")
            self.end_headers()
            if is_streamed:
                for event in _events(response):
                    self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            else:
                self.wfile.write(json.dumps(response).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", bodies
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _response(body: Any, arguments: str, text: str, number: int) -> dict[str, Any]:  # noqa: ANN401
    said = body["input"] if isinstance(body["input"], list) else [body["input"]]
    is_answered = any(isinstance(item, dict) and item.get("type") == "function_call_output" for item in said[-1:])
    if body.get("tools") and not is_answered:
        name = body["tools"][0]["name"]
        call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name}
        output: dict[str, Any] = {**call, "arguments": arguments, "status": "completed"}
    else:
        part = {"type": "output_text", "text": text, "annotations": []}
        output = {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
    usage = {
        "input_tokens": 50,
        "output_tokens": 10,
        "total_tokens": 60,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "model": body["model"],
        "output": [output],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }


def _events(response: dict[str, Any]) -> Generator[dict[str, Any]]:
    (item,) = response["output"]
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    if item["type"] == "message":
        delta = {"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0, "content_index": 0}
        yield {**delta, "delta": item["content"][0]["text"]}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": response}
