"""What does each message of a conversation weigh to OpenAI, its framing included?

A message is a few marks around its text. A call is a message to a function, and its output one from it; several calls
at once are one call of `multi_tool_use.parallel` in chats with the older models. The numbers in a `Frame` were fitted
to recorded requests with the counts OpenAI reported. Tool definitions are weighed elsewhere.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from json import JSONDecodeError, dumps, loads
from typing import cast

from ullage.messages import Media, Message, Part, Text, Thinking, ToolCall, ToolDefinition, ToolResult, Unknown
from ullage.tool import Json

from ..count import ZERO, Count, Method, total
from ..weight import CountText
from .openai_media import weigh_media
from .openai_tools import render_section, render_tool

__all__ = ["Conversation", "Frame", "joined_text", "less", "slack"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """How many tokens one kind of model, through one API, puts around what a request says."""

    reply: int
    """The opening of the answer."""
    reply_slack: int = 0
    message: int = 4
    final: int = 0
    """More for an assistant's message, where models have channels."""
    tools: int
    """Beside the tools' own text, where a system message carries it."""
    tools_alone: int
    """The same, where there is no system message."""
    nameless: int = 0
    """Less for a tool without a description."""
    schema: int
    """Beside the answer format's own text."""
    schema_alone: int
    schema_named: bool = False
    """Whether the answer format's name opens the answer, too."""
    choice: int | None = None
    """What a forced tool adds beside its name; None where it adds nothing."""
    forced: bool = False
    """Whether a single tool counts as forced when any is required."""
    call: int
    output: int
    stored: int = 0
    """More for a call that the API finds again by its own id."""
    parallel: tuple[int, int] | None = None
    """Call and outputs, where several calls at once become one."""
    compact: bool = False
    """Whether a call's arguments are written anew, without spaces."""
    beside: int = 0
    """Less for each of several calls in one message."""
    call_slack: int = 0
    """How far a call was seen to be off; nothing where calls agreed to the token."""
    tools_sure: bool = False
    """Whether tools of familiar schemas agreed to the token on 98 of 100 requests."""


def joined_text(parts: Iterable[Part]) -> str:
    """The texts of a message; OpenAI sets them one after the other with nothing between."""
    return "".join(part.text for part in parts if isinstance(part, Text))


def less(whole: Count, part: Count) -> Count:
    """What is left of a count when a part of it is told apart."""
    tokens = max(0, whole.tokens - part.tokens)
    method = (whole + part).method
    if method is Method.EXACT:
        return Count.exact(tokens)
    low, high = whole.low - part.high, whole.high - part.low
    return Count(tokens=tokens, method=method, low=max(0, min(low, tokens)), high=max(high, tokens))


def slack(count: Count, below: int, above: int) -> Count:
    """The same number, within a band that was measured; exact no more where there is a band."""
    if not below and not above:
        return count
    method = (count + Count(tokens=0, method=Method.CALIBRATED, low=0, high=0)).method
    return Count(tokens=count.tokens, method=method, low=max(0, count.low - below), high=count.high + above)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Messages with what is needed to weigh them."""

    messages: Sequence[Message]
    frame: Frame
    model: str
    count: CountText

    def weigh(self) -> tuple[Count, ...]:
        """One count a message, in order."""
        together = self._gathered() if self.frame.parallel else {}
        names = {call.id: call.name for message in self.messages for call in _calls(message) if call.id}
        asked = self._asked()
        return tuple(
            together[place] if place in together else self._message(place, names, live=place > asked)
            for place in range(len(self.messages))
        )

    def _message(self, place: int, names: Mapping[str, str], *, live: bool) -> Count:
        message, alone = self.messages[place], self._is_alone(place)
        thoughts = (_thinking(part, live=live) for part in message.parts if isinstance(part, Thinking))
        others = (part for part in message.parts if not isinstance(part, (Text, Thinking)))
        whole = self._words(message) + total(thoughts) + total(self._part(part, names, alone=alone) for part in others)
        less_beside = self.frame.beside * len(_calls(message)) if len(_calls(message)) > 1 else 0
        return slack(less(whole, Count.exact(less_beside)), less_beside, less_beside)

    def _words(self, message: Message) -> Count:
        """The message's own text and marks; one that only calls, answers or reasons has none."""
        text = joined_text(message.parts)
        if not text and not all(isinstance(part, (Text, Media)) for part in message.parts):
            return ZERO
        name = self.count(f":{message.name}") if message.name else ZERO
        marks = self.frame.message + (self.frame.final if message.role == "assistant" else 0)
        return Count.exact(marks) + name + self.count(text)

    def _part(self, part: Part, names: Mapping[str, str], *, alone: bool) -> Count:
        match part:
            case ToolCall():
                return self._call(part, alone=alone)
            case ToolResult():
                return self._result(part, names)
            case Media():
                return weigh_media(part, self.model)
            case Unknown():
                return ZERO if _stored_id(part) else self._unknown(part)
            case Text() | Thinking():
                return ZERO

    def _call(self, call: ToolCall, *, alone: bool) -> Count:
        marks = self.frame.call + (self.frame.stored if alone else 0)
        said = _compact(call.arguments) if self.frame.compact else call.arguments
        whole = Count.exact(marks) + self.count(f".{call.name}") + self.count(said)
        return slack(whole, self.frame.call_slack, self.frame.call_slack)

    def _result(self, result: ToolResult, names: Mapping[str, str]) -> Count:
        name = names.get(result.call_id or "") or result.name or "function"
        words = Count.exact(self.frame.output) + self.count(name) + self.count(joined_text(result.parts))
        rest = (part for part in result.parts if not isinstance(part, Text))
        return words + total(self._part(part, names, alone=False) for part in rest)

    def _unknown(self, part: Unknown) -> Count:
        """A part of no known kind as its JSON, or as a namespace of its own where it brings tools along."""
        tools = _brought_tools(part.value)
        if tools:
            return Count.within(self.count(render_section(tools)).tokens + _BRINGING_TOOLS, 0.2, Method.ESTIMATED)
        if isinstance(part.value, dict) and "arguments" in part.value:
            weight = self.count(dumps(part.value["arguments"], ensure_ascii=False)) + Count.exact(_CALLING_OUT)
        else:
            weight = self.count(dumps(part.value, ensure_ascii=False))
        return Count(tokens=weight.tokens, method=Method.ESTIMATED, low=0, high=2 * weight.high + 20)

    def _asked(self) -> int:
        """The place of the last thing a user said."""
        return max((place for place, message in enumerate(self.messages) if message.role == "user"), default=-1)

    def _is_alone(self, place: int) -> bool:
        """Whether a call bears the API's own id and has no call beside it."""
        around = self.messages[max(0, place - 1) : place + 2]
        stored = any(isinstance(part, Unknown) and _stored_id(part) for part in self.messages[place].parts)
        return stored and sum(bool(_calls(message)) for message in around) == 1

    def _gathered(self) -> dict[int, Count]:
        """What `_together` finds, by place; in some formats one message carries several results, and words beside."""
        found: dict[int, Count] = {}
        for place, count in self._together():
            if place in found:
                found[place] += count
            else:
                message = self.messages[place]
                beside = joined_text(message.parts) and not _calls(message)
                found[place] = count + self._words(message) if beside else count
        return found

    def _together(self) -> Iterator[tuple[int, Count]]:
        """Messages with several calls, and the results that answer them, by their place."""
        opening, closing = self.frame.parallel or (0, 0)
        for place, message in enumerate(self.messages):
            calls = _calls(message)
            if len(calls) > 1:
                text = self._words(message) if joined_text(message.parts) else ZERO
                yield place, slack(text + Count.exact(opening) + self.count(_tool_uses(calls)), 2, 2)
                yield from self._answers(place + 1, {call.id for call in calls}, closing)

    def _answers(self, start: int, wanted: set[str | None], closing: int) -> Iterator[tuple[int, Count]]:
        """Results of calls made at once are one list in JSON; the first bears what the others do not."""
        found = list(self._results(start, wanted))
        texts = [joined_text(result.parts) for _, result in found]
        listed: list[Json] = [_parsed(text) for text in texts]
        whole, others = self.count(dumps(listed, ensure_ascii=False)), [self.count(text) for text in texts[1:]]
        if total(others).tokens > whole.tokens:
            others = [ZERO for _ in others]
        shares = (less(whole, total(others)) + Count.exact(closing), *others)
        for (place, result), share in zip(found, shares, strict=False):
            yield (
                place,
                share + total(weigh_media(part, self.model) for part in result.parts if isinstance(part, Media)),
            )

    def _results(self, start: int, wanted: set[str | None]) -> Iterator[tuple[int, ToolResult]]:
        for place in range(start, len(self.messages)):
            results = [part for part in self.messages[place].parts if isinstance(part, ToolResult)]
            if not results:
                return
            yield from ((place, result) for result in results if result.call_id in wanted)


_CALLING_OUT = 35
"""Around a call of a tool that the provider runs (`tool_search_call`, `mcp_call`)."""
_BRINGING_TOOLS = 86
"""Around tools that arrive in the midst of a conversation (`additional_tools`, `tool_search_output`)."""


def _thinking(thinking: Thinking, *, live: bool) -> Count:
    """Reasoning since the user last spoke counts, older reasoning does not. Sealed, it is what its length suggests:
    fitted to six recorded requests of 31 to 317 tokens."""
    sealed = max(32, round(0.156 * len(thinking.signature or "") - 137))
    if not live:
        return Count(tokens=0, method=Method.CALIBRATED, low=0, high=sealed)
    return Count(tokens=sealed, method=Method.ESTIMATED, low=0, high=2 * sealed)


def _brought_tools(value: Json) -> list[str]:
    tools = value.get("tools") if isinstance(value, dict) else None
    return [_rendered(tool) for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []


def _rendered(tool: Mapping[str, Json]) -> str:
    schema, description = tool.get("parameters"), tool.get("description")
    definition = ToolDefinition(
        name=str(tool.get("name")),
        description=description if isinstance(description, str) else None,
        schema=schema if isinstance(schema, dict) else {},
    )
    return render_tool(definition)


def _calls(message: Message) -> list[ToolCall]:
    return [part for part in message.parts if isinstance(part, ToolCall)]


def _stored_id(part: Unknown) -> bool:
    """Whether this is the id under which the Responses API keeps an item (see `messages.openai_responses`)."""
    value = part.value
    return isinstance(value, dict) and value.keys() == {"id"}


def _tool_uses(calls: Iterable[ToolCall]) -> str:
    uses = [{"recipient_name": f"functions.{call.name}", "parameters": _parsed(call.arguments)} for call in calls]
    return dumps({"tool_uses": uses}, ensure_ascii=False, separators=(",", ":"))


def _parsed(text: str) -> Json:
    try:
        return cast("Json", loads(text))
    except (JSONDecodeError, RecursionError):
        return text


def _compact(arguments: str) -> str:
    value = _parsed(arguments)
    return dumps(value, ensure_ascii=False, separators=(",", ":")) if isinstance(value, dict) else arguments
