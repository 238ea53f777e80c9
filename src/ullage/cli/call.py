"""Call a tool of any server behind Ullage, or of Ullage itself, by its name.

Arguments are a JSON object, or `-` to read one from standard input. Deny rules apply; for tools with an `ask` rule the
command asks on the terminal.
"""

import argparse
import json
from typing import Any, cast

from ullage.app.build_gateway import Gateway
from ullage.errors import ClientCannot, InvalidArguments, UllageError
from ullage.gateway import META, NAMES
from ullage.tool import Block, Call, Json, JsonObject, Reply

from .input_files import is_watched_input, read_piped
from .load_settings import add_flags, caller_of, read, read_typed_line, say, with_gateway
from .output import complain, emit, emit_json, how_many, plain, show_running

__all__ = ["arguments", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tool", metavar="TOOL", help="name as listed by `ullage tools`, or SERVER__TOOL")
    parser.add_argument(
        "arguments", nargs="?", default="{}", metavar="JSON", help="JSON object, or - to read one from standard input"
    )
    parser.add_argument("--json", action="store_true", help="print the complete result as JSON")
    add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    text = read_piped() if arguments.arguments == "-" else arguments.arguments
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        raise InvalidArguments(
            f"the arguments are not JSON: {error}", suggestion="""write '{"name": "value"}'"""
        ) from error
    if not isinstance(value, dict):
        raise InvalidArguments("the arguments must be a JSON object", suggestion="""write '{"name": "value"}'""")
    given = cast("dict[str, Json]", value)

    is_asking = False

    async def ask(method: str, params: JsonObject) -> JsonObject:
        nonlocal is_asking
        is_asking = True
        try:
            return await _ask(method, params)
        finally:
            is_asking = False

    async def call(gateway: Gateway) -> Reply:
        caller = caller_of(gateway, arguments.client)
        source = gateway.flagged(arguments.client).source
        # `call_tool_write` repairs and checks the arguments. A person who types the command consents to writing too.
        made = (
            Call(tool=arguments.tool, arguments=given, caller=caller, ask=ask)
            if arguments.tool in NAMES
            else Call(
                tool="call_tool_write",
                arguments={"tool_name": arguments.tool, "parameters": given},
                caller=caller,
                ask=ask,
            )
        )
        async with show_running(f"calling {plain(arguments.tool)}", lambda: is_asking):
            return await source.call(made)

    reply = with_gateway(read(arguments), call)
    if arguments.json:
        emit_json(_json(reply))
    else:
        refusal = _refusal(reply)
        if refusal is not None:
            complain(refusal, as_json=False)
        else:
            for block in reply.content:
                emit(_format_block(block))
            if not reply.content and reply.structured is not None:
                emit_json(reply.structured.value)
            meta = cast("Any", reply.meta.get(META))
            if meta is not None:
                tokens, took = meta["tokens"], meta["performance"]["executionTimeMs"]
                failed = "the tool failed; " if reply.is_error else ""
                say(
                    f"{failed}{how_many(tokens['estimated'], 'token')} ({tokens['approximationMethod']}), {took:.0f} ms"
                )
    return 1 if reply.is_error else 0


async def _ask(method: str, params: JsonObject) -> JsonObject:
    """Ask on the terminal for what can be answered with yes or no."""
    schema = params.get("requestedSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    found = properties if isinstance(properties, dict) else {}
    properties = {name: one for name, one in found.items() if isinstance(one, dict)}
    if method != "elicitation/create" or not properties or not is_watched_input():
        raise ClientCannot(f"`{method}` cannot be answered here", suggestion="use a client that can ask")
    say(str(params.get("message", "")))
    if any(schema.get("type") != "boolean" for schema in properties.values()):
        raise ClientCannot("this form has more than boxes to tick", suggestion="use a client that can show it")
    said = (await read_typed_line("yes or no? ")).strip().lower() in ("y", "yes")
    return {"action": "accept" if said else "decline", "content": dict.fromkeys(properties, said)}


def _refusal(reply: Reply) -> UllageError | None:
    """Return Ullage's own error in a reply; None if the tool itself failed."""
    text = reply.content[0].get("text") if reply.is_error and len(reply.content) == 1 else None
    try:
        said: Any = json.loads(str(text)) if text else None
        options = tuple(map(str, said["available_options"]))
        # The suggestion is written for a model; a person uses the verb.
        suggestion = str(said["suggestion"]).replace("`find_tool`", "`ullage find`")
        return UllageError(str(said["message"]), suggestion=suggestion, options=options)
    except (ValueError, KeyError, TypeError):
        return None


def _format_block(block: Block) -> str:
    if block.get("type") == "text":
        return str(block.get("text"))
    data = block.get("data")
    if isinstance(data, str):
        return f"[{block.get('type')}, {block.get('mimeType')}, {len(data):,} characters of base64]"
    return json.dumps(block, ensure_ascii=False)


def _json(reply: Reply) -> dict[str, Json]:
    result: dict[str, Json] = {"content": [dict(block) for block in reply.content], "isError": reply.is_error}
    if reply.structured is not None:
        result["structuredContent"] = reply.structured.value
    return {**result, "_meta": dict(reply.meta)}
