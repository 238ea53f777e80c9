"""What does a request to an OpenAI model weigh, part by part?

Text is exact: the vocabularies are public and the marks around messages are known. Tool definitions and answer formats
are rendered as OpenAI renders them (see `openai_tools`), conversations as in `openai_turns`. What the provider adds
out of sight (its own tools, stored conversations, sealed reasoning) is estimated, and says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from json import dumps
from re import compile as pattern

from ullage.messages import Format, Message, Request, ToolCall, ToolDefinition, ToolResult, Unknown
from ullage.models import Match
from ullage.tool import Json

from ..count import ZERO, Count, Method, total
from ..weight import CountText, Weight
from .openai_tools import is_familiar, render_answer_format, render_section, render_tool
from .openai_turns import Conversation, Frame, joined_text, less, slack

__all__ = ["weigh"]

_CLASSIC_CHAT = Frame(
    reply=3,
    tools=0,
    tools_alone=4,
    schema=2,
    schema_alone=6,
    schema_named=True,
    choice=7,
    call=7,
    output=6,
    parallel=(12, 8),
    compact=True,
    tools_sure=True,
)
_CLASSIC_RESPONSES = Frame(
    reply=3,
    tools=-2,
    tools_alone=-2,
    schema=1,
    schema_alone=1,
    choice=7,
    forced=True,
    call=7,
    output=4,
    stored=3,
    call_slack=3,
)
_REASONING_CHAT = Frame(reply=2, tools=4, tools_alone=5, schema=1, schema_alone=1, call=7, output=6, call_slack=4)
_REASONING_RESPONSES = replace(_REASONING_CHAT, tools=1, tools_alone=1)
_CHANNEL_CHAT = Frame(
    reply=2,
    final=2,
    tools=85,
    tools_alone=86,
    nameless=1,
    schema=1,
    schema_alone=4,
    call=10,
    output=9,
    beside=5,
    tools_sure=True,
)
_CHANNEL_RESPONSES = replace(_CHANNEL_CHAT, tools=4, tools_alone=4, schema=0, schema_alone=0, beside=0, call_slack=4)
"""Fitted to 3,000 recorded requests out of the tests of thirteen public repositories."""

_SPACE_BETWEEN_LETTERS = pattern(r"[a-z] [a-z]")
_CLASSIC = ("gpt-3", "gpt-4", "chatgpt-4")
_REASONING = ("o1", "o3", "o4", "gpt-audio")
_CHANNEL = ("gpt-5", "gpt-image", "computer-use")
"""Families with requests among those recorded; one that has none is weighed as the latest that has, within a band."""
_WITHOUT_TITLES = frozenset({"gpt-4", "gpt-4-32k", "gpt-3.5-turbo-0613", "gpt-3.5-turbo-0301"})
"""Models of 2023, whose tools were rendered without the titles of their properties."""
_BARE = ("text-embedding", "davinci", "babbage", "text-davinci", "gpt-3.5-turbo-instruct")
"""Models that are given texts and no messages."""
_HOSTED = {
    "web_search": (225, 294, 45_000),
    "web_search_preview": (225, 294, 45_000),
    "file_search": (290, 1_150, 20_000),
    "code_interpreter": (290, 1_400, 5_000),
    "image_generation": (290, 342, 3_200),
    "mcp": (50, 400, 20_000),
    "tool_search": (0, 0, 700),
}
"""Seen on recorded requests: least, usual, most. The least is the definition alone; the rest is what the model had the
provider fetch before it answered, which is reported as input although the request does not hold it."""
_WEB_SEARCH_SINCE_GPT_5 = 8_500
"""GPT-5 and later searched in every recorded request; the older models mostly answered without."""
_EARLY_RESPONSES = 18
"""What requests for GPT-4o over the Responses API weighed more in its first months; a request has no date."""
_TOOL_SEARCH, _TOOL_SEARCH_DONE = 570, 370
"""With a search still to come, and after one."""
_STORED_CONVERSATION = 20_000
_PRO_PROMPT = 1530
"""What `reasoning.mode: pro` was seen to add, and 95 a turn."""
_OVER_RESPONSES = ("openrouter", "zenmux")
"""Hosts that pass chats with GPT-5 and later on to the Responses API, and report its counts."""
_SEARCHING = "search-preview"
"""Models whose reported input is the texts alone."""


def weigh(request: Request, match: Match, count: CountText) -> Weight:
    """A `Rule` (see `weight`) for OpenAI's own models, on its own hosts and on those that pass its counts through."""
    model = match.card.id
    if model.startswith(_BARE) or _SEARCHING in model:
        return Weight(messages=tuple(_bare(message, count) for message in (*request.system, *request.messages)))
    return _Scale(request=request, frame=_frame(request, match), model=model, count=count).weigh()


def _bare(message: Message, count: CountText) -> Count:
    """Texts as they are; a text may also come as the numbers of its tokens."""
    numbers = sum(_numbers(part.value) for part in message.parts if isinstance(part, Unknown))
    return count(joined_text(message.parts)) + Count.exact(numbers)


def _numbers(value: Json) -> int:
    return sum(map(_numbers, value)) if isinstance(value, list) else int(isinstance(value, int))


def _frame(request: Request, match: Match) -> Frame:
    family = match.card.family
    chat = request.format is not Format.OPENAI_RESPONSES
    if family.startswith(_CLASSIC):
        return _CLASSIC_CHAT if chat else _CLASSIC_RESPONSES
    if family.startswith(_REASONING):
        first = match.card.id.startswith(("o1-mini", "o1-preview"))
        return replace(_REASONING_CHAT if chat else _REASONING_RESPONSES, reply=3 if first else 2)
    frame = _CHANNEL_CHAT if chat and match.host not in _OVER_RESPONSES else _CHANNEL_RESPONSES
    return frame if family.startswith(_CHANNEL) else replace(frame, tools_sure=False, call_slack=6, reply_slack=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """One request on the scale."""

    request: Request
    frame: Frame
    model: str
    count: CountText

    def weigh(self) -> Weight:
        request = self.request
        system = [message for message in request.system if joined_text(message.parts)]
        tools = tuple(map(self._tool, request.tools))
        return Weight(
            framing=self._framing(),
            system=total(self._conversation(system)),
            tools=tools,
            tools_framing=self._tools_framing(tools),
            messages=self._conversation(request.messages),
            output_schema=self._answer_format(),
        )

    def _conversation(self, messages: Sequence[Message]) -> tuple[Count, ...]:
        return Conversation(messages=messages, frame=self.frame, model=self.model, count=self.count).weigh()

    def _framing(self) -> Count:
        settings = self.request.settings
        kinds, reasoning = settings.get("modalities"), settings.get("reasoning")
        spoken = isinstance(kinds, list) and "audio" in kinds
        framing = slack(Count.exact(self.frame.reply + int(spoken)), self.frame.reply_slack, self.frame.reply_slack)
        if self._may_be_early():
            framing = slack(framing, 0, _EARLY_RESPONSES)
        if isinstance(reasoning, dict) and reasoning.get("mode") == "pro":
            framing += Count.within(_PRO_PROMPT + 95 * self._turns(), 0.2, Method.ESTIMATED)
        if any(map(settings.get, ("previous_response_id", "conversation", "prompt"))):
            framing += Count(tokens=self._unseen(), method=Method.ESTIMATED, low=0, high=_STORED_CONVERSATION)
        return framing

    def _may_be_early(self) -> bool:
        """Whether a plain request would be exact but for the early months of an API."""
        request = self.request
        family = self.model.startswith("gpt-4o") and not self.model.startswith("gpt-4o-mini")
        plain = not request.tools and request.output_schema is None
        return family and plain and request.format is Format.OPENAI_RESPONSES

    def _unseen(self) -> int:
        """At least a question and the calls whose outputs stand here alone."""
        parts = [part for message in self.request.messages for part in message.parts]
        made = {part.id for part in parts if isinstance(part, ToolCall)}
        orphans = sum(isinstance(part, ToolResult) and part.call_id not in made for part in parts)
        return 30 + 20 * orphans if orphans else 0

    def _turns(self) -> int:
        return sum(message.role == "assistant" for message in self.request.messages)

    def _tool(self, tool: ToolDefinition) -> Count:
        if tool.hosted is not None:
            return self._hosted(tool.hosted)
        return self.count(self._rendered(tool))

    def _hosted(self, tool: Mapping[str, Json]) -> Count:
        """What a tool of the provider's was seen to add; a search that it makes adds what it finds."""
        kind = str(tool.get("type"))
        low, tokens, high = _HOSTED.get(kind) or (0, self.count(dumps(tool)).tokens, 4000)
        if kind == "web_search" and self.frame.final:
            tokens = _WEB_SEARCH_SINCE_GPT_5
        if kind == "tool_search" or tool.get("defer_loading"):
            low, tokens = 0, self._tool_search(tool)
        return Count(tokens=tokens, method=Method.ESTIMATED, low=low, high=max(tokens, high))

    def _tool_search(self, tool: Mapping[str, Json]) -> int:
        """Deferred tools weigh nothing themselves; the search for them does, until all of them are loaded."""
        known = [part.value for message in self.request.messages for part in message.parts if isinstance(part, Unknown)]
        loaded = {name for value in known if isinstance(value, dict) for name in _names(value.get("tools"))}
        deferred = {each.name for each in self.request.tools if each.hosted and each.hosted.get("defer_loading")}
        if tool.get("defer_loading") or deferred <= loaded:
            return 0
        if tool.get("execution") == "client":
            return self.count(dumps(tool)).tokens * 5 // 6
        return _TOOL_SEARCH_DONE if known else _TOOL_SEARCH

    def _rendered(self, tool: ToolDefinition) -> str:
        return render_tool(tool, titles=self.model not in _WITHOUT_TITLES)

    def _own(self) -> list[ToolDefinition]:
        return [tool for tool in self.request.tools if tool.hosted is None]

    def _tools_framing(self, tools: Sequence[Count]) -> Count:
        """What the namespace and the place it stands in add to the tools themselves."""
        if not self._own():
            return ZERO
        each = total(weight for weight, tool in zip(tools, self.request.tools, strict=True) if tool.hosted is None)
        extra = self.frame.tools if self._carrier() else self.frame.tools_alone
        extra -= self.frame.nameless * sum(not tool.description for tool in self._own())
        whole = _shifted(self._added(self._carrier(), self._section()), extra) + self._choice()
        reach = 0 if self._is_sure() else max(3, whole.tokens * 3 // 100)
        return slack(less(whole, each), reach, reach)

    def _is_sure(self) -> bool:
        own = self._own()
        plain = self.model not in _WITHOUT_TITLES and not self.model.startswith("gpt-3.5")
        described = not self.frame.nameless or all(tool.description for tool in own)
        return self.frame.tools_sure and plain and described and all(is_familiar(dict(tool.schema)) for tool in own)

    def _section(self) -> str:
        return render_section(map(self._rendered, self._own()))

    def _carrier(self) -> str:
        """The text of the first system message, which tools and answer format are appended to."""
        for message in (*self.request.system, *self.request.messages):
            if message.role in ("system", "developer") and (text := joined_text(message.parts)):
                return text
        return ""

    def _added(self, before: str, section: str) -> Count:
        """What a section adds when it follows a text; tokens may span the seam, and only the text's end matters."""
        end = _end(before)
        return less(self.count(f"{end}\n\n{section}"), self.count(end)) if end else self.count(section)

    def _choice(self) -> Count:
        name = self._forced()
        if name is None or self.frame.choice is None:
            return ZERO
        return Count.exact(self.frame.choice) + self.count(f".{name}")

    def _forced(self) -> str | None:
        choice, tools = self.request.tool_choice, self._own()
        if choice == "required" and self.frame.forced and len(tools) == 1:
            return tools[0].name
        inner = choice.get("function", choice) if isinstance(choice, dict) else None
        name = inner.get("name") if isinstance(inner, dict) else None
        return name if isinstance(name, str) else None

    def _answer_format(self) -> Count:
        wanted = self.request.output_schema
        inner = wanted.get("json_schema", wanted) if isinstance(wanted, dict) else None
        if not isinstance(inner, dict) or not isinstance(inner.get("schema"), dict):
            return ZERO
        name = str(inner.get("name") or "")
        section = render_answer_format(name, inner.get("description"), inner["schema"])
        before = "\n\n".join(filter(None, (self._carrier(), self._section() if self._own() else "")))
        whole = self._added(before, section)
        if self._own():
            return slack(whole, 1, 4)
        whole = _shifted(whole, self.frame.schema if before else self.frame.schema_alone)
        return slack(whole + self.count(name) if self.frame.schema_named else whole, 1, 4)


def _end(text: str) -> str:
    """The last words of a text, cut where every vocabulary begins a new token: at a space between two letters."""
    last = text[-400:]
    space = _SPACE_BETWEEN_LETTERS.search(last)
    return last[space.start() + 1 :] if space and len(text) > len(last) else text


def _names(tools: Json) -> list[str]:
    found = tools if isinstance(tools, list) else []
    return [str(tool.get("name")) for tool in found if isinstance(tool, dict)]


def _shifted(count: Count, extra: int) -> Count:
    return count + Count.exact(extra) if extra >= 0 else less(count, Count.exact(-extra))
