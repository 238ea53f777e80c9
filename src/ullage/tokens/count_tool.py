"""The tool `count-tokens` as a source of tools. It counts with the meter passed in and does not depend on MCP."""

import difflib
import json
from dataclasses import dataclass

from ullage.errors import InvalidArguments, UnknownTool
from ullage.models import DEFAULT_MODEL
from ullage.tool import Call, Json, JsonObject, Listing, Reply, Tool, ToolSource

from .count import Count, patiently
from .meter import Meter

__all__ = ["CountSource", "count_to_json"]

_TOOL = Tool(
    name="count-tokens",
    aliases=("count_tokens",),
    description="Count the tokens of a text for a model, with the error band.",
    input_schema={
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "model": {"type": "string", "description": "Model id or alias", "default": DEFAULT_MODEL},
        },
        "required": ["text"],
        "additionalProperties": False,
    },
    annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
)
_NAMES = (_TOOL.name, *_TOOL.aliases)
_ARGUMENTS = ("text", "model")
_COUNT = "dev.ullage/count"
"""Key in a reply's metadata, which costs a model nothing: the card matched, the method, and the band."""


@dataclass(frozen=True, slots=True)
class CountSource(ToolSource):
    """The source of the tool `count-tokens`."""

    meter: Meter

    async def tools(self) -> Listing:
        return Listing((_TOOL,), revision="1")

    async def call(self, call: Call) -> Reply:
        if call.tool not in _NAMES:
            raise UnknownTool(f"no tool is called `{call.tool}`", options=_NAMES)
        text, model = _read_arguments(call.arguments)
        match = self.meter.match(model)
        count = await patiently(self.meter.steps(text, model))
        answer = {"token_count": count.tokens, "model": model, "method": count.method.value}
        if match.warning:
            answer |= {"resolved": match.card.id, "warning": match.warning}
        return Reply.text(
            json.dumps(answer, ensure_ascii=False, separators=(",", ":")),
            meta={_COUNT: {"resolved": match.card.id, **count_to_json(count)}},
            json_lists=(),
        )


def count_to_json(count: Count) -> dict[str, Json]:
    """Return the method and band of a count, in the form used by every JSON output of Ullage."""
    return {
        "method": count.method.value,
        "exact": count.band is None,
        "error_band": None if count.band is None else {"low": count.low, "high": count.high},
    }


def _read_arguments(arguments: JsonObject) -> tuple[str, str]:
    unknown = [key for key in arguments if key not in _ARGUMENTS]
    if unknown:
        nearest = difflib.get_close_matches(unknown[0], _ARGUMENTS, n=1)
        hint = f"did you mean `{nearest[0]}`?" if nearest else "it takes `text` and, if you like, `model`"
        raise _misfit(f"count-tokens has no argument `{unknown[0]}`", hint)
    text, model = arguments.get("text"), arguments.get("model")
    if "text" not in arguments:
        raise _misfit("there is no `text` to count", 'give {"text": "…"}')
    if not isinstance(text, str):
        raise _misfit("`text` must be a string", 'give {"text": "…"}')
    if model is not None and not isinstance(model, str):
        raise _misfit("`model` must be a string", "name a model, such as gpt-4o, or leave it out")
    return text, model or DEFAULT_MODEL


def _misfit(message: str, suggestion: str) -> InvalidArguments:
    return InvalidArguments(message, suggestion=suggestion, options=_ARGUMENTS)
