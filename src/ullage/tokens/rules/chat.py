"""What does a conversation with an open model weigh, as its host counts it?

The host fills the model's chat template and counts the outcome with the model's own vocabulary. `chat_templates` knows
the templates and how far they can be trusted; here the request is laid into one, piece by piece.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
    scale = _Scale(template_of(match), count, request.format)
    if "prompt" in request.settings and match.host != "ollama":
        return Weight(messages=tuple(map(scale.completion, request.messages)))
    tools = tuple(scale.tool(request, index) for index in range(len(request.tools)))
    frame = scale.tools_framing(request) if tools else ZERO
    if scale.template.drops_tools:
        frame, tools = _maybe_none(frame), tuple(map(_maybe_none, tools))
    if not scale.shows_tools(request):
        unsure = not scale.template.hides_tools
        frame, tools = _perhaps(total((frame, *tools))) if unsure else ZERO, tuple(ZERO for _ in tools)
    return Weight(
        framing=scale.framing(request),
        system=total(scale.messages(request.system)),
        tools=tools,
        tools_framing=frame,
        messages=tuple(scale.messages(request.messages)),
        output_schema=scale.output_schema(request),
    )


def _perhaps(tools: Count) -> Count:
    """Tools that may not be called: most hosts leave them out, some do not."""
    return Count(tokens=0, method=Method.CALIBRATED, low=0, high=tools.high) if tools.tokens else ZERO


def _maybe_none(found: Count) -> Count:
    return replace(found, method=_at_best(found.method), low=0) if found.tokens else found


def _is_silent(request: Request) -> bool:
    """Whether the request switches thinking off, in any of the hosts' spellings."""
    settings = request.settings
    thinking, extra = settings.get("thinking"), settings.get("chat_template_kwargs")
    return (
        settings.get("enable_thinking") is False
        or settings.get("think") is False
        or settings.get("reasoning_effort") == "none"
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
    format: Format

    def completion(self, message: Message) -> Count:
        """A text to be continued, which no template is laid around; hosts differ by a mark or two."""
        found = self.count(self._content(message))
        return Count(tokens=found.tokens, method=_at_best(found.method), low=max(0, found.low - 2), high=found.high + 8)

    def shows_tools(self, request: Request) -> bool:
        """Hosts leave tools out where they may not be called; some do so only before the first call."""
        answered = bool(request.messages) and request.messages[-1].role == "tool"
        if self.template.shows_all_tools or request.tool_choice != "none":
            return True
        return self.template.keeps_tools and answered

    def framing(self, request: Request) -> Count:
        template = self.template
        silent = _is_silent(request) or (template.json_silences and _asks_for_json(request))
        written = template.start + (template.silent if silent else template.loud)
        written += "" if _has_system(request) else template.no_system
        if request.format is Format.OPENAI_RESPONSES:
            bare = not request.tools and not _has_system(request)
            written += template.responses + (template.bare_responses if bare else "")
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
        wanted = asked.get("json_schema", asked if "schema" in asked else None)
        if self.template.shown is None or not isinstance(wanted, dict):
            return self._loosely(self._written(self.template.json))
        compact = self.template.compact_schema and "schema" in wanted
        shown = dumps(wanted["schema"], separators=(",", ":")) if compact else dumps(wanted)
        return _widened(self._written(self.template.shown + shown), 0.2)

    def messages(self, messages: tuple[Message, ...]) -> Iterator[Count]:
        """One count a message; where the template merges a user's messages, a later one is what it adds."""
        before = ""
        for message in messages:
            mine = self._content(message) if message.role == "user" else ""
            if before and mine and self.template.merges is not None:
                whole = before + self.template.merges + mine
                added = self._plain(_difference(self.count(whole), self.count(before)))
                yield _doubted(message, added) + _media(message, self.template.image)
                before = whole
            else:
                yield _doubted(message, self._message(message)) + _media(message, self.template.image)
                before = mine

    def _message(self, message: Message) -> Count:
        template = self.template
        if message.role == "tool":
            return self._turn(total(self._results(message)))
        if any(isinstance(part, ToolResult) for part in message.parts):
            return self._turn(total(self._results(message)) + self._beside_results(message))
        before, after = {"user": template.user, "assistant": template.assistant}.get(message.role, template.system)
        calls, content = self._calls(message), self._content(message)
        thoughts = self._thoughts(message) if calls or template.remembers else ""
        found = self._framed(before + thoughts, content, calls + after)
        if calls:
            found = self._turn(found)
        else:
            found = self._plain(found) if message.role != "assistant" or template.exact_turns else self._loosely(found)
        return self._beyond_summary(message, found) if template.hidden_thoughts else found

    def _beyond_summary(self, message: Message, found: Count) -> Count:
        """The message with the reasoning that its host kept, of which the request holds a summary at most."""
        if not any(isinstance(part, Thinking) for part in message.parts):
            return found
        hidden = self.template.hidden_thoughts
        tokens = found.tokens + (hidden // 3 if self.format is Format.OPENAI_CHAT else 0)
        return Count(tokens=tokens, method=Method.ESTIMATED, low=found.low, high=found.high + hidden)

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

    def _turn(self, found: Count) -> Count:
        """A message with calls or results, whose frame differs from host to host."""
        loose, slack = self._loosely(found), self.template.turn_slack
        return replace(loose, method=_at_best(loose.method), low=max(0, loose.low - slack), high=loose.high + slack)

    def _plain(self, found: Count) -> Count:
        return found if self.template.exact else self._loosely(found)

    def _loosely(self, found: Count) -> Count:
        return _widened(found, self.template.band)


_HOSTED_AT_MOST = 250_000
"""What a search on the host's side brings into the prompt, in recorded requests up to 350,000."""
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


def _media(message: Message, image: int) -> Count:
    return total(_medium(part, image) for part in _inner(message) if isinstance(part, Media))


def _medium(media: Media, image: int) -> Count:
    """A picture by patches of 28 pixels, which most open vision models use; anything else is anybody's guess."""
    size = image_size(media.data) if media.kind == "image" and media.data else None
    if size is None:
        tokens = 60 if media.kind == "audio" else image
        # A model that cannot see or hear is not shown the medium, and nothing is counted for it.
        return Count(tokens=tokens, method=Method.ESTIMATED, low=0, high=10 * tokens)
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
