"""Reads requests to Amazon Bedrock's Converse API, by conversion to Anthropic's format.

Converse has the roles and the order of Anthropic's Messages API and names every block by its key (`{"text": …}`,
`{"toolUse": …}`) where Anthropic has a `type`. Each block is rewritten and read by the reader of that format, so the
request is marked `Format.ANTHROPIC`. A block that only Converse has is left unchanged and read as `Unknown`. The body
of a count-tokens call (`{"input": {"converse": …}}`) is unwrapped first.
"""

from binascii import a2b_base64
from collections.abc import Mapping
from contextlib import suppress
from json import dumps, loads
from typing import cast

from ullage.tool import Json

from .response import table_at, tables_at

__all__ = ["is_converse", "rewrite_converse", "unwrap_count_tokens"]

Table = Mapping[str, Json]

_BODY_KEYS = frozenset({"toolConfig", "inferenceConfig", "additionalModelRequestFields", "guardrailConfig"})
_BLOCK_KEYS = frozenset(
    {
        *("toolUse", "toolResult", "cachePoint", "reasoningContent", "citationsContent", "guardContent"),
        *("image", "document", "video", "audio", "searchResult"),
    }
)
_READ_KEYS = frozenset(
    {"modelId", "messages", "system", "toolConfig", "inferenceConfig", "additionalModelRequestFields", "outputConfig"}
)


def is_converse(body: Table) -> bool:
    """Return whether a body with `messages` is in Converse's format (or that of Nova's own API, which has the same
    blocks)."""
    if body.keys() & _BODY_KEYS:
        return True
    system: Table = {"content": body.get("system")}
    holders = [*tables_at(body, "messages"), system]
    blocks = [block for holder in holders for block in tables_at(holder, "content")]
    if any("type" in block for block in blocks):
        return False
    # A block has one key that names it, with the details below.
    return any("text" in block or any(isinstance(block.get(key), dict) for key in _BLOCK_KEYS) for block in blocks)


def unwrap_count_tokens(body: Table) -> Table:
    """Return the request inside the body of Bedrock's count-tokens call; any other body unchanged."""
    inner = body.get("input")
    if not isinstance(inner, dict):
        return body
    converse, invoked = inner.get("converse"), inner.get("invokeModel")
    if isinstance(converse, dict):
        return converse
    coded = invoked.get("body") if isinstance(invoked, dict) else None
    if not isinstance(coded, str):
        return body
    try:
        found: Json = loads(a2b_base64(coded))
    except ValueError:
        return body
    return found if isinstance(found, dict) else body


def rewrite_converse(body: Table) -> dict[str, Json]:
    """Return the request in the format of Anthropic's Messages API; keys without a counterpart are kept."""
    config, extra = table_at(body, "toolConfig"), table_at(body, "additionalModelRequestFields")
    rewritten: dict[str, Json] = {key: value for key, value in body.items() if key not in _READ_KEYS}
    rewritten |= {**table_at(body, "inferenceConfig"), **extra}
    if isinstance(model := body.get("modelId", body.get("model")), str):
        rewritten["model"] = model
    if isinstance(system := body.get("system"), list) and system:
        rewritten["system"] = _blocks(body, "system")
    messages: list[Json] = [
        {**message, "content": _blocks(message, "content")} if isinstance(message.get("content"), list) else {**message}
        for message in tables_at(body, "messages")
    ]
    rewritten["messages"] = messages
    tools: list[Json] = [tool for each in tables_at(config, "tools") if (tool := _tool(each)) is not None]
    if tools:
        rewritten["tools"] = tools
    if choice := table_at(config, "toolChoice"):
        kind = next(iter(choice))
        rewritten["tool_choice"] = {"type": kind, **table_at(choice, kind)}
    # Converse carries the schema of a structured answer as JSON text.
    answer = table_at(table_at(table_at(body, "outputConfig"), "textFormat"), "structure")
    schema = table_at(answer, "jsonSchema").get("schema")
    with suppress(ValueError):
        schema = cast("Json", loads(schema)) if isinstance(schema, str) else schema
    if schema:
        rewritten["output_format"] = {"type": "json_schema", "schema": schema}
    return rewritten


def _tool(tool: Table) -> Json:
    """Convert a tool definition. A cache point is not a tool, and a tool that Amazon runs is left unchanged."""
    if "cachePoint" in tool:
        return None
    spec = table_at(tool, "toolSpec")
    if not spec:
        return dict(tool)
    schema = table_at(spec, "inputSchema").get("json")
    kept: dict[str, Json] = {key: value for key, value in spec.items() if key != "inputSchema"}
    return {**kept, "input_schema": schema}


def _blocks(holder: Table, key: str) -> list[Json]:
    return [_block(block) for block in tables_at(holder, key) if "cachePoint" not in block]


def _block(block: Table) -> Json:
    if "type" in block:
        return dict(block)
    if isinstance(block.get("text"), str):
        return {"type": "text", **block}
    kind = next(iter(block), "")
    inner = table_at(block, kind)
    match kind:
        case "toolUse":
            named: dict[str, Json] = {"name": inner.get("name"), "input": inner.get("input")}
            return {"type": "tool_use", "id": inner.get("toolUseId"), **named}
        case "toolResult":
            return {
                "type": "tool_result",
                "tool_use_id": inner.get("toolUseId"),
                "content": [
                    # A JSON value becomes its text.
                    {"type": "text", "text": dumps(item["json"], ensure_ascii=False)}
                    if "json" in item
                    else _block(item)
                    for item in tables_at(inner, "content")
                ],
                "is_error": inner.get("status") == "error",
            }
        case "reasoningContent":
            said, sealed = table_at(inner, "reasoningText"), inner.get("redactedContent")
            signature: dict[str, Json] = {"signature": said["signature"]} if "signature" in said else {}
            redacted: Json = {"type": "redacted_thinking", "data": sealed} if isinstance(sealed, str) else dict(block)
            is_shown = isinstance(said.get("text"), str)
            return {"type": "thinking", "thinking": said["text"], **signature} if is_shown else redacted
        case "image" | "document" | "video" | "audio":
            return _medium(kind, inner) or dict(block)
        case "citationsContent":
            texts = [text for item in tables_at(inner, "content") if isinstance(text := item.get("text"), str)]
            return {"type": "text", "text": "".join(texts)}
        case "guardContent":
            text = table_at(inner, "text").get("text")
            image = _medium("image", table_at(inner, "image")) or dict(block)
            return {"type": "text", "text": text} if isinstance(text, str) else image
        case "searchResult":
            return {"type": "search_result", **inner}
        case _:
            return dict(block)


def _medium(kind: str, inner: Table) -> Json:
    """Convert an image, document, video or audio block: its bytes in base64, its text, or its S3 address."""
    source, form = table_at(inner, "source"), inner.get("format")
    about: dict[str, Json] = {"title": inner["name"]} if kind == "document" and "name" in inner else {}
    about |= {key: inner[key] for key in ("context", "citations") if key in inner}
    if isinstance(data := source.get("bytes"), str):
        if form in _TEXT_FORMATS:
            with suppress(ValueError):  # bytes that are no text stay bytes
                text = a2b_base64(data).decode("utf-8")
                return {"type": kind, "source": {"type": "text", "media_type": "text/plain", "data": text}, **about}
        media_type = f"{'application' if kind == 'document' else kind}/{form}"
        return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}, **about}
    if isinstance(text := source.get("text"), str):
        return {"type": kind, "source": {"type": "text", "media_type": "text/plain", "data": text}, **about}
    if chunks := tables_at(source, "content"):
        return {"type": kind, "source": {"type": "content", "content": [_block(chunk) for chunk in chunks]}, **about}
    address = table_at(source, "s3Location").get("uri")
    return {"type": kind, "source": {"type": "url", "url": address}, **about} if isinstance(address, str) else None


_TEXT_FORMATS = ("txt", "md", "csv", "html")
