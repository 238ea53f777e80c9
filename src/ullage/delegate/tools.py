"""What does a model see of delegating?

Short definitions, since every request may carry them. What they do is told in the files that answer them.
"""

from ullage.tool import Json, Tool

__all__ = ["CONSENSUS", "DIFF", "RUN", "TESTS", "TOOLS"]

_ASKS: dict[str, Json] = {"readOnlyHint": True, "openWorldHint": True, "idempotentHint": False}
"""Asking a model changes nothing here, though it costs."""

_PROMPT: dict[str, Json] = {"type": "string"}
_MODEL: dict[str, Json] = {"type": "string", "description": "Alias or model id"}
_CAPS: dict[str, Json] = {
    "type": "object",
    "properties": {"maxOutputTokens": {"type": "integer", "minimum": 1}},
    "additionalProperties": False,
}
_METADATA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "language": {"type": "string"},
        "tier": {"type": "string"},
        "domain": {"enum": ["code", "creative", "default"]},
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
    },
    "additionalProperties": False,
}
_CONTEXT: dict[str, Json] = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Handles of held results or passages, put before the prompt",
}
_TEXTS: dict[str, Json] = {"type": "array", "items": {"type": "string"}}
_CONTINUE: dict[str, Json] = {"continue": {"type": "string", "description": "Earlier answer, or `last`"}}
_FILES: dict[str, Json] = {"type": ["array", "object"], "description": "Paths, or path to content"}


def _schema(required: list[Json], **properties: Json) -> dict[str, Json]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


RUN = Tool(
    name="delegate.run",
    aliases=("delegate_run",),
    description="Have another model, chosen by policy, answer a prompt.",
    input_schema=_schema(
        ["prompt"],
        prompt=_PROMPT,
        forceModel=_MODEL,
        metadata=_METADATA,
        caps=_CAPS,
        context=_CONTEXT,
        files={**_TEXTS, "description": "Paths"},
        images=_TEXTS,
        **_CONTINUE,
        schema={"type": "object"},
    ),
    annotations=_ASKS,
)
DIFF = Tool(
    name="delegate.diff",
    aliases=("delegate_diff",),
    description="Have a model write a unified patch for these files, checked to apply.",
    input_schema=_schema(["prompt", "files"], prompt=_PROMPT, files=_FILES, forceModel=_MODEL),
    annotations=_ASKS,
)
TESTS = Tool(
    name="delegate.tests",
    aliases=("delegate_tests",),
    description="Have a model write tests for these files. Nothing is run.",
    input_schema=_schema(["files"], prompt=_PROMPT, files=_FILES, framework={"type": "string"}, forceModel=_MODEL),
    annotations=_ASKS,
)
CONSENSUS = Tool(
    name="delegate.consensus",
    aliases=("delegate_consensus",),
    description="Ask several models the same; says how far they agree.",
    input_schema=_schema(
        ["prompt"],
        prompt=_PROMPT,
        models={"type": "array", "items": {"type": "string"}, "minItems": 2},
        judge={**_MODEL, "description": "Writes one answer of all"},
        caps=_CAPS,
    ),
    annotations=_ASKS,
)
TOOLS = (RUN, DIFF, TESTS, CONSENSUS)
