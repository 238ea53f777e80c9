"""Session logs in Claude Code's layout, of any size, for reading them beside other tools.

The lines are a real coding session's (DATA's `traces/pi`), written as Claude Code writes them: one answer in two lines
with the same message id, of which the first has the usage of a stream that has only begun. Every copy has message ids,
request ids, sessions and times of its own, and half of the sessions are long past.
"""

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

__all__ = ["write_logs"]

_START = datetime(2026, 9, 1, tzinfo=UTC)
_MODELS = ("claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929")
_PROJECTS = 12


def write_logs(trace: Path, folder: Path, size: int) -> int:
    """Write files below `folder/projects` until they hold `size` bytes.

    Returns:
        How many bytes were written.
    """
    records = [json.loads(line) for line in trace.read_text().splitlines()]
    messages = [one["message"] for one in records if one.get("type") == "message"]
    written = copy = 0
    while written < size:
        session = str(uuid.UUID(int=copy + 1))
        project = f"/home/dev/project-{copy % _PROJECTS}"
        path = folder / "projects" / project.replace("/", "-") / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            for line in _lines(messages, copy, session, project):
                written += file.write(json.dumps(line, separators=(",", ":")) + "\n")
                if written >= size:
                    break
        copy += 1
    return written


def _lines(messages: list[dict[str, Any]], copy: int, session: str, project: str) -> Iterator[dict[str, Any]]:
    at, model = _START + timedelta(hours=2 * copy), _MODELS[copy % len(_MODELS)]
    for number, message in enumerate(messages):
        at += timedelta(seconds=7)
        about: dict[str, Any] = {
            "parentUuid": None,
            "isSidechain": False,
            "userType": "external",
            "cwd": project,
            "sessionId": session,
            "version": "2.1.325",
            "gitBranch": "main",
            "uuid": f"{copy:08x}-0000-4000-8000-{number:012x}",
            "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        if message["role"] != "assistant":
            yield {**about, "type": "user", "message": {"role": "user", "content": message.get("content") or ""}}
            continue
        said = message["usage"]
        usage = {
            "input_tokens": said["input"],
            "cache_creation_input_tokens": said["cacheWrite"],
            "cache_read_input_tokens": said["cacheRead"],
            "output_tokens": said["output"],
            "service_tier": "standard",
        }
        answer: dict[str, Any] = {
            "model": model,
            "id": f"msg_01{copy:08x}{number:08x}AbCdEf",
            "type": "message",
            "role": "assistant",
            "stop_reason": None,
        }
        request = {"requestId": f"req_01{copy:08x}{number:08x}"}
        begun = {**answer, "content": [{"type": "text", "text": "…"}], "usage": {**usage, "output_tokens": 1}}
        if number % 2:
            yield {**about, "type": "assistant", **request, "message": begun}
        whole = {**answer, "content": message["content"], "usage": usage}
        yield {**about, "type": "assistant", **request, "message": whole, "uuid": about["uuid"][:-1] + "f"}
