"""What does the model see of held results?

One definition, written to be short: every request carries it. What it does, `reader` knows.
"""

from ullage.tool import Json, Tool

__all__ = ["READ"]

_LOADED: dict[str, Json] = {"_meta": {"anthropic/alwaysLoad": True}}
"""Has Claude Code show it at once, as the tools that find and call. No client shows this to its model."""

READ = Tool(
    name="read_result",
    description=(
        "Read more of a result that was cut: from offset on, matching grep (regex), at a JSON path, or by SQL on table "
        "`result`."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "handle": {"type": "string"},
            "offset": {"type": "integer"},
            "limit": {"type": "integer"},
            "grep": {"type": "string"},
            "path": {"type": "string"},
            "sql": {"type": "string"},
            "max_tokens": {"type": "integer"},
        },
        "required": ["handle"],
    },
    annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
    extra=_LOADED,
)
