"""What does a conversation with an open model weigh, as its host counts it?

The host fills the model's chat template and counts the outcome with the model's own vocabulary. `chat_templates` knows
the templates and how far they can be trusted; here the request is laid into one, piece by piece.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from json import dumps
from math import ceil

from ullage.messages import Format, Media, Message, Part, Request, Text, Thinking, ToolCall, ToolResult, Unknown
from ullage.models import Match

from ..count import ZERO, Count, Method, total
from ..weight import CountText, Weight
from .chat_templates import Template, template_of
from .chat_writing import MARK
from .image import image_size

__all__ = ["weigh"]


def weigh(request: Request, match: Match, count: CountText) -> Weight:
    scale = _Scale(template_of(match), count)
    tools = scale.shows_tools(request)
    return Weight(
        framing=scale.framing(request),
        system=total(scale.messages(request.system)),
        tools=tuple(scale.tool(request, index) if tools else ZERO for index in range(len(request.tools))),
        tools_framing=scale.tools_framing(request) if tools and request.tools else ZERO,
        messages=tuple(scale.messages(request.messages)),
        output_schema=scale.output_schema(request),
    )


def _is_silent(request: Request) -> bool:
    """Whether the request switches thinking off, in any of the hosts' spellings."""
    settings = request.settings
    thinking, extra = settings.get("thinking"), settings.get("chat_template_kwargs")
    return (
        settings.get("enable_thinking") is False
        or settings.get("think") is False
        or (isinstance(thinking, dict) and thinking.get("type") == "disabled")
        or (isinstance(extra, dict) and extra.get("enable_thinking") is False)
    )


def _asks_for_json(request: Request) -> bool:
    asked = request.output_schema
    return isinstance(asked, dict) and asked.get("type") != "text"


def _has_system(request: Request) -> bool:
    return any(message.role in {"system", "developer"} for message in (*request.system, *request.messages))


@dataclass(frozen=True, slots=True)
class _Scale:
    template: Template
    count: CountText

    def shows_tools(self, request: Request) -> bool:
        """Hosts leave tools out where they may not be called; some do so only before the first call."""
        answered = bool(request.messages) and request.messages[-1].role == "tool"
        return request.tool_choice != "none" or (self.template.keeps_tools and answered)

    def framing(self, request: Request) -> Count:
        template = self.template
        silent = _is_silent(request) or (template.json_silences and _asks_for_json(request))
        written = template.start + (template.silent if silent else template.loud)
        written += "" if _has_system(request) else template.no_system
        written += template.responses if request.format is Format.OPENAI_RESPONSES else ""
        found = self._plain(self._written(written))
        less, more = (0, 0) if silent else (template.less, template.more)
        if not more and not less:
            return found
        low = max(0, found.low - less)
        return Count(tokens=found.tokens, method=_at_best(found.method), low=low, high=found.high + more)

    def tools_framing(self, request: Request) -> Count:
        template = self.template
        alone = "" if _has_system(request) else template.tools_alone
        forced = template.forced if request.tool_choice in ("required", "any") else ""
        return self._loosely(self._written(template.tools + alone + forced))

    def tool(self, request: Request, index: int) -> Count:
        tool = request.tools[index]
        if tool.hosted is not None:
            return Count(tokens=0, method=Method.ESTIMATED, low=0, high=_HOSTED_AT_MOST)
        return self._loosely(self._written(self.template.tool(tool)))

    def output_schema(self, request: Request) -> Count:
        asked = request.output_schema
        if not isinstance(asked, dict) or not _asks_for_json(request):
            return ZERO
        if self.template.shown is None or "json_schema" not in asked:
            return self._loosely(self._written(self.template.json))
        return _widened(self._written(self.template.shown + dumps(asked["json_schema"])), 0.2)

    def messages(self, messages: tuple[Message, ...]) -> Iterator[Count]:
        """One count a message; where the template merges a user's messages, a later one is what it adds."""
        before = ""
        for message in messages:
            mine = self._content(message) if message.role == "user" else ""
            if before and mine and self.template.merges is not None:
                whole = before + self.template.merges + mine
                added = self._plain(_difference(self.count(whole), self.count(before)))
                yield _doubted(message, added) + _media(message)
                before = whole
            else:
                yield _doubted(message, self._message(message)) + _media(message)
                before = mine

    def _message(self, message: Message) -> Count:
        template = self.template
        if message.role == "tool":
            return self._loosely(total(self._results(message)))
        if any(isinstance(part, ToolResult) for part in message.parts):
            return self._loosely(total(self._results(message)) + self._beside_results(message))
        before, after = {"user": template.user, "assistant": template.assistant}.get(message.role, template.system)
        calls, content = self._calls(message), self._content(message)
        thoughts = self._thoughts(message) if calls or template.remembers else ""
        found = self._framed(before + thoughts, content, calls + after)
        return self._loosely(found) if calls else self._plain(found)

    def _beside_results(self, message: Message) -> Count:
        """What the user says in the same message, in formats where the user's messages carry results."""
        content = self._content(message)
        return self._framed(self.template.user[0], content, self.template.user[1]) if content else ZERO

    def _content(self, message: Message) -> str:
        parts = (part for part in message.parts if isinstance(part, Text | Unknown))
        text = self.template.joint.join(part.text if isinstance(part, Text) else dumps(part.value) for part in parts)
        return (
            text.rpartition("</think>")[2].lstrip() if self.template.forgets and message.role == "assistant" else text
        )

    def _thoughts(self, message: Message) -> str:
        around = self.template.thinking
        thoughts = [part.text for part in message.parts if isinstance(part, Thinking) and part.text]
        return "".join(around[0] + thought + around[1] for thought in thoughts) if around else ""

    def _calls(self, message: Message) -> str:
        calls = [self.template.call(part) for part in message.parts if isinstance(part, ToolCall)]
        return self.template.calls + "".join(calls) if calls else ""

    def _results(self, message: Message) -> Iterator[Count]:
        before, after = self.template.result
        for text in _result_texts(message):
            yield self._framed(before, text, after)

    def _framed(self, before: str, text: str, after: str) -> Count:
        """A text in its frame; a long one apart from it, so that a count that is known already is only looked up."""
        if len(text) <= _SHORT:
            return self._written(before + text + after)
        return self._written(before) + self.count(text) + self._written(after)

    def _written(self, text: str) -> Count:
        """What a template wrote: each mark is a token, and nothing is merged across one."""
        return Count.exact(text.count(MARK)) + total(self.count(piece) for piece in text.split(MARK) if piece)

    def _plain(self, found: Count) -> Count:
        return found if self.template.exact else self._loosely(found)

    def _loosely(self, found: Count) -> Count:
        return _widened(found, self.template.band)


_HOSTED_AT_MOST = 10_000
"""What a search on the host's side brings into the prompt; in recorded ones mostly less, and up to 350,000."""
_SHORT = 2_000


def _result_texts(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, ToolResult):
            shown = (inner for inner in part.parts if isinstance(inner, Text | Unknown))
            yield "".join(inner.text if isinstance(inner, Text) else dumps(inner.value) for inner in shown)


def _inner(message: Message) -> Iterator[Part]:
    for part in message.parts:
        yield from part.parts if isinstance(part, ToolResult) else (part,)


def _doubted(message: Message, found: Count) -> Count:
    """A part of no known kind was weighed as its JSON, and whether a host shows it so nobody knows."""
    if not any(isinstance(part, Unknown) for part in _inner(message)):
        return found
    return Count(tokens=found.tokens, method=Method.ESTIMATED, low=0, high=2 * found.high)


def _media(message: Message) -> Count:
    return total(_medium(part) for part in _inner(message) if isinstance(part, Media))


def _medium(media: Media) -> Count:
    """A picture by patches of 28 pixels, which most open vision models use; anything else is anybody's guess."""
    size = image_size(media.data) if media.kind == "image" and media.data else None
    if size is None:
        return Count(tokens=500, method=Method.ESTIMATED, low=10, high=5000)
    return Count.within(min(5000, ceil(size[0] / 28) * ceil(size[1] / 28)), 0.5, Method.ESTIMATED)


def _at_best(method: Method) -> Method:
    return Method.CALIBRATED if method is Method.EXACT else method


def _widened(found: Count, band: float) -> Count:
    """The same count with the template's doubt added to its own."""
    if not found.tokens:
        return found
    doubt = Count.within(found.tokens, band)
    low, high = found.low + doubt.low - found.tokens, found.high + doubt.high - found.tokens
    return Count(tokens=found.tokens, method=_at_best(found.method), low=max(0, low), high=high)


def _difference(whole: Count, part: Count) -> Count:
    tokens = max(0, whole.tokens - part.tokens)
    return Count(
        tokens=tokens,
        method=whole.method,
        low=min(tokens, max(0, whole.low - part.low)),
        high=max(tokens, whole.high - part.high),
    )
