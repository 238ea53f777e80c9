"""How do our values look as the protocol's JSON?

Replies and tools go out as plain mappings, so that a block of an unknown kind or a key nobody here has heard of is not
lost in a typed model on the way. Nothing is sent from here.
"""

import json

from ullage.errors import UllageError
from ullage.tool import Json, Reply, Tool

__all__ = ["COMPLETE", "error_reply", "reply_to_wire", "tool_to_wire"]

COMPLETE = "complete"
"""The protocol's word for a result that is one; the SDK leaves it out for clients of the earlier era."""


def tool_to_wire(tool: Tool) -> dict[str, Json]:
    optional: dict[str, Json] = {
        "title": tool.title,
        "description": tool.description,
        "outputSchema": None if tool.output_schema is None else dict(tool.output_schema),
        "annotations": dict(tool.annotations) or None,
    }
    present = {key: value for key, value in optional.items() if value is not None}
    return {**tool.extra, "name": tool.name, **present, "inputSchema": dict(tool.input_schema)}


def reply_to_wire(reply: Reply) -> dict[str, Json]:
    result: dict[str, Json] = {"_meta": dict(reply.meta)} if reply.meta else {}
    if reply.needs is not None:
        needed: dict[str, Json] = {"resultType": "input_required", "inputRequests": dict(reply.needs.requests)}
        return result | needed | ({} if reply.needs.state is None else {"requestState": reply.needs.state})
    result["resultType"] = COMPLETE
    result["content"] = [dict(block) for block in reply.content]
    result["isError"] = reply.is_error
    if reply.structured is not None:
        result["structuredContent"] = reply.structured.value
    return result


def error_reply(error: UllageError) -> Reply:
    """The one shape of a failed result (contract U:errors)."""
    return Reply.text(json.dumps(error.wire(), ensure_ascii=False), is_error=True)
