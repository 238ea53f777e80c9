"""What do others say that a request weighs?

litellm and tiktoken live in an environment of their own, never in ours (see `environment`). This file asks them: run as
a script, there, it reads one JSON line a request and answers with one.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counters import Count
    from rows import Row

    from ullage.messages import Message, Part, Request

Peer = dict[str, int | None]
NAMES = ("litellm", "tiktoken", "characters/4")


def peer_counts(rows: "Sequence[Row]") -> list[Peer]:
    """What litellm's token_counter, tiktoken over the texts, and a quarter of the characters say of each row."""
    from environment import make_peers, python_of, write_ranks

    there = make_peers(["tiktoken", "litellm"])
    files = {name: str(write_ranks(name)) for name in ("cl100k_base", "o200k_base")}
    lines = "\n".join(json.dumps(_question(row), ensure_ascii=True) for row in rows)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [python_of("peer"), __file__, json.dumps({"ranks": files, "there": there})]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, env=environment)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _question(row: "Row") -> dict[str, Any]:
    request = row.request
    return {
        "model": row.model,
        "vocabulary": "cl100k_base" if row.match.card.tokenizer == "cl100k_base" else "o200k_base",
        "messages": [_chat_message(message) for message in (*request.system, *request.messages)],
        "tools": [_chat_tool(tool) for tool in request.tools if tool.hosted is None],
        "texts": list(_texts(request)),
    }


def _chat_message(message: "Message") -> dict[str, Any]:
    """The message as OpenAI's chat format writes it: the only one that the peers take."""
    return {"role": message.role, "content": "\n".join(text for part in message.parts for text in _part_texts(part))}


def _chat_tool(tool: Any) -> dict[str, Any]:  # noqa: ANN401
    function = {"name": tool.name, "description": tool.description or "", "parameters": dict(tool.schema)}
    return {"type": "function", "function": function}


def _texts(request: "Request") -> Iterator[str]:
    for message in (*request.system, *request.messages):
        for part in message.parts:
            yield from _part_texts(part)
    for tool in request.tools:
        yield json.dumps(_chat_tool(tool)["function"] if tool.hosted is None else dict(tool.hosted))


def _part_texts(part: "Part") -> Iterator[str]:
    for name in ("text", "arguments"):
        if isinstance(text := getattr(part, name, None), str):
            yield text
    for inner in getattr(part, "parts", ()):
        yield from _part_texts(inner)


def answer(question: dict[str, Any], tiktoken: "Mapping[str, Count]", litellm: Any) -> Peer:  # noqa: ANN401
    texts = question["texts"]
    return {
        "litellm": None if litellm is None else _litellm(question, litellm),
        "tiktoken": sum(map(tiktoken[question["vocabulary"]], texts)),
        "characters/4": sum(map(len, texts)) // 4,
    }


def _litellm(question: dict[str, Any], litellm: Any) -> int | None:  # noqa: ANN401
    try:
        return litellm.token_counter(
            model=question["model"], messages=question["messages"], tools=question["tools"] or None
        )
    except Exception:  # noqa: BLE001  (a peer that fails on a row has no figure for it)
        return None


def main() -> None:
    """The worker, in the peers' environment."""
    from counters import tiktoken

    settings = json.loads(sys.argv[1])
    raw = {name: tiktoken(name, Path(path)) for name, path in settings["ranks"].items()}
    litellm = None
    if "litellm" in settings["there"]:
        import litellm  # pyright: ignore[reportMissingImports]
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), raw, litellm)))


if __name__ == "__main__":
    main()
