"""Parsing of a server's raw JSON.

Lists and results are read as they came, never through typed models: one definition without `type` must not cost a whole
list, nor a block of an unknown kind a whole reply. What is unusable is left out with a note; nothing here raises.
Nothing is sent from here, and a schema is checked only at its outermost level.

A client that reads lists through types refuses the whole list for one hint that is not a boolean. Parts that the
protocol defines and whose type is wrong are therefore left out here, by name; unknown parts pass. Each reader checks
its own mandatory parts.
"""

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from ullage.tool import (
    Block,
    Contents,
    Introduction,
    Json,
    JsonObject,
    Listing,
    Needs,
    PromptMessages,
    Reply,
    Structured,
    Tool,
    is_larger,
    text_block,
)

from ..jsonrpc import is_deeper

__all__ = [
    "BLOCK",
    "INPUT_REQUIRED",
    "PROMPT",
    "RESOURCE",
    "TOOL",
    "Fit",
    "as_object",
    "as_text",
    "capabilities_of",
    "fitted",
    "introduction_of",
    "listing_of",
    "passed_on",
    "read_completion",
    "read_contents",
    "read_items",
    "read_prompt",
    "read_reply",
    "read_tools",
]

_OWN = "dev.ullage/"
"""Prefix of the `_meta` keys that only Ullage writes."""

Fit = Callable[[Json], Json]
"""Filter of a part: returns the part itself, less of it, or None for nothing."""


def passed_on(meta: Mapping[str, Json]) -> dict[str, Json]:
    """Return a `_meta` without the keys that only Ullage may write."""
    return {key: value for key, value in meta.items() if not key.startswith(_OWN)}


def fitted(raw: dict[str, Json], fits: Mapping[str, Fit]) -> tuple[dict[str, Json], list[str]]:
    """Return the mapping without its invalid parts, and their names; the same object where all are valid."""
    kept = {key: None if value is None else fits[key](value) for key, value in raw.items() if key in fits}
    changed = [key for key, value in kept.items() if value is None or value is not raw[key]]
    if not changed:
        return raw, []
    whole = {key: kept.get(key, value) for key, value in raw.items() if key not in kept or kept[key] is not None}
    # A null has no content, and Ullage's own keys are dropped silently.
    return whole, [key for key in changed if raw[key] is not None and (key != "_meta" or kept[key] is None)]


def _text(value: Json) -> Json:
    return value if isinstance(value, str) else None


def _flag(value: Json) -> Json:
    return value if isinstance(value, bool) else None


def _object(value: Json) -> Json:
    return value if isinstance(value, dict) else None


def _whole_number(value: Json) -> Json:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if is_number and cast("float", value) == int(cast("float", value)) else None


def _priority(value: Json) -> Json:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and 0 <= cast("float", value) <= 1 else None


def _meta(value: Json) -> Json:
    if not isinstance(value, dict):
        return None
    return passed_on(value) if any(key.startswith(_OWN) for key in value) else value


def _among(*words: str) -> Fit:
    return lambda value: value if value in words else None


def _list_of(*words: str) -> Fit:
    """Return the filter for a list of texts, limited to `words` where any are given."""

    def fit(value: Json) -> Json:
        items = value if isinstance(value, list) else [None]
        return value if all(isinstance(one, str) and (not words or one in words) for one in items) else None

    return fit


def _with(fits: Mapping[str, Fit]) -> Fit:
    return lambda value: fitted(value, fits)[0] if isinstance(value, dict) else None


def _each_with(name: str, fits: Mapping[str, Fit]) -> Fit:
    """Return the filter for a list of objects with a text under that name; other items are left out."""

    def fit(value: Json) -> Json:
        if not isinstance(value, list):
            return None
        kept = [fitted(one, fits)[0] for one in value if isinstance(one, dict) and isinstance(one.get(name), str)]
        return value if kept == value else cast("Json", kept)

    return fit


_ICONS = _each_with("src", {"mimeType": _text, "sizes": _list_of(), "theme": _among("light", "dark")})
_HINTS = _with(
    {
        "title": _text,
        "readOnlyHint": _flag,
        "destructiveHint": _flag,
        "idempotentHint": _flag,
        "openWorldHint": _flag,
    }
)
_NOTES = _with({"audience": _list_of("user", "assistant"), "priority": _priority, "lastModified": _text})
_ANY: dict[str, Fit] = {"title": _text, "description": _text, "icons": _ICONS, "_meta": _meta}

TOOL: Mapping[str, Fit] = {
    **_ANY,
    "annotations": _HINTS,
    "outputSchema": _object,
    "execution": _with({"taskSupport": _among("forbidden", "optional", "required")}),
}
RESOURCE: Mapping[str, Fit] = {**_ANY, "annotations": _NOTES, "mimeType": _text, "size": _whole_number}
"""Also for a template, and for a link to a resource."""
PROMPT: Mapping[str, Fit] = {
    **_ANY,
    "arguments": _each_with("name", {"title": _text, "description": _text, "required": _flag}),
}
BLOCK: Mapping[str, Fit] = {"annotations": _NOTES, "_meta": _meta}

INPUT_REQUIRED = "input_required"
_COMPLETE = "complete"
"""The protocol's word for a finished result; `INPUT_REQUIRED` is the one for a result that needs input first."""

_DEEPEST = 100
"""Maximum nesting of a definition; deeper ones would break code that walks them, and real ones have some twenty
levels."""
_VALUES, _LETTERS = 20_000, 400_000
"""JSON values and characters of a definition beyond which a tool is listed with its name and first sentence only. The
largest of 2,638 recorded definitions has 89,000 characters.
"""
_SENTENCES = 1_000
"""Maximum characters of such a tool's description."""
_LONGEST_NAME = 1_000
"""Characters of a name beyond which a tool is left out; the protocol recommends 128 at most."""
_LONGEST_INSTRUCTIONS = 200_000
"""Characters of a server's instructions beyond which the rest is left out."""
_ABILITY_VALUES, _ABILITY_LETTERS = 500, 20_000
"""JSON values and characters beyond which one of a server's capabilities is read as an empty object."""
_MOST_ABILITIES = 50
_META_VALUES, _META_LETTERS = 2_000, 200_000
"""JSON values and characters of a result's metadata beyond which members of it are left out."""
_LEFT_OUT = "dev.ullage/left_out"
"""Key of `_meta` that lists the names of members that were left out."""
_ITEM_VALUES, _ITEM_LETTERS = 2_000, 100_000
"""The same limits for a prompt, a resource or a template; beyond them only names and addresses are kept."""
_MOST_ITEMS = {"name": 2_000, "uri": 5_000, "uriTemplate": 200}
"""Maximum prompts, resources and templates listed of one server."""
_LIST_LETTERS = 4_000_000
"""Characters of such a list beyond which the rest of it is left out."""
_ITEM_KEYS = ("name", "uri", "uriTemplate", "mimeType", "size")
_BLOCKS = 2_000
"""Content blocks beyond which texts are joined and other blocks left out; also the limit of messages and contents."""
_COMPLETIONS = 100
"""Maximum values of a completion, as in the protocol."""
_SERVER_INFO = "io.modelcontextprotocol/serverInfo"
"""Names the server that answered on this hop; on the next hop it is Ullage."""
_KNOWN = frozenset({"name", "title", "description", "inputSchema", "outputSchema", "annotations"})


def as_object(value: object) -> dict[str, Json]:
    """Return a mapping as it is, anything else as an empty one."""
    return cast("dict[str, Json]", value) if isinstance(value, dict) else {}


def as_text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def listing_of(tools: Iterable[Tool]) -> Listing:
    """Return the tools as a listing whose revision is a hash of their definitions, in order."""
    held = tuple(tools)
    digest = hashlib.sha256()
    for tool in held:
        parts = [tool.name, tool.title, tool.description, tool.input_schema, tool.output_schema, tool.annotations]
        digest.update(json.dumps([*parts, tool.extra], sort_keys=True).encode())
    return Listing(tools=held, revision=digest.hexdigest()[:32])


def read_tools(items: Iterable[Json], note: Callable[[str], None]) -> tuple[Tool, ...]:
    """Return the usable tools; `note` is called for every other."""
    found: dict[str, Tool] = {}
    for item in items:
        tool = _read_tool(item, note)
        if tool is not None and found.setdefault(tool.name, tool) is not tool:
            note(f"lists the tool `{_short(tool.name)}` twice; the first is kept")
    return tuple(found.values())


def _read_tool(item: Json, note: Callable[[str], None]) -> Tool | None:
    raw = as_object(item)
    name = raw.get("name")
    if not isinstance(name, str) or not name:
        note("lists a tool without a name; it is left out")
        return None
    if len(name) > _LONGEST_NAME:
        note(f"lists the tool `{_short(name)}` with a name of {len(name):,} characters; it is left out")
        return None
    if is_larger(raw, _VALUES, _LETTERS):
        note(
            f"lists the tool `{_short(name)}` with a definition of more than {_VALUES:,} values or {_LETTERS:,} "
            "characters; it is shown by its name and first sentence, and its arguments are not checked"
        )
        # Of a definition that is too large to process, keep enough to choose the tool and to call
        # it.
        description, annotations = as_text(raw.get("description")), raw.get("annotations")
        kept: dict[str, Json] = {"name": raw["name"], "inputSchema": {"type": "object"}}
        if description is not None:
            kept["description"] = description if len(description) <= _SENTENCES else description[: _SENTENCES - 1] + "…"
        if annotations is not None and not is_larger(annotations, 100, _SENTENCES):
            kept["annotations"] = annotations
        raw = kept
    if is_deeper(raw, _DEEPEST):
        note(f"lists the tool `{_short(name)}` with a definition nested {_DEEPEST} deep; it is left out")
        return None
    raw = _fitted(raw, TOOL, f"the tool `{_short(name)}`", note)
    schema, wrong = _input_schema(raw.get("inputSchema"))
    if wrong:
        note(f"lists the tool `{_short(name)}` with {wrong}")
    if schema is None:
        return None
    output = raw.get("outputSchema")
    return Tool(
        name=name,
        input_schema=schema,
        description=as_text(raw.get("description")),
        title=as_text(raw.get("title")),
        output_schema=cast("JsonObject", output) if isinstance(output, dict) else None,
        annotations=as_object(raw.get("annotations")),
        extra={key: value for key, value in raw.items() if key not in _KNOWN},
    )


def _fitted(raw: dict[str, Json], fits: Mapping[str, Fit], what: str, note: Callable[[str], None]) -> dict[str, Json]:
    whole, wrong = fitted(raw, fits)
    if wrong:
        note(f"lists {what} with {', '.join(f'`{key}`' for key in wrong)} that cannot be meant; left out")
    return whole


def _input_schema(schema: Json) -> tuple[JsonObject | None, str | None]:
    """Return a schema of type object, and what was wrong with the original; None where the schema is unusable."""
    if schema is None:
        return {"type": "object"}, "no input schema; it is taken to have no parameters"
    if not isinstance(schema, dict):
        return None, "an input schema that is not an object; it is left out"
    kind = schema.get("type")
    if kind is not None and kind != "object" and not (isinstance(kind, list) and "object" in kind):
        return None, f"a schema of type `{_short(json.dumps(kind))}` where arguments are an object; it is left out"
    mended: dict[str, Json] = {**schema, "type": "object"}
    if not isinstance(schema.get("$schema", ""), str):
        del mended["$schema"]
    properties = schema.get("properties")
    if properties is not None:
        mended["properties"] = {
            name: one if isinstance(one, dict | bool) else {} for name, one in as_object(properties).items()
        }
    required = schema.get("required")
    if required is not None:
        mended["required"] = [one for one in required if isinstance(one, str)] if isinstance(required, list) else []
    wrong = [key for key in ("type", "properties", "required", "$schema") if schema.get(key) != mended.get(key)]
    if wrong:
        return mended, f"a schema whose {', '.join(f'`{key}`' for key in wrong)} cannot be meant; it is mended"
    return schema, None


def read_items(items: Sequence[Json], key: str, note: Callable[[str], None]) -> tuple[JsonObject, ...]:
    """Return the resources, templates or prompts that have their `key`; the first of several with the same one.

    A list that is too long is cut: what is not listed can still be read by its address.
    """
    most, left = _MOST_ITEMS[key], _LIST_LETTERS
    found: dict[str, JsonObject] = {}
    for number, item in enumerate(items):
        raw = as_object(item)
        name = raw.get(key)
        if not isinstance(name, str) or not name:
            note(f"lists an item without `{key}`; it is left out")
        elif name not in found:
            if len(found) == most or left < 0:
                note(f"lists {len(items):,} items with a `{key}`, too many or too long; the first {number:,} are kept")
                break
            found[name] = _read_item(raw, name, PROMPT if key == "name" else RESOURCE, note)
            left -= _letters(found[name])
    return tuple(found.values())


def _letters(value: Json | JsonObject) -> int:
    """Return the characters of a value that is known to be small."""
    if isinstance(value, Mapping):
        return sum(len(key) + _letters(inner) for key, inner in value.items())
    if isinstance(value, list):
        return sum(map(_letters, value))
    return len(value) if isinstance(value, str) else 8


def _read_item(raw: dict[str, Json], key: str, fits: Mapping[str, Fit], note: Callable[[str], None]) -> dict[str, Json]:
    if is_larger(raw, _ITEM_VALUES, _ITEM_LETTERS):
        note(f"lists `{_short(key)}` with a definition that is too large; its name and address are kept")
        raw = {key: value for key, value in raw.items() if key in _ITEM_KEYS and not is_larger(value, 0, _SENTENCES)}
    whole = _fitted(raw, fits, f"`{_short(key)}`", note)
    if isinstance(whole.get("name"), str):
        return whole
    note(f"lists `{_short(key)}` without a name; it is named so")
    return {**whole, "name": key}


def read_reply(result: Mapping[str, Json]) -> Reply:
    needs = _read_needs(result)
    if needs is not None:
        return Reply(needs=needs, meta=_raw_meta(result))
    if "content" not in result and isinstance(kind := result.get("resultType"), str) and kind != _COMPLETE:
        return Reply(extension=result, meta=_raw_meta(result))
    return Reply(
        content=_read_content(result),
        structured=Structured(result["structuredContent"]) if "structuredContent" in result else None,
        meta=_raw_meta(result),
        is_error=result.get("isError") is True,
    )


def _raw_meta(result: Mapping[str, Json]) -> JsonObject:
    meta = as_object(result.get("_meta"))
    if not meta:
        return meta
    kept = {key: value for key, value in passed_on(meta).items() if key != _SERVER_INFO}
    return _smaller_meta(kept) if is_larger(kept, _META_VALUES, _META_LETTERS) else kept


def _smaller_meta(meta: dict[str, Json]) -> dict[str, Json]:
    """Return the members that are small enough to pass on, in order, and the names of some of the others."""
    kept: dict[str, Json] = {}
    left_out: list[Json] = []
    for key, value in itertools.islice(meta.items(), _META_VALUES):
        if len(key) > _SENTENCES or is_larger(value, _META_VALUES // 20, _META_LETTERS // 20) or len(kept) >= 20:
            left_out.append(_short(key))
        else:
            kept[key] = value
    return {**kept, _LEFT_OUT: left_out[:20]}


def _read_content(result: Mapping[str, Json]) -> tuple[Block, ...]:
    content = result.get("content")
    if content is None and "toolResult" in result:
        # The form of the protocol's first drafts; some servers still use it.
        content = result["toolResult"]
    if content is None:
        return ()
    items = content if isinstance(content, list) else [content]
    return tuple(_read_block(item) for item in (items if len(items) <= _BLOCKS else _join_texts(items)))


def _join_texts(items: Sequence[Json]) -> list[Json]:
    """Reduce blocks too numerous to pass on singly: their texts as one block, then the others up to the limit."""
    texts = [item["text"] for item in items if isinstance(item, dict) and isinstance(item.get("text"), str)]
    others = [item for item in items if not (isinstance(item, dict) and isinstance(item.get("text"), str))]
    joined: list[Json] = [{"type": "text", "text": "\n".join(cast("list[str]", texts))}] if texts else []
    if len(others) > _BLOCKS:
        joined.append({"type": "text", "text": f"[{len(others) - _BLOCKS} more content blocks were left out]"})
    return [*joined, *others[:_BLOCKS]]


def _read_block(item: Json) -> Block:
    if isinstance(item, dict) and isinstance(kind := item.get("type"), str):
        whole = fitted(item, RESOURCE if kind == "resource_link" else BLOCK)[0]
        if kind == "resource_link" and not isinstance(whole.get("name"), str):
            return {**whole, "name": as_text(whole.get("uri")) or ""}
        return whole
    return text_block(item if isinstance(item, str) else json.dumps(item, ensure_ascii=False))


def _read_needs(result: Mapping[str, Json]) -> Needs | None:
    if result.get("resultType") != INPUT_REQUIRED:
        return None
    return Needs(as_object(result.get("inputRequests")), as_text(result.get("requestState")))


def read_contents(result: Mapping[str, Json]) -> Contents:
    kept, left_out = _objects(result.get("contents"))
    contents = [fitted(one, BLOCK)[0] for one in kept]
    if left_out:
        uri = (as_text(kept[0].get("uri")) or "") if kept else ""
        contents.append({"uri": uri, "mimeType": "text/plain", "text": f"[{left_out:,} more contents were left out]"})
    return Contents(contents=tuple(contents), meta=_raw_meta(result), needs=_read_needs(result))


def read_prompt(result: Mapping[str, Json]) -> PromptMessages:
    kept, left_out = _objects(result.get("messages"))
    messages = [_read_message(one) for one in kept]
    if left_out:
        said = dict(text_block(f"[{left_out:,} more messages of this prompt were left out]"))
        messages.append({"role": "user", "content": said})
    return PromptMessages(
        messages=tuple(messages),
        description=as_text(result.get("description")),
        meta=_raw_meta(result),
        needs=_read_needs(result),
    )


def _read_message(message: dict[str, Json]) -> JsonObject:
    content = message.get("content")
    block = _read_block(content) if isinstance(content, dict) else content
    return message if block is content else {**message, "content": cast("Json", block)}


def read_completion(result: Mapping[str, Json]) -> JsonObject:
    """Return at most as many values as the protocol allows; other members only where they are small."""
    completion = as_object(result.get("completion"))
    values = completion.get("values")
    listed = values if isinstance(values, list) else []
    kept: list[Json] = [one for one in listed[:_COMPLETIONS] if not is_larger(one, 0, _SENTENCES)]
    said = {key: one for key, one in completion.items() if key != "values"}
    if is_larger(said, _META_VALUES, _META_LETTERS):
        said = {key: said[key] for key in ("total", "hasMore") if key in said and not is_larger(said[key], 0, 0)}
    found: dict[str, Json] = {**said, "values": kept}
    return {**found, "hasMore": True} if len(kept) < len(listed) else found


def _objects(value: Json) -> tuple[list[dict[str, Json]], int]:
    """Return the objects in a list up to the limit, and how many items were not looked at."""
    items = value if isinstance(value, list) else []
    kept = [item for item in items[:_BLOCKS] if isinstance(item, dict)]
    return kept, max(0, len(items) - _BLOCKS)


def introduction_of(info: object, instructions: object, *, otherwise: str) -> Introduction:
    """Return what a server declared about itself; `otherwise` is its name where it declared none."""
    said = as_object(info)
    name, version, title = (_cut(as_text(said.get(key)), _SENTENCES) for key in ("name", "version", "title"))
    return Introduction(
        name=name or otherwise,
        version=version,
        title=title,
        instructions=_cut(as_text(instructions), _LONGEST_INSTRUCTIONS),
    )


def capabilities_of(said: object) -> dict[str, Json]:
    """Return the capabilities that a server declared; one of unusual size counts as declared, without its details."""
    declared = itertools.islice(as_object(said).items(), _MOST_ABILITIES)
    return {
        ability: {} if is_larger(parts, _ABILITY_VALUES, _ABILITY_LETTERS) else parts
        for ability, parts in declared
        if len(ability) <= _LONGEST_NAME
    }


def _cut(text: str | None, most: int) -> str | None:
    return text if text is None or len(text) <= most else f"{text[: most - 1]}…"


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"
