"""What does the model see of held results?

One definition, written to be short: every request carries it. What it does, `reader` knows.
"""

from ullage.tool import Json, Tool

__all__ = ["READ"]

_LOADED: dict[str, Json] = {"_meta": {"anthropic/alwaysLoad": True}}
"""Has Claude Code show it at once, as the tools that find and call. No client shows this to its model."""

READ = Tool(
    name="read_result",
    description="Read more of a cut result: from offset, by grep (regex), JSON path, or SQL on table `result`.",
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
