"""Checks whether a provider would accept a list of messages.

The rules are those that providers name when they refuse a request. This is not a schema check: keys, types and media
are ignored, and only faults that dropping messages can cause are found. Settings beside the messages (whether thinking
is on, which tools exist) are ignored too.

All providers: a call is answered before the user's next message, and every result has a call. Messages form turns, each
of one speaker.

Anthropic: adjacent messages of one role are one turn, so calls and results are compared by turns.

Gemini: adjacent messages of one role are one turn. Only newer clients give a call an id, so a turn of calls and the
turn of responses after it are matched by their names and number.

OpenAI chat: OpenAI's own rules; other providers of the format are less strict in places.

OpenAI Responses: the rules for a history that is sent whole. Messages stored by the API, behind `previous_response_id`
or a conversation, are not visible here.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise
from json import dumps
from typing import Any, Generic, TypeVar

from ullage.tool import Json

from .message_formats import plain, read_message
from .parts import Format, Message, Thinking, ToolCall, ToolResult, text_of
from .write.turns import name_openai_calls

__all__ = [
    "Item",
    "Turn",
    "altered_anthropic",
    "altered_gemini",
    "altered_neutral",
    "altered_openai_responses",
    "faults",
    "objects_of",
    "refused_anthropic",
    "refused_gemini",
    "refused_neutral",
    "refused_openai_chat",
    "refused_openai_responses",
    "speaker_anthropic",
    "speaker_gemini",
    "speaker_neutral",
    "speaker_openai_chat",
    "speaker_openai_responses",
    "turns_of",
]


def speaker_neutral(message: Message) -> str | None:
    """Return the speaker; None for system messages, which do not separate turns."""
    return None if message.role in ("system", "developer") else message.role


def refused_neutral(messages: Sequence[Message]) -> Iterator[str]:
    """Check the parts in order: a tool that the provider ran itself has its result in the message with the call."""
    waiting = Counter[str]()
    for message in (name_openai_calls(message) for message in messages if speaker_neutral(message) is not None):
        if message.role == "user" and not any(isinstance(part, ToolResult) for part in message.parts):
            yield from (f"{call} has no result before the user speaks" for call in +waiting)
            waiting.clear()
        for part in message.parts:
            if isinstance(part, ToolCall):
                waiting[_name_call(part.id)] += 1
            elif isinstance(part, ToolResult) and waiting[_name_call(part.call_id)]:
                waiting[_name_call(part.call_id)] -= 1
            elif isinstance(part, ToolResult):
                yield f"the result of {_name_call(part.call_id)} has no call before it"
    yield from (f"{call} has no result" for call in +waiting)


def altered_neutral(messages: Sequence[Message], original: Sequence[Message]) -> Iterator[str]:
    sealed = {thought for message in original for thought in _thoughts(message)}
    if any(thought not in sealed for message in messages for thought in _thoughts(message)):
        yield "a stretch of thinking is not what it was"


def _name_call(identity: str | None) -> str:
    """Name a call in a message. Where a provider gives no ids, calls and results are only counted."""
    return "a call without an id" if identity is None else f"the call `{identity}`"


def _thoughts(message: Message) -> list[Thinking]:
    return [part for part in message.parts if isinstance(part, Thinking)]


Item = Mapping[str, Json]
"""A message, or a part of one, in its provider's format."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The consecutive messages of one speaker."""

    speaker: str
    parts: tuple[Item, ...]


def turns_of(
    messages: Iterable[Item], speaker: Callable[[Item], str], parts: Callable[[Item], Sequence[Item]]
) -> list[Turn]:
    return [
        Turn(name, tuple(part for message in told for part in parts(message)))
        for name, told in groupby(messages, speaker)
    ]


def objects_of(value: Json) -> list[Item]:
    """Return the objects of a list; an empty list for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


_THINKING = frozenset({"thinking", "redacted_thinking"})
_SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
_NOTHING = Turn("", ())


def speaker_anthropic(message: Item) -> str | None:
    """Return the speaker; None for system messages, which do not separate turns."""
    role = text_of(message.get("role"))
    return None if role == "system" else role


def refused_anthropic(messages: Sequence[Item]) -> Iterator[str]:
    for place, message in enumerate(messages):
        # Only the assistant's last message, which the model continues, may be empty.
        blocks, role = _blocks(message), message.get("role")
        continued = place == len(messages) - 1 and speaker_anthropic(message) == "assistant"
        if not blocks and not continued:
            yield f"a message of the role `{role}` has no content"
        if any(not text_of(text.get("text")).strip() for text in _texts(blocks)):
            yield f"a message of the role `{role}` has an empty text block"
        elif continued and blocks and text_of(blocks[-1].get("text"))[-1:].isspace():
            yield "the assistant's last message ends in white space"
    said = (message for message in messages if speaker_anthropic(message) is not None)
    turns = turns_of(said, lambda message: text_of(message.get("role")), _blocks)
    for before, turn in pairwise((_NOTHING, *turns, _NOTHING)):
        yield from _find_unpaired_calls(before, turn)
    yield from _unpaired_on_server(turns)
    if any(turn.parts and turn.parts[-1].get("type") in _THINKING for turn in turns):
        yield "a turn of the assistant's ends in thinking"


def altered_anthropic(messages: Sequence[Item], original: Sequence[Item]) -> Iterator[str]:
    """Check that each block of thinking is unchanged, and that none is missing since the user's last message."""
    sealed = {repr(block) for message in original for block in _valid_anthropic_thoughts(message)}
    for block in (block for message in messages for block in _valid_anthropic_thoughts(message)):
        if repr(block) not in sealed:
            yield "a thinking block is not what it was"
    whole = {call: len(_valid_anthropic_thoughts(message)) for message in original for call in _calls(_blocks(message))}
    # The turn that goes on begins after the last message in which the user writes something beside results.
    start = 0
    for place, message in enumerate(messages):
        blocks = _blocks(message)
        if speaker_anthropic(message) == "user" and len(_results(blocks)) < len(blocks):
            start = place + 1
    for message in messages[start:]:
        for call in _calls(_blocks(message))[:1]:
            if len(_valid_anthropic_thoughts(message)) < whole.get(call, 0):
                yield f"the thinking before the call `{call}` is missing"


def _blocks(message: Item) -> list[Item]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return objects_of(content)


def _texts(blocks: Sequence[Item]) -> Iterator[Item]:
    for block in blocks:
        if block.get("type") == "text":
            yield block
        elif block.get("type") == "tool_result":
            yield from _texts(objects_of(block.get("content")))


def _find_unpaired_calls(before: Turn, turn: Turn) -> Iterator[str]:
    """Check that each call of a turn has one result at the start of the next, and each result there has its call."""
    calls, results = Counter(_calls(before.parts)), Counter(_results(turn.parts))
    yield from (f"two calls of one turn have the id `{call}`" for call, times in calls.items() if times > 1)
    yield from (f"the call `{call}` has no result in the next turn" for call in calls if call not in results)
    yield from (f"the result of `{call}` has no call in the turn before" for call in results if call not in calls)
    yield from (f"the call `{call}` has {times} results" for call, times in results.items() if times > 1)
    if any(block.get("type") != "tool_result" for block in turn.parts[: results.total()]):
        yield f"something comes before the result of `{_results(turn.parts)[-1]}`"


def _calls(blocks: Sequence[Item]) -> list[str]:
    return [text_of(block.get("id")) for block in blocks if block.get("type") == "tool_use"]


def _results(blocks: Sequence[Item]) -> list[str]:
    return [text_of(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]


def _unpaired_on_server(turns: Sequence[Turn]) -> Iterator[str]:
    """Check that a tool that Anthropic ran has its result before the user's next text; at the very end it may be
    running."""
    running = dict[str, None]()
    for turn in turns:
        if turn.speaker == "user" and len(_results(turn.parts)) < len(turn.parts):
            yield from (f"the server's call `{call}` has no result" for call in running)
            running.clear()
        for block in turn.parts:
            call = text_of(block.get("tool_use_id"))
            if block.get("type") in _SERVER_CALLS:
                running[text_of(block.get("id"))] = None
            elif text_of(block.get("type")).endswith("_tool_result") and running.pop(call, call) is not None:
                yield f"the server's result of `{call}` has no call before it"


def _valid_anthropic_thoughts(message: Item) -> list[Item]:
    return [block for block in _blocks(message) if block.get("type") in _THINKING]


def speaker_gemini(content: Item) -> str:
    """Return the speaker. Any role other than the model's is the user: functions answer in the user's turn, and a role
    may be missing."""
    return "assistant" if content.get("role") == "model" else "user"


def refused_gemini(contents: Sequence[Item]) -> Iterator[str]:
    if any(not objects_of(content.get("parts")) for content in contents):
        yield "a content has no parts"
    turns = turns_of(contents, speaker_gemini, _parts)
    # A turn of calls is followed by as many responses of the same names, and there are no other responses.
    for before, turn in pairwise((_NOTHING, *turns, _NOTHING)):
        calls = Counter(_name(part, "functionCall") for part in _valid_gemini_calls(before))
        responses = Counter(_name(part, "functionResponse") for part in turn.parts if _under(part, "functionResponse"))
        yield from (f"a call of `{name}` has no response in the next turn" for name in (calls - responses).elements())
        yield from (f"a response of `{name}` has no call in the turn before" for name in (responses - calls).elements())
    if turns and turns[0].speaker == "assistant" and _valid_gemini_calls(turns[0]):
        yield "the first turn is one of calls"


def altered_gemini(contents: Sequence[Item], original: Sequence[Item]) -> Iterator[str]:
    """Check that the first call of a turn of calls keeps its thought signature, where it had one."""
    seals = defaultdict[str, set[str]](set)
    for turn in turns_of(original, speaker_gemini, _parts):
        for call in _valid_gemini_calls(turn):
            seals[_fingerprint(call)].add(_seal(_valid_gemini_calls(turn)[0]))
    for turn in turns_of(contents, speaker_gemini, _parts):
        for call in _valid_gemini_calls(turn)[:1]:
            if _seal(call) not in seals.get(_fingerprint(call), {_seal(call)}):
                yield f"the call of `{_name(call, 'functionCall')}` has not the signature it had"


def _parts(content: Item) -> list[Item]:
    return objects_of(content.get("parts"))


def _valid_gemini_calls(turn: Turn) -> list[Item]:
    return [part for part in turn.parts if _under(part, "functionCall")]


def _under(part: Item, key: str) -> Item:
    """Return the object under a key in either spelling: `functionCall`, `function_call`."""
    value = part.get(key, part.get(_SNAKE[key]))
    return value if isinstance(value, dict) else {}


def _name(part: Item, key: str) -> str:
    return text_of(_under(part, key).get("name"))


def _seal(part: Item) -> str:
    return text_of(part.get("thoughtSignature", part.get("thought_signature")))


def _fingerprint(part: Item) -> str:
    return dumps(_under(part, "functionCall"), sort_keys=True)


_SNAKE = {"functionCall": "function_call", "functionResponse": "function_response"}

_SYSTEM = frozenset({"system", "developer"})
_INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")


def speaker_openai_chat(message: Item) -> str | None:
    """Return the speaker; None for system messages, which do not separate turns."""
    role = text_of(message.get("role"))
    return None if role in _SYSTEM else role


def refused_openai_chat(messages: Sequence[Item]) -> Iterator[str]:
    for message in messages:
        content = message.get("content")
        if content == [] or message.get("tool_calls") == []:
            yield f"a message of the role `{message.get('role')}` has an empty list"
        if content is None and not any(message.get(key) for key in _INSTEAD_OF_CONTENT):
            yield f"a message of the role `{message.get('role')}` has no content"
    yield from _valid_openai_chat_unpaired(messages)


def _valid_openai_chat_unpaired(messages: Sequence[Item]) -> Iterator[str]:
    """Check that the calls of a message are answered by the tool messages directly after it, each once."""
    waiting, end = Counter[str](), dict[str, Json]()
    for message in (*messages, end):
        if message.get("role") == "tool":
            call = text_of(message.get("tool_call_id"))
            if not waiting[call]:
                yield f"the result of `{call}` has no call before it"
            waiting[call] = max(0, waiting[call] - 1)
            continue
        yield from (f"the call `{call}` has no result before the next message" for call in +waiting)
        calls = (text_of(call.get("id")) for call in objects_of(message.get("tool_calls")))
        waiting = Counter(calls)
        yield from (f"two calls of one message have the id `{call}`" for call, n in waiting.items() if n > 1 and call)


_SEARCH = "tool_search_call"
"""A call whose output may be missing; an output without this call is a fault."""
_CALLS = frozenset(
    {"function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"}
)
_OUTPUTS = frozenset({"tool_search_output", *(f"{call}_output" for call in _CALLS)})
_OTHERS = frozenset({*_OUTPUTS, "mcp_approval_response", "additional_tools"})
"""Items not made by the model, in addition to messages of other roles."""


def speaker_openai_responses(item: Item) -> str | None:
    """Return the speaker. The model's items follow one another, so they do not count as adjacent turns."""
    if _is_models(item):
        return "model"
    return "user" if item.get("role") == "user" else "tool" if _kind(item) in _OTHERS else None


def refused_openai_responses(items: Sequence[Item]) -> Iterator[str]:
    yield from _valid_openai_responses_unpaired(items)
    for item, after in pairwise((*items, {"role": "user"})):
        if _kind(item) == "reasoning" and not _is_models(after):
            yield f"the reasoning `{text_of(item.get('id'))}` has not the item that followed it"
    again = Counter(text_of(item.get("id")) for item in items if item.get("id"))
    yield from (f"two items have the id `{identity}`" for identity, times in again.items() if times > 1)
    if any(item.get("content") == [] for item in items if _kind(item) == "message"):
        yield "a message has an empty list"


def altered_openai_responses(items: Sequence[Item], original: Sequence[Item]) -> Iterator[str]:
    """Check that reasoning is unchanged, and that an item with an id follows the reasoning that led to it."""
    sealed = {repr(item) for item in original if _kind(item) == "reasoning"}
    if any(repr(item) not in sealed for item in items if _kind(item) == "reasoning"):
        yield "an item of reasoning is not what it was"
    wanted, there = _led_to(original), _led_to(items)
    for identity, reasoning in there.items():
        if reasoning is None and wanted.get(identity) is not None:
            yield f"the reasoning before the item `{identity}` is missing"


def _kind(item: Item) -> str:
    return text_of(item.get("type", "message"))


def _is_models(item: Item) -> bool:
    kind = _kind(item)
    return item.get("role") == "assistant" if kind == "message" else kind not in _OTHERS


def _valid_openai_responses_unpaired(items: Sequence[Item]) -> Iterator[str]:
    """Check calls against outputs. Items of tools that OpenAI runs itself have no `call_id`, and are skipped.

    A call may be given as a reference to a stored item, whose `call_id` is not visible here.
    """
    waiting, searches = Counter[str](), set[str]()
    has_references = any(_kind(item) == "item_reference" for item in items)
    for item in (item for item in items if item.get("call_id")):
        call, kind = text_of(item["call_id"]), _kind(item)
        if kind in _CALLS:
            waiting[call] += 1
        elif kind == _SEARCH:
            searches.add(call)
        elif kind in _OUTPUTS and waiting[call]:
            waiting[call] -= 1
        elif kind in _OUTPUTS and call not in searches and not has_references:
            yield f"the output of `{call}` has no call before it"
    yield from (f"the call `{call}` has no output" for call in +waiting)


def _led_to(items: Sequence[Item]) -> dict[str, str | None]:
    """Return, by the id of an item, the reasoning before it in the same answer."""
    found, reasoning = dict[str, str | None](), None
    for item in items:
        if not _is_models(item):
            reasoning = None
        elif _kind(item) == "reasoning":
            reasoning = text_of(item.get("id"))
        elif item.get("id"):
            found[text_of(item["id"])] = reasoning
    return found


One = TypeVar("One")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules(Generic[One]):
    """The rules of one format, over messages in the type that they read."""

    read: Callable[[object], One]
    refused: Callable[[Sequence[One]], Iterator[str]]
    speaker: Callable[[One], str | None]
    altered: Callable[[Sequence[One], Sequence[One]], Iterator[str]]


def faults(
    natives: Sequence[object],
    format: Format,  # noqa: A002
    *,
    original: Sequence[object] | None = None,
) -> tuple[str, ...]:
    """Return what is wrong with a list of messages, one line a fault; empty where a provider would accept them.

    Args:
        natives: The messages, in their provider's format.
        format: That format.
        original: The messages from which `natives` were made. Faults that these have too are then left out. Added are
            faults that providers accept but a rewrite should not cause: adjacent turns of one side, a history that does
            not begin with the user, and thinking that was changed.
    """
    rules = _RULES[format]
    now = [rules.read(native) for native in natives]
    if original is None:
        return tuple(rules.refused(now))
    before = [rules.read(native) for native in original]
    found = Counter(_strictly(rules, now)) - Counter(_strictly(rules, before))
    return (*found.elements(), *(rules.altered(now, before) if before else ()))


def _strictly(rules: "_Rules[One]", items: Sequence[One]) -> Iterator[str]:
    yield from rules.refused(items)
    speakers = [name for name in map(rules.speaker, items) if name is not None]
    if speakers and speakers[0] != "user":
        yield "the first turn is not the user's"
    for name, after in pairwise(speakers):
        if name == after and name in ("user", "assistant"):
            yield f"two turns of the {name}'s are adjacent"


def _item(native: object) -> Mapping[str, Json]:
    """Return a message as JSON; a bare text, where the format allows one, as the user's."""
    return (
        {"role": "user", "content": native, "parts": [{"text": native}]} if isinstance(native, str) else plain(native)
    )


_RULES: Mapping[Format, "_Rules[Any]"] = {
    Format.OPENAI_CHAT: _Rules(
        read=_item, refused=refused_openai_chat, speaker=speaker_openai_chat, altered=lambda _items, _original: iter(())
    ),
    Format.OPENAI_RESPONSES: _Rules(
        read=_item,
        refused=refused_openai_responses,
        speaker=speaker_openai_responses,
        altered=altered_openai_responses,
    ),
    Format.ANTHROPIC: _Rules(
        read=_item, refused=refused_anthropic, speaker=speaker_anthropic, altered=altered_anthropic
    ),
    Format.GEMINI: _Rules(read=_item, refused=refused_gemini, speaker=speaker_gemini, altered=altered_gemini),
    Format.ULLAGE: _Rules(
        read=partial(read_message, format=Format.ULLAGE),
        refused=refused_neutral,
        speaker=speaker_neutral,
        altered=altered_neutral,
    ),
}
