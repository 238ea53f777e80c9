"""Token weights of messages, estimated from what providers reported.

`Entry` is a message with its weight. `Fixed` is the weight of the system prompt, the tools and what the provider adds
to a request, which no compaction can reduce. `read_fixed` makes a request of these, `Scale` weighs it.

`Scale` weighs each message once, when it is added, next to the few messages that its weight depends on, and corrects
their weights at once. The weights are therefore always those that the meter gives for the whole request.

Most messages weigh the same wherever they are. The exceptions: with some providers a result carries its call's name;
with some, results of calls made at once are one list; adjacent calls weigh less than separate ones; and thinking of a
turn may no longer be sent once the user speaks again. The meter's rules know the amounts; this file only knows how far
they reach.

`parted` divides a message by category, so that each part can be weighed by itself. The weight of the message is then
divided in the ratio of these weights, and the parts sum to it.

`Anchored` is what the provider counted for a request. If messages were only added since, the report plus the weight of
the new messages is the total. If messages were changed, the report still says how Ullage's count and the provider's
differ. Implausible reports are ignored: some omit cached tokens, some count a request twice.

`Remake` is the interface between the decision what to drop and the weighing of what is left. `Scale` implements it, and
so does a stand-in for tests.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal, Protocol, cast

from ullage.messages import (
    Format,
    Media,
    Message,
    Part,
    Request,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
    plain,
    read_message,
    read_request,
)
from ullage.models import Usage
from ullage.tokens import ZERO, Count, Meter, Method, Steps, Weight, total, unheard

__all__ = [
    "Anchored",
    "Category",
    "Entry",
    "Fixed",
    "Kind",
    "Remake",
    "Scale",
    "ToolWeight",
    "apportioned",
    "behind",
    "beside",
    "changes_framing",
    "fixed_of",
    "kind_of",
    "observe",
    "parted",
    "read_fixed",
    "seam",
    "summed",
    "unsettled",
]

Category = Literal["user", "assistant", "tool_calls", "tool_results", "images", "thinking", "summary", "system"]
"""What the tokens of a message are spent on. `system` is for system messages among the others."""

Kind = Literal["message", "summary", "bridge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A message of a history with its weight."""

    native: object
    """The provider's dict, the SDK's object or a neutral `Message`, as it was given."""
    message: Message
    """The same message in neutral parts."""
    weight: Count
    """Tokens, including the message's own framing."""
    shares: Mapping[Category, int] = field(default_factory=dict[Category, int])
    """The weight by category. The shares sum to it."""
    pinned: bool = False
    """Whether no compaction may change the message."""
    kind: Kind = "message"
    """A summary replaces dropped messages. A bridge is a short message between two turns of the same side."""
    record: str | None = None
    """Id of the message in the session's file; None without a session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolWeight:
    """Weight of one tool definition."""

    name: str
    server: str | None
    """Server of the tool, if its name tells: `github` in `github__search` and in `mcp__github__search`."""
    weight: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Weight of the fixed part of a request: system prompt and tools."""

    system_prompt: Count = ZERO
    """System prompt, including what the provider adds to every request."""
    tool_definitions: Count = ZERO
    """Tool definitions, including what the presence of any tool adds."""
    tools: tuple[ToolWeight, ...] = ()
    """One weight for each definition. What the presence of tools adds is in `tool_definitions` only."""

    @property
    def total(self) -> Count:
        """Weight of the whole fixed part."""
        return self.system_prompt + self.tool_definitions


def read_fixed(system: object, tools: Sequence[object], format: Format) -> Request:  # noqa: A002
    """Return a request that contains only a system prompt and tools in the given format."""
    body = plain({**_SYSTEMS[format](system), "tools": list(tools)})
    return read_request(body, format)


def fixed_of(request: Request, weight: Weight) -> Fixed:
    """Return the fixed weights from the weight of such a request. A format may have the system prompt in the first
    message."""
    own = weight.messages[: len(request.messages)]
    tools = tuple(
        ToolWeight(name=tool.name, server=_server_of(tool.name), weight=count)
        for tool, count in zip(request.tools, weight.tools, strict=False)
    )
    return Fixed(
        system_prompt=total((weight.framing, weight.system, *own)),
        tool_definitions=total((weight.tools_framing, *weight.tools)),
        tools=tools,
    )


def _chat_system(system: object) -> dict[str, object]:
    """Read a system prompt: text, parts, a message, or several messages."""
    if not system:
        return {"messages": []}
    several = cast("list[object]", system) if isinstance(system, list) else [system]
    if all("role" in one if isinstance(one, Mapping) else hasattr(one, "role") for one in several):
        return {"messages": several}
    return {"messages": [{"role": "system", "content": system}]}


def _under(key: str, empty: str) -> Callable[[object], dict[str, object]]:
    return lambda system: {key: system or None, empty: []}


_SYSTEMS: Mapping[Format, Callable[[object], dict[str, object]]] = {
    Format.OPENAI_CHAT: _chat_system,
    Format.OPENAI_RESPONSES: _under("instructions", "input"),
    Format.ANTHROPIC: _under("system", "messages"),
    Format.GEMINI: _under("systemInstruction", "contents"),
    Format.ULLAGE: _under("system", "messages"),
}


def _server_of(name: str) -> str | None:
    server, joint, tool = name.removeprefix("mcp__").partition("__")
    return server if joint and server and tool else None


def unsettled(messages: Sequence[Message], since: int) -> int:
    """Return the first message whose weight may change now that the messages from `since` on are added."""
    batch = _batch(messages, since)
    new = [message for message in messages[since:] if message.role == "user"]
    if not new:
        return batch
    # The new messages may end the user's turn, so that its thinking is no longer sent. For some providers a result in
    # the user's role does not end a turn, for others it does; in the latter case only the messages since the last one
    # of that role can change.
    asked, first = any(not _holds(one.parts, ToolResult) or _says(one) for one in new), since
    for at in range(since - 1, -1, -1):
        message = messages[at]
        if message.role == "user" and (not asked or (not _holds(message.parts, ToolResult) and _says(message))):
            break
        if _holds(message.parts, Thinking):
            first = at
    return min(batch, first)


def beside(messages: Sequence[Message], start: int) -> tuple[Message, ...]:
    """Return the messages before `start` that are needed so that the messages from there on weigh the same as in the
    whole: the message before them, those of the same role that it follows, and the calls that they answer."""
    near = max(0, start - 1)
    if start < len(messages) and messages[near].role == messages[start].role:
        # With some formats and models several become one in the prompt, and each weighs what it adds to those before.
        while near and messages[near - 1].role == messages[near].role:
            near -= 1
    results = (part for message in messages[start:] for part in message.parts if isinstance(part, ToolResult))
    wanted = {result.call_id for result in results if result.call_id} - set(_called(messages[near:]))
    found: list[Message] = []
    for at in range(near - 1, -1, -1):
        if not wanted:
            break
        if made := wanted & set(_called(messages[at : at + 1])):
            wanted -= made
            found.append(messages[at])
    return (*reversed(found), *messages[near:start])


def behind(messages: Sequence[Message], end: int) -> tuple[Message, ...]:
    """Return the messages after the seam `end` that are needed so that the messages before it weigh the same as in the
    whole: the next message, and the last ones that tell a provider that the user has spoken since."""
    near, told = messages[end : end + 1], list[int]()
    for speaks in (_is_user, _brings_nothing, _says):
        latest = (at for at in range(len(messages) - 1, end, -1) if _is_user(messages[at]) and speaks(messages[at]))
        told += islice(latest, 1)
    return (*near, *(messages[at] for at in sorted(set(told))))


def seam(messages: Sequence[Message], start: int) -> int:
    """Return the first place from `start` on where no group of calls and results continues."""
    return next((at for at in range(start, len(messages)) if _batch(messages, at) == at), len(messages))


def _batch(messages: Sequence[Message], since: int) -> int:
    """Return where the calls and results begin that the new message continues."""
    parts = messages[since].parts if since < len(messages) else ()
    at = since
    if _holds(parts, ToolResult):
        at = _before(messages, at, ToolResult)
    if _holds(parts, ToolResult) or _holds(parts, ToolCall):
        at = _before(messages, at, ToolCall)
    return at


def _before(messages: Sequence[Message], at: int, kind: type[ToolCall] | type[ToolResult]) -> int:
    while at and _holds(messages[at - 1].parts, kind):
        at -= 1
    return at


def _is_user(message: Message) -> bool:
    return message.role == "user"


def _brings_nothing(message: Message) -> bool:
    return not _holds(message.parts, ToolResult)


def _says(message: Message) -> bool:
    return _holds(message.parts, Text) or _holds(message.parts, Media)


def _holds(parts: Sequence[Part], kind: type[Part]) -> bool:
    return any(isinstance(part, kind) for part in parts)


def _called(messages: Sequence[Message]) -> Iterator[str]:
    return (part.id for message in messages for part in message.parts if isinstance(part, ToolCall) and part.id)


_SUMMARY = "<context_summary>"


def kind_of(message: Message) -> Kind:
    """Recognise a summary by the beginning of its text, since a history from outside has no other mark."""
    first = message.parts[0] if message.role == "user" and message.parts else None
    return "summary" if isinstance(first, Text) and first.text.lstrip().startswith(_SUMMARY) else "message"


def parted(message: Message, kind: Kind) -> dict[Category, Message]:
    """Divide a message into categories, each as a message of its own."""
    found: dict[Category, list[Part]] = {}
    for category, part in _told_apart(message, kind):
        found.setdefault(category, []).append(part)
    if not found:
        return {_of_role(message, kind): message}
    return {category: replace(message, parts=tuple(parts)) for category, parts in found.items()}


def apportioned(total: int, parts: Sequence[int]) -> tuple[int, ...]:
    """Divide `total` in the ratio of the parts, in whole numbers that sum to it; evenly if all parts are 0."""
    whole = sum(parts)
    ratio = parts if whole else (1,) * len(parts)
    reached = bounds = 0
    shares: list[int] = []
    for part in ratio:
        bounds += part
        upto = (2 * total * bounds + (whole or len(parts))) // (2 * (whole or len(parts)))
        shares.append(upto - reached)
        reached = upto
    return tuple(shares)


def _told_apart(message: Message, kind: Kind) -> Iterator[tuple[Category, Part]]:
    """Yield the parts with their categories, media of results by themselves. A part without a category of its own
    belongs to the part beside it."""
    own = _of_role(message, kind)
    category = own
    for part in message.parts:
        if own not in ("system", "summary") and not isinstance(part, Unknown):
            category = _of_part(part, own)
        if category == "tool_results" and isinstance(part, ToolResult):
            media = tuple(inner for inner in part.parts if isinstance(inner, Media))
            rest = tuple(inner for inner in part.parts if not isinstance(inner, Media))
            yield "tool_results", replace(part, parts=rest) if media else part
            for medium in media:
                yield "images", medium
        else:
            yield category, part


def _of_role(message: Message, kind: Kind) -> Category:
    if kind == "summary":
        return "summary"
    roles: dict[str, Category] = {"user": "user", "assistant": "assistant", "tool": "tool_results"}
    return roles.get(message.role, "system")


def _of_part(part: Part, own: Category) -> Category:
    match part:
        case ToolCall():
            return "tool_calls"
        case ToolResult():
            return "tool_results"
        case Thinking():
            return "thinking"
        case Media():
            return "images"
        case Text() | Unknown():
            return own


class Remake(Protocol):
    @property
    def format(self) -> Format:
        """Format of every message of the history."""
        ...

    def entries(self, natives: Sequence[object], after: Sequence[Entry] = ()) -> Steps[tuple[Entry, ...]]:
        """Return entries for new messages that follow `after`."""
        ...

    def remade(self, entry: Entry, native: object) -> Entry:
        """Return the entry with another message in it, read and weighed; `pinned`, `kind` and `record` are kept."""
        ...

    def count(self, text: str) -> int:
        """Return the tokens of a plain text."""
        ...


_AT_ONCE = 8
"""Messages weighed in one step. A long message is counted in steps of its own."""

_STRETCH = 32
"""Messages weighed in one step when their turn is over and their known weight may have changed."""

_WORD = "tokens"
"""A sample text."""


class Scale:
    """Weighs the messages of one format for one model. For an unknown model the error band is wide."""

    __slots__ = ("_counted_as", "format", "meter", "model")

    def __init__(self, meter: Meter, model: str, format: Format) -> None:  # noqa: A002
        self.meter = meter
        self.model = model
        self.format = format
        self._counted_as = model if meter.models.get(model) is not None else unheard(model)

    def fixed(self, system: object = None, tools: Sequence[object] = (), entries: Sequence[Entry] = ()) -> Steps[Fixed]:
        """Weigh the system prompt, each tool and the request itself, given in the format's form.

        The result can depend on whether the entries contain a system message or a document to be cited. Call it again
        when the first of its kind is added, and when the system prompt or the tools change.
        """
        given = read_fixed(system, tools, self.format)
        among = tuple(entry.message for entry in entries if changes_framing(entry.message))
        request = replace(given, messages=(*given.messages, *among))
        return fixed_of(given, (yield from self.meter.weigh_steps(request, self._counted_as)))

    def entries(self, natives: Sequence[object], after: Sequence[Entry] = ()) -> Steps[tuple[Entry, ...]]:
        """Return entries for new messages that follow `after`."""
        return (yield from self.grown(after, natives))[len(after) :]

    def grown(self, before: Sequence[Entry], natives: Sequence[object]) -> Steps[tuple[Entry, ...]]:
        """Return a history with new messages at its end. Earlier entries whose weight changes are made anew (the first
        of the results of calls made at once, thinking of a finished turn that is no longer sent); all others stay the
        same objects."""
        whole = tuple(before)
        for start in range(0, len(natives), _AT_ONCE):
            read = ((native, read_message(native, self.format)) for native in natives[start : start + _AT_ONCE])
            fresh = (Entry(native=native, message=one, weight=ZERO, kind=kind_of(one)) for native, one in read)
            whole = yield from self._weighed((*whole, *fresh), len(whole))
            yield
        return whole

    def together(self, entries: Sequence[Entry]) -> Steps[tuple[Entry, ...]]:
        """Return entries with the weights that they have side by side."""
        whole: tuple[Entry, ...] = ()
        for start in range(0, len(entries), _AT_ONCE):
            whole = yield from self._weighed((*whole, *entries[start : start + _AT_ONCE]), len(whole))
            yield
        return whole

    def remade(self, entry: Entry, native: object) -> Entry:
        """Return the entry with another message, its weight corrected by the difference of the two."""
        message = read_message(native, self.format)
        weight = _moved(entry.weight, self._alone(entry.message), self._alone(message))
        changed = replace(entry, native=native, message=message, weight=weight)
        return replace(changed, shares=self._shares(changed))

    def count(self, text: str) -> int:
        """Return the tokens of a plain text, at the middle of the error band."""
        return self.meter.count(text, self._counted_as).tokens

    @property
    def has_vocabulary(self) -> bool:
        """Whether texts are counted with the model's own vocabulary."""
        return self.meter.count("a", self._counted_as).method is Method.EXACT

    def around(self, answer: Message) -> int:
        """Return the tokens of framing around an answer that is sent back, which were not in its output count. Claude's
        output count includes the frame, as recorded sessions show."""
        match = self.meter.models.get(self.model)
        is_claude = match is not None and match.card.provider == "anthropic"
        return 0 if is_claude else self._alone(replace(answer, parts=())).tokens

    def learn(self, ours: Count, reported: int) -> None:
        """Adjust the estimate to the provider's count of what was just weighed.

        Only for a model whose texts are estimated: calibrated estimates rest on more data than one history
        (adjusted call after call by a recorded session of Claude, their error rose from 0.36 % to 0.50 %).
        """
        if self.meter.count(_WORD, self._counted_as).method is Method.ESTIMATED:
            self.meter.learn(ours, reported, self._counted_as)

    def _weighed(self, entries: tuple[Entry, ...], since: int) -> Steps[tuple[Entry, ...]]:
        """Weigh the entries from `since` on and correct the ones before.

        An earlier weight is compared with what the entry would weigh now without the new ones: the meter may have
        learnt since, which alone is no reason to make the entry anew.
        """
        messages = [entry.message for entry in entries]
        start = unsettled(messages, since)
        weights = yield from self._weigh(messages, start)
        if start < since:
            without = yield from self._weigh(messages[:since], start)
            known = (entry.weight for entry in entries[start:since])
            earlier = zip(known, without, weights, strict=False)
            weights = (*(old if alone == now else now for old, alone, now in earlier), *weights[since - start :])
        made = list[Entry]()
        for entry, weight in zip(entries[start:], weights, strict=True):
            weighed = entry
            if entry.weight != weight or (weight.tokens and not entry.shares):
                weighed = replace(entry, weight=weight)
                weighed = replace(weighed, shares=self._shares(weighed))
            made.append(weighed)
            if not len(made) % _STRETCH:
                yield
        return (*entries[:start], *made)

    def _weigh(self, messages: Sequence[Message], start: int) -> Steps[tuple[Count, ...]]:
        """Weigh the messages from `start` on in steps, each stretch next to what its weight depends on."""
        weights = list[Count]()
        while start < len(messages):
            end = seam(messages, start + _STRETCH)
            before, after = beside(messages[:end], start), behind(messages, end)
            request = self._request((*before, *messages[start:end], *after))
            weight = yield from self.meter.weigh_steps(request, self._counted_as)
            weights += weight.messages[len(before) : len(before) + end - start]
            start = end
            if start < len(messages):
                yield
        return tuple(weights)

    def _shares(self, entry: Entry) -> dict[Category, int]:
        """Divide an entry's weight by category. Thinking is the difference that its removal would make, since it may
        weigh nothing. The rest is divided in the ratio of what each kind of part weighs alone."""
        parts = parted(entry.message, entry.kind)
        tokens, shares = entry.weight.tokens, dict[Category, int]()
        if len(parts) > 1 and parts.pop("thinking", None):
            rest = tuple(part for message in parts.values() for part in message.parts)
            shares["thinking"] = max(0, tokens - self._alone(replace(entry.message, parts=rest)).tokens)
            tokens -= shares["thinking"]
        alone = [self._alone(part).tokens for part in parts.values()] if len(parts) > 1 else [tokens]
        return shares | dict(zip(parts, apportioned(tokens, alone), strict=True))

    def _alone(self, message: Message) -> Count:
        return self.meter.weigh(self._request((message,)), self._counted_as).messages[0]

    def _request(self, messages: tuple[Message, ...]) -> Request:
        return Request(format=self.format, model=self._counted_as, messages=messages)


def changes_framing(message: Message) -> bool:
    """Return whether the message may change what the provider adds once to a request."""
    inner = (part for one in message.parts for part in (one.parts if isinstance(one, ToolResult) else (one,)))
    return message.role in ("system", "developer") or (
        message.role != "assistant" and any(isinstance(part, Unknown) for part in inner)
    )


def _moved(weight: Count, before: Count, now: Count) -> Count:
    """Correct a weight by the change from `before` to `now`.

    What the message weighs more beside others than alone is framing, and what escapes add to its text in a list of
    results. The latter shrinks with the text.
    """
    if weight == before:
        return now
    beside = weight.tokens - before.tokens
    if beside > _FRAMING and now.tokens < before.tokens:
        beside = _FRAMING + round((beside - _FRAMING) * now.tokens / before.tokens)
    tokens = max(0, now.tokens + beside)
    method = (weight + now).method
    low = max(0, tokens - (now.tokens - now.low))
    return Count(tokens=tokens, method=method, low=min(low, tokens), high=tokens + now.high - now.tokens)


_FRAMING = 50
"""Most tokens that the place of a message among others adds without regard to its length."""
_JUMP = 1.6
"""A report more than this many times what was expected, or less than that fraction of it, is a mistake."""
_NEAR = 1.1
"""Factor of Ullage's own error band. A report within it is accepted whatever was expected."""
_REPLY_BAND = 12
"""Tokens by which an answer differed as output and as input in 19 of 20 answers of one recorded session of Claude."""
_LESSON = 1_000
"""Tokens below which a growth says more about framing than about text."""
_SPAN = 0.25
"""Share by which two requests must differ in size to tell what grows with the text from what is added once."""


def summed(entries: Sequence[Entry]) -> Count:
    """Return the total weight of entries. Faster than `total`, for a thousand entries before every call of a model."""
    weights = [entry.weight for entry in entries]
    methods = {weight.method for weight in weights}
    return Count(
        tokens=sum([weight.tokens for weight in weights]),
        method=next((method for method in reversed(Method) if method in methods), Method.EXACT),
        low=sum([weight.low for weight in weights]),
        high=sum([weight.high for weight in weights]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchored:
    """A report of the provider and the request that it is for."""

    tokens: Count
    """Tokens of what was sent, as reported, and of the answer."""
    fixed: Fixed
    entries: tuple[Entry, ...]
    """What was sent, and the answer."""
    own: Count
    """Ullage's weight of both."""
    least: tuple[int, int]
    """The smallest reported request with the same system prompt and tools: Ullage's count and the provider's."""

    def weigh(self, fixed: Fixed, entries: Sequence[Entry]) -> Count:
        """Return the weight of a history as the provider counts it."""
        sent = len(self.entries)
        if fixed == self.fixed and tuple(entries[:sent]) == self.entries:
            grown = self.tokens + summed(entries[sent:])
            return Count(tokens=grown.tokens, method=Method.ANCHORED, low=grown.low, high=grown.high)
        own = fixed.total + summed(entries)
        tokens = max(0, round(self.tokens.tokens + self.slope * (own.tokens - self.own.tokens)))
        # The weight of the entries that are in only one of the two.
        before = self.entries
        was, there = {id(entry) for entry in before}, {id(entry) for entry in entries}
        gone = (entry.weight.tokens for entry in before if id(entry) not in there)
        new = (entry.weight.tokens for entry in entries if id(entry) not in was)
        anchor_moved = sum(gone) + sum(new)
        moved = anchor_moved / max(1, own.tokens)
        low, high = (round(min(1.0, moved) * reach) for reach in (own.tokens - own.low, own.high - own.tokens))
        return Count(tokens=tokens, method=Method.CALIBRATED, low=max(0, tokens - low), high=tokens + high)

    @property
    def slope(self) -> float:
        """The provider's count for each token of Ullage's, within Ullage's error band. The rest is added once."""
        ours, reported = self.least
        own = self.own.tokens
        told = own - ours > _SPAN * own
        slope = (self.tokens.tokens - reported) / (own - ours) if told else self.tokens.tokens / max(1, own)
        return min(max(slope, self.own.low / max(1, own)), self.own.high / max(1, own))


def observe(  # noqa: PLR0913 - what was sent, what came back, and what was known before
    scale: Scale,
    usage: Usage,
    *,
    fixed: Fixed,
    sent: Sequence[Entry],
    answer: Sequence[Entry] = (),
    before: Anchored | None = None,
) -> Anchored | None:
    """Return the anchor after a call of the model: a new one, or the one before if the report is implausible or
    missing. The growth since the anchor before adjusts the scale."""
    own, reported = fixed.total + summed(sent), usage.input
    if reported is None or not _is_plausible(reported, own, before.weigh(fixed, sent) if before else None):
        return before
    if before is not None:
        # The growth since then, as the provider counts it and as Ullage does.
        known = len(before.entries)
        if fixed == before.fixed and tuple(sent[:known]) == before.entries:
            ours = summed(sent[known:])
            if ours.tokens >= _LESSON:
                scale.learn(ours, max(1, reported - before.tokens.tokens))
    told = Count(tokens=reported, method=Method.ANCHORED, low=reported, high=reported)
    least = (own.tokens, reported)
    return Anchored(
        tokens=told + _reply(scale, usage, answer),
        fixed=fixed,
        entries=(*sent, *answer),
        own=own + summed(answer),
        least=min(least, before.least) if before and before.fixed == fixed else least,
    )


def _is_plausible(reported: int, own: Count, expected: Count | None) -> bool:
    if own.low / _NEAR <= reported <= own.high * _NEAR:
        return True
    if expected is None:
        # What the provider adds unseen is not known yet, so that only a report that is too low can be detected.
        return reported * _JUMP >= own.low
    return expected.tokens / _JUMP <= reported <= expected.tokens * _JUMP


def _reply(scale: Scale, usage: Usage, answer: Sequence[Entry]) -> Count:
    """Return the weight of the answer as input, taken from its output count if that is within Ullage's error band.
    Thinking that is not sent back is no input, and an answer that was broken off reports little. With the model's own
    vocabulary Ullage's count is better: an answer that was held to a schema may have had more tokens as output than as
    input."""
    own, output = summed(answer), usage.output
    if scale.has_vocabulary or output is None:
        return own
    thinks = any(isinstance(part, Thinking) for entry in answer for part in entry.message.parts)
    said = output if thinks else output - (usage.reasoning or 0)
    said += sum(scale.around(entry.message) for entry in answer)
    if not own.low <= said <= own.high:
        return own
    return Count(tokens=said, method=Method.ANCHORED, low=max(0, said - _REPLY_BAND), high=said + _REPLY_BAND)
