"""Token weights of messages, estimated from what providers reported.

Nothing is weighed or decided here.

The system prompt, the tools and what the provider adds once: what no compaction can let go. Read here out of what
people give as system prompt and tools; weighed by `weighing`.

Each is weighed once, when it comes, beside the few that its weight depends on, and what it does to the weight of those
is put right at once: the weights are always those that the meter gives for the whole request. What they add up to,
`usage` says. Every number is the meter's.

Most messages weigh the same wherever they stand. A result bears its call's name with some providers; results of calls
made at once are one list with some; calls side by side weigh less than apart; and thinking of a turn may be shown no
more once the user speaks again. How much each is, the meter's rules know: here is only how far they look.

A message is parted by category, so that each part can be weighed by itself; a whole is parted in the ratio of such
weights, and the parts sum to it. Nothing is weighed here.

A report is what the provider counted for a request. What was only added to since weighs that, and what was added is all
that is weighed. Of what was changed since, the report tells still how our scale and the provider's differ. Reports that
cannot be right are passed over: some leave out what was cached, some count a request twice.

The seam between deciding what is let go and weighing what is left. `weighing` fulfils it, and so does a stand-in.
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
"""What the tokens of a message are spent on; `system` is for system messages that stand among the others."""

Kind = Literal["message", "summary", "bridge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    native: object
    """A provider's dict, an SDK's object or a neutral `Message`; handed back as it is."""
    message: Message
    """The same in neutral parts."""
    weight: Count
    """Its own framing included."""
    shares: Mapping[Category, int] = field(default_factory=dict[Category, int])
    """What the weight is spent on; they sum to it."""
    pinned: bool = False
    """Whether it stays as it is, whatever is let go."""
    kind: Kind = "message"
    """A summary stands for what was let go; a bridge is a word of the assistant's between two turns of the user's."""
    record: str | None = None
    """The id under which the session's file has it; None where there is no session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolWeight:
    name: str
    server: str | None
    """Whose it is, where its name says so: `github` in `github__search` and in `mcp__github__search`."""
    weight: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    system_prompt: Count = ZERO
    """With what the provider adds to every request."""
    tool_definitions: Count = ZERO
    """With what the presence of any tool adds."""
    tools: tuple[ToolWeight, ...] = ()
    """One a definition; beside them the tool definitions weigh what their presence adds."""

    @property
    def total(self) -> Count:
        return self.system_prompt + self.tool_definitions


def read_fixed(system: object, tools: Sequence[object], format: Format) -> Request:  # noqa: A002
    """A request that has nothing but a system prompt and tools, as the format writes them."""
    body = plain({**_SYSTEMS[format](system), "tools": list(tools)})
    return read_request(body, format)


def fixed_of(request: Request, weight: Weight) -> Fixed:
    """Of the weight of such a request; where the format has the system prompt among the messages, of its first."""
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
    """A text, the parts of one, a message, or several."""
    if not system:
        return {"messages": []}
    several = cast("list[object]", system) if isinstance(system, list) else [system]
    if all(map(_is_message, several)):
        return {"messages": several}
    return {"messages": [{"role": "system", "content": system}]}


def _is_message(value: object) -> bool:
    return "role" in value if isinstance(value, Mapping) else hasattr(value, "role")


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
    """The first message that may weigh otherwise, now that those from `since` on are there too."""
    return min(_batch(messages, since), _turn(messages, since))


def beside(messages: Sequence[Message], start: int) -> tuple[Message, ...]:
    """What must stand before those from `start` on for them to weigh what they weigh in the whole: the message before
    them, those of the same role that it follows, and the calls that they answer."""
    near = max(0, start - 1)
    if start < len(messages) and messages[near].role == messages[start].role:
        # Several become one in the prompt with some formats and models, and each weighs what it adds to those before.
        while near and messages[near - 1].role == messages[near].role:
            near -= 1
    wanted = set(_answered(messages[start:])) - set(_called(messages[near:]))
    found: list[Message] = []
    for at in range(near - 1, -1, -1):
        if not wanted:
            break
        if made := wanted & set(_called(messages[at : at + 1])):
            wanted -= made
            found.append(messages[at])
    return (*reversed(found), *messages[near:start])


def behind(messages: Sequence[Message], end: int) -> tuple[Message, ...]:
    """What must stand after those before `end`, where there is a seam, for them to weigh what they weigh in the whole:
    the message after them, and the last by which a provider may tell that the user has spoken since."""
    near, told = messages[end : end + 1], list[int]()
    for speaks in (_is_user, _brings_nothing, _says):
        latest = (at for at in range(len(messages) - 1, end, -1) if _is_user(messages[at]) and speaks(messages[at]))
        told += islice(latest, 1)
    return (*near, *(messages[at] for at in sorted(set(told))))


def seam(messages: Sequence[Message], start: int) -> int:
    """The first place from `start` on where no calls and results go on that began before it."""
    return next((at for at in range(start, len(messages)) if _batch(messages, at) == at), len(messages))


def _batch(messages: Sequence[Message], since: int) -> int:
    """Where calls and results begin that the new message goes on with."""
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


def _turn(messages: Sequence[Message], since: int) -> int:
    """The first thinking of the turn that the new messages end, where they are the user's.

    To some providers a result that the user's role carries ends nothing, to others it does; then the stretch since the
    role's last message is all that can change.
    """
    new = [message for message in messages[since:] if message.role == "user"]
    if not new:
        return since
    asked, first = any(map(_may_ask, new)), since
    for at in range(since - 1, -1, -1):
        message = messages[at]
        if message.role == "user" and (not asked or (not _holds(message.parts, ToolResult) and _says(message))):
            break
        if _holds(message.parts, Thinking):
            first = at
    return first


def _is_user(message: Message) -> bool:
    return message.role == "user"


def _brings_nothing(message: Message) -> bool:
    return not _holds(message.parts, ToolResult)


def _may_ask(message: Message) -> bool:
    return not _holds(message.parts, ToolResult) or _says(message)


def _says(message: Message) -> bool:
    return _holds(message.parts, Text) or _holds(message.parts, Media)


def _holds(parts: Sequence[Part], kind: type[Part]) -> bool:
    return any(isinstance(part, kind) for part in parts)


def _called(messages: Sequence[Message]) -> Iterator[str]:
    return (part.id for message in messages for part in message.parts if isinstance(part, ToolCall) and part.id)


def _answered(messages: Sequence[Message]) -> Iterator[str]:
    return (
        part.call_id for message in messages for part in message.parts if isinstance(part, ToolResult) and part.call_id
    )


_SUMMARY = "<context_summary>"


def kind_of(message: Message) -> Kind:
    """A summary is told by how its text begins: a history from outside says nothing else of it."""
    first = message.parts[0] if message.role == "user" and message.parts else None
    return "summary" if isinstance(first, Text) and first.text.lstrip().startswith(_SUMMARY) else "message"


def parted(message: Message, kind: Kind) -> dict[Category, Message]:
    """The message's parts by what they are, each category as a message of its own."""
    found: dict[Category, list[Part]] = {}
    for category, part in _told_apart(message, kind):
        found.setdefault(category, []).append(part)
    if not found:
        return {_of_role(message, kind): message}
    return {category: replace(message, parts=tuple(parts)) for category, parts in found.items()}


def apportioned(total: int, parts: Sequence[int]) -> tuple[int, ...]:
    """`total` in the ratio of the parts, in whole numbers that sum to it; evenly where all parts are nothing."""
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
    """What stands beside a part and has no kind of its own belongs to that part."""
    own = _of_role(message, kind)
    category = own
    for part in message.parts:
        if own not in ("system", "summary") and not isinstance(part, Unknown):
            category = _of_part(part, own)
        if category == "tool_results" and isinstance(part, ToolResult):
            yield from _of_result(part)
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


def _of_result(result: ToolResult) -> Iterator[tuple[Category, Part]]:
    """A result without the media in it, and those."""
    media = tuple(part for part in result.parts if isinstance(part, Media))
    rest = tuple(part for part in result.parts if not isinstance(part, Media))
    yield "tool_results", replace(result, parts=rest) if media else result
    for medium in media:
        yield "images", medium


class Remake(Protocol):
    @property
    def format(self) -> Format:
        """In which every message of the history is written."""
        ...

    def entries(self, natives: Sequence[object], after: Sequence[Entry] = ()) -> Steps[tuple[Entry, ...]]:
        """Entries for new messages."""
        ...

    def remade(self, entry: Entry, native: object) -> Entry:
        """The same entry with another message in it, read and weighed; pinned, kind and record are as they were."""
        ...

    def count(self, text: str) -> int:
        """The tokens of a plain text."""
        ...


_AT_ONCE = 8
"""Messages that are weighed before others are let in; what is long in one of them is counted in steps of its own."""

_STRETCH = 32
"""The same for messages of a turn that is over, which were weighed already and may weigh otherwise now."""

_WORD = "tokens"
"""A text like any other."""


class Scale:
    """Weighs the messages of one format for one model; a model that nobody knows is weighed within a wide band."""

    __slots__ = ("_counted_as", "format", "meter", "model")

    def __init__(self, meter: Meter, model: str, format: Format) -> None:  # noqa: A002
        self.meter = meter
        self.model = model
        self.format = format
        self._counted_as = model if meter.models.get(model) is not None else unheard(model)

    def fixed(self, system: object = None, tools: Sequence[object] = (), entries: Sequence[Entry] = ()) -> Steps[Fixed]:
        """What the system prompt, each tool and the request itself weigh, natives of the format all.

        Some of that depends on whether there is a system message among the entries, or a document that is to be cited:
        ask again when the first of its kind joins them, as when the system prompt or the tools change.
        """
        given = read_fixed(system, tools, self.format)
        among = tuple(entry.message for entry in entries if changes_framing(entry.message))
        request = replace(given, messages=(*given.messages, *among))
        return fixed_of(given, (yield from self.meter.weigh_steps(request, self._counted_as)))

    def entries(self, natives: Sequence[object], after: Sequence[Entry] = ()) -> Steps[tuple[Entry, ...]]:
        """Entries for new natives that follow `after`."""
        return (yield from self.grown(after, natives))[len(after) :]

    def grown(self, before: Sequence[Entry], natives: Sequence[object]) -> Steps[tuple[Entry, ...]]:
        """A history with new natives at its end. Of the entries that were there before, those that now weigh otherwise
        are made anew (of the results of calls made at once, the first; of a turn that is over, thinking that is shown
        no more) and all others are the same objects."""
        whole = tuple(before)
        for start in range(0, len(natives), _AT_ONCE):
            fresh = map(self._unweighed, natives[start : start + _AT_ONCE])
            whole = yield from self._weighed((*whole, *fresh), len(whole))
            yield
        return whole

    def together(self, entries: Sequence[Entry]) -> Steps[tuple[Entry, ...]]:
        """Entries that were put side by side anew, at the weights they have there."""
        whole: tuple[Entry, ...] = ()
        for start in range(0, len(entries), _AT_ONCE):
            whole = yield from self._weighed((*whole, *entries[start : start + _AT_ONCE]), len(whole))
            yield
        return whole

    def remade(self, entry: Entry, native: object) -> Entry:
        """The same entry with another message in its place, at the weight by which the two differ."""
        message = read_message(native, self.format)
        weight = _moved(entry.weight, self._alone(entry.message), self._alone(message))
        changed = replace(entry, native=native, message=message, weight=weight)
        return replace(changed, shares=self._shares(changed))

    def count(self, text: str) -> int:
        """The tokens of a plain text, the middle of the band."""
        return self.meter.count(text, self._counted_as).tokens

    @property
    def has_vocabulary(self) -> bool:
        """Whether texts are counted with the model's own."""
        return self.meter.count("a", self._counted_as).method is Method.EXACT

    def around(self, answer: Message) -> int:
        """What stands around an answer that is sent back, and was no output of it. Claude's output has its frame in
        it, as recorded sessions show."""
        match = self.meter.models.get(self.model)
        is_claude = match is not None and match.card.provider == "anthropic"
        return 0 if is_claude else self._alone(replace(answer, parts=())).tokens

    def learn(self, ours: Count, reported: int) -> None:
        """Takes the provider's own count of what was just weighed here, as a lesson for what is weighed next.

        For a model whose texts can only be estimated: the calibrated ones were measured on more than one history tells
        (taught by a recorded session of Claude, call after call, they came to be 0.50 % off instead of 0.36 %).
        """
        if self.meter.count(_WORD, self._counted_as).method is Method.ESTIMATED:
            self.meter.learn(ours, reported, self._counted_as)

    def _unweighed(self, native: object) -> Entry:
        message = read_message(native, self.format)
        return Entry(native=native, message=message, weight=ZERO, kind=kind_of(message))

    def _weighed(self, entries: tuple[Entry, ...], since: int) -> Steps[tuple[Entry, ...]]:
        """All entries, those from `since` on weighed and those before put right.

        What was weighed before is compared with what it would weigh now without the new: the meter may have learnt
        something since, and that alone is no reason to make it anew.
        """
        messages = [entry.message for entry in entries]
        start = unsettled(messages, since)
        weights = yield from self._weigh(messages, start)
        if start < since:
            without = yield from self._weigh(messages[:since], start)
            known = (entry.weight for entry in entries[start:since])
            weights = (*map(_unless_equal, known, without, weights), *weights[since - start :])
        return (*entries[:start], *(yield from self._with_weights(entries[start:], weights)))

    def _weigh(self, messages: Sequence[Message], start: int) -> Steps[tuple[Count, ...]]:
        """What the messages from `start` on weigh, some at a time: each stretch beside what its weight depends on."""
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

    def _with_weights(self, entries: Sequence[Entry], weights: Sequence[Count]) -> Steps[list[Entry]]:
        made = list[Entry]()
        for entry, weight in zip(entries, weights, strict=True):
            made.append(self._with_weight(entry, weight))
            if not len(made) % _STRETCH:
                yield
        return made

    def _with_weight(self, entry: Entry, weight: Count) -> Entry:
        if entry.weight == weight and (entry.shares or not weight.tokens):
            return entry
        changed = replace(entry, weight=weight)
        return replace(changed, shares=self._shares(changed))

    def _shares(self, entry: Entry) -> dict[Category, int]:
        """Thinking is what the message would weigh less without it, for it may weigh nothing; the rest in the ratio of
        what each kind of part weighs alone."""
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
    """Whether what is added once a request may depend on the message."""
    inner = (part for one in message.parts for part in (one.parts if isinstance(one, ToolResult) else (one,)))
    return message.role in ("system", "developer") or (
        message.role != "assistant" and any(isinstance(part, Unknown) for part in inner)
    )


def _unless_equal(known: Count, without: Count, now: Count) -> Count:
    return known if without == now else now


def _moved(weight: Count, before: Count, now: Count) -> Count:
    """A weight that was `before` when it stood alone, and is `now`."""
    if weight == before:
        return now
    tokens = max(0, weight.tokens - before.tokens + now.tokens)
    method = (weight + now).method
    low = max(0, tokens - (now.tokens - now.low))
    return Count(tokens=tokens, method=method, low=min(low, tokens), high=tokens + now.high - now.tokens)


_JUMP = 1.6
"""A report that is so many times what was expected, or less than that part of it, is a mistake."""
_NEAR = 1.1
"""The band of our own weight, so many times: a report within it is believed whatever was expected."""
_REPLY_BAND = 12
"""Tokens by which an answer differed as output and as input: in 19 of 20 answers of one recorded session of Claude."""
_LESSON = 1_000
"""Tokens under which a growth says more of framing than of text."""
_SPAN = 0.25
"""The part of a request by which another must be smaller for the two to tell what grows from what is added once."""


def summed(entries: Sequence[Entry]) -> Count:
    """What entries weigh together; as `total` of their weights, for a thousand of them before every call of a model."""
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
    """A report of the provider's, and what it was of."""

    tokens: Count
    """Of what was sent, as reported, and of the answer that came back."""
    fixed: Fixed
    entries: tuple[Entry, ...]
    """What was sent, and the answer."""
    own: Count
    """What we weigh for both."""
    least: tuple[int, int]
    """The smallest request that was reported on with the same system prompt and tools: ours, and the provider's."""

    def weigh(self, fixed: Fixed, entries: Sequence[Entry]) -> Count:
        """What a history weighs as the provider counts."""
        sent = len(self.entries)
        if fixed == self.fixed and tuple(entries[:sent]) == self.entries:
            grown = self.tokens + summed(entries[sent:])
            return Count(tokens=grown.tokens, method=Method.ANCHORED, low=grown.low, high=grown.high)
        return self._carried_over(fixed, entries)

    def _carried_over(self, fixed: Fixed, entries: Sequence[Entry]) -> Count:
        """Along the line on which the reports lie; as unsure as our own weight of what is new or no longer there."""
        own = fixed.total + summed(entries)
        tokens = max(0, round(self.tokens.tokens + self.slope * (own.tokens - self.own.tokens)))
        # What the entries weigh that are in one and not in the other.
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
        """What the provider counts for a token of ours, as far as our band allows; the rest is added once."""
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
    """What to go by from now on, after a call of the model: a new anchor, or the one before where the report cannot be
    right or there is none. What grew since the one before is a lesson for the scale."""
    own, reported = fixed.total + summed(sent), usage.input
    if reported is None or not _is_plausible(reported, own, before.weigh(fixed, sent) if before else None):
        return before
    if before is not None:
        # What grew since, as the provider counts it and as we do.
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
        # Nothing is known yet of what the provider adds out of sight: only too little can be told.
        return reported * _JUMP >= own.low
    return expected.tokens / _JUMP <= reported <= expected.tokens * _JUMP


def _reply(scale: Scale, usage: Usage, answer: Sequence[Entry]) -> Count:
    """The answer as input, by its output where that lies in our band: thinking that is not sent back is no input, and
    an answer that was broken off reports little. With the model's own vocabulary we know better: an answer that was
    held to a schema may have been made of more tokens than it is read as."""
    own, output = summed(answer), usage.output
    if scale.has_vocabulary or output is None:
        return own
    thinks = any(isinstance(part, Thinking) for entry in answer for part in entry.message.parts)
    said = output if thinks else output - (usage.reasoning or 0)
    said += sum(scale.around(entry.message) for entry in answer)
    if not own.low <= said <= own.high:
        return own
    return Count(tokens=said, method=Method.ANCHORED, low=max(0, said - _REPLY_BAND), high=said + _REPLY_BAND)
