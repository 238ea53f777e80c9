"""Small session files, as the programs write them."""

import json
from pathlib import Path
from typing import Any

Object = dict[str, Any]


def lines(*records: Object | str) -> str:
    """JSONL; a text stands as it is."""
    return "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in records)


def written(path: Path, *records: Object | str) -> Path:
    path.write_text(lines(*records), encoding="utf-8")
    return path


_USAGE = {"input_tokens": 9, "output_tokens": 1}
_CALL = {"type": "tool_use", "id": "c", "name": "read", "input": {"path": "a"}}
_RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "much"}
_RESPONSE = {"functionResponse": {"id": "c", "name": "read", "response": {"output": "much"}}}
SAMPLES: dict[str, list[Object]] = {
    "claude-code": [
        {"type": "user", "uuid": "1", "parentUuid": None, "message": {"role": "user", "content": "Hi."}},
        {
            "type": "assistant",
            "uuid": "2",
            "parentUuid": "1",
            "message": {"id": "m", "role": "assistant", "model": "claude", "content": [_CALL], "usage": _USAGE},
        },
        {"type": "user", "uuid": "3", "parentUuid": "2", "message": {"role": "user", "content": [_RESULT]}},
        {
            "type": "system",
            "subtype": "compact_boundary",
            "uuid": "4",
            "logicalParentUuid": "3",
            "compactMetadata": {"preTokens": 9, "preservedMessages": {"allUuids": ["3"]}},
        },
        {"type": "attachment", "uuid": "5", "parentUuid": "4", "rendered": [{"content": "x"}]},
    ],
    "codex": [
        {"type": "session_meta", "payload": {"id": "s", "base_instructions": {"text": "x"}}},
        {"type": "turn_context", "payload": {"model": "gpt-5"}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"type": "input_text"}]}},
        {"type": "response_item", "payload": {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": _USAGE}}},
        {
            "type": "compacted",
            "payload": {"message": "x", "replacement_history": [{"type": "message", "role": "user"}]},
        },
    ],
    "pi": [
        {"type": "session", "id": "s", "cwd": "/w"},
        {"type": "message", "id": "1", "parentId": None, "message": {"role": "user", "content": [{"type": "text"}]}},
        {
            "type": "message",
            "id": "2",
            "parentId": "1",
            "message": {"role": "assistant", "content": [{"type": "toolCall", "id": "c"}], "usage": {"input": 9}},
        },
        {"type": "compaction", "id": "3", "parentId": "2", "summary": "x", "firstKeptEntryId": "2"},
    ],
    "opencode": [
        {
            "info": {"id": "s", "model": {"id": "m"}},
            "messages": [
                {"info": {"id": "1", "role": "user", "time": {"created": 1}}, "parts": [{"type": "text", "text": "x"}]},
                {
                    "info": {"id": "2", "role": "assistant", "tokens": {"input": 9, "cache": {"read": 1}}},
                    "parts": [{"type": "tool", "tool": "read", "state": {"status": "completed", "output": "x"}}],
                },
            ],
        }
    ],
    "cline": [
        {
            "sessionId": "s",
            "agent": "lead",
            "messages": [
                {"role": "user", "content": [{"type": "file", "path": "a", "content": "x"}], "metadata": {"kind": "x"}},
                {"role": "assistant", "content": [_CALL], "metrics": {"inputTokens": 9}, "modelInfo": {"id": "m"}},
            ],
        }
    ],
    "gemini-cli": [
        {"sessionId": "s", "projectHash": "h"},
        {"$set": {"messages": [{"id": "1", "type": "user", "content": [{"text": "x"}]}]}},
        {
            "id": "2",
            "type": "gemini",
            "content": "",
            "tokens": {"input": 9},
            "toolCalls": [{"id": "c", "name": "read", "args": {}, "result": [_RESPONSE]}],
        },
        {"id": "3", "type": "user", "content": [_RESPONSE]},
    ],
    "messages": [{"model": "claude", "system": "x", "messages": [{"role": "assistant", "content": [_CALL]}]}],
    "ullage": [
        {"v": 1, "seq": 0, "id": "s", "type": "session", "format": "anthropic", "crc": "x"},
        {"v": 1, "seq": 1, "id": "1", "ts": "2026-11-15", "type": "message", "message": {"role": "user"}, "crc": "x"},
        {"v": 1, "seq": 1, "id": "2", "type": "compaction", "generation": 1, "ids": ["1"], "archive": None, "crc": "x"},
    ],
}
"""The least that each program writes, with something of everything that is looked at."""
