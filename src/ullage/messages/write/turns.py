"""Repairs the calls, results and turns of a history before it is written for a provider.

A history can come from any source: Google's calls may have no ids, some servers use one id twice, most results do not
name their tool, and an id from one provider may be invalid for another.

Results come first in the user's turn, and the leading system messages are written outside the turns.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count, dropwhile, groupby
from json import dumps, loads
from re import Pattern
from re import compile as pattern
from typing import NoReturn, cast
from zlib import crc32

from ullage.tool import Json

from ..parts import Media, Message, Part, Text, ToolCall, ToolResult, Unknown

__all__ = [
    "DETAILS",
    "Pairing",
    "Turn",
    "address",
    "arguments_of",
    "beside",
    "conversation",
    "fitting",
    "identity",
    "is_file",
    "media_type",
    "merge_turns",
    "name_openai_calls",
    "object_of",
    "order_parts",
    "result_parts",
    "runs",
]

_ODD = pattern(r"[^a-zA-Z0-9_-]")
_MADE = 31
"""Characters of the original id that a new id keeps: with the suffix, no more than a chat API accepts."""


def arguments_of(call: ToolCall) -> dict[str, Json]:
    """Return the arguments as an object, for formats that need one; text that is not a JSON object is put into one."""
    value = object_of(call.arguments) if call.arguments else {}
    return {"arguments": call.arguments} if value is None else value


def object_of(text: str) -> dict[str, Json] | None:
    """Return the JSON object in a text; None where it is not one."""
    try:
        value = cast("Json", loads(text, parse_constant=_refuse))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse(name: str) -> NoReturn:
    """Reject NaN and the infinities, which are not JSON."""
    raise ValueError(name)


def identity(part: ToolCall | ToolResult) -> str:
    """Return the id of a call; where it has none, an id that its result gets too, if that has the tool's name."""
    given = part.id if isinstance(part, ToolCall) else part.call_id
    return given or f"call_{part.name or ''}"


def fitting(given: str, allowed: Pattern[str]) -> str:
    """Return an id that a provider accepts: the one given if it is valid, else one made from it that any provider
    accepts."""
    if allowed.fullmatch(given):
        return given
    mark = f"{crc32(given.encode('utf-8', 'surrogatepass')):08x}"
    return f"{_ODD.sub('_', given)[:_MADE]}_{mark}"


@dataclass(slots=True)
class Pairing:
    """Assigns a unique id to every call, and the id of its call to every result."""

    by_name: bool = False
    """Whether a result gets its call's name instead, with ids unchanged."""
    _waiting: list[tuple[str | None, ToolCall]] = field(default_factory=list[tuple[str | None, ToolCall]])
    """Calls without a result so far, each with its original id."""
    _used: set[str] = field(default_factory=set[str])
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def paired(self, messages: Iterable[Message]) -> Iterator[Message]:
        for message in messages:
            yield replace(message, parts=tuple(map(self._part, message.parts)))

    def _part(self, part: Part) -> Part:
        if isinstance(part, ToolCall):
            stays = self.by_name or (part.id and part.id not in self._used)
            names = (f"call_{number}" for number in self._numbers)
            known = part if stays else replace(part, id=next(name for name in names if name not in self._used))
            self._used.add(known.id or "")
            self._waiting.append((part.id, known))
            return known
        found = next(self._candidates(part), None) if isinstance(part, ToolResult) else None
        if not isinstance(part, ToolResult) or found is None:
            return part
        self._waiting.remove(found)
        return replace(part, name=found[1].name) if self.by_name else replace(part, call_id=found[1].id)

    def _candidates(self, result: ToolResult) -> Iterator[tuple[str | None, ToolCall]]:
        """Yield the calls that a result may answer: by its id, else the call of its name, else the oldest open call."""
        if result.call_id:
            yield from (one for one in self._waiting if one[0] == result.call_id)
            return
        yield from (one for one in self._waiting if one[1].name == result.name)
        yield from self._waiting


_OPENAI_CALLS = {
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
}
"""Calls of OpenAI's own tools that the client carries out, with the key of their arguments."""
_OPENAI_OUTPUTS = frozenset({"shell_call_output", "apply_patch_call_output"})


def name_openai_calls(message: Message, *, keeps_custom: bool = False) -> Message:
    """Return the message with calls and outputs of OpenAI's own tools as those of plain tools, for other formats.

    Args:
        message: The message.
        keeps_custom: Whether a chat's call of a custom tool is left unchanged.
    """
    return replace(message, parts=tuple(_as_plain_tool(part, keeps_custom=keeps_custom) for part in message.parts))


def _as_plain_tool(part: Part, *, keeps_custom: bool) -> Part:
    value = part.value if isinstance(part, Unknown) else None
    if not isinstance(value, dict):
        return part
    kind, custom, call_id = value.get("type"), value.get("custom"), value.get("call_id")
    if kind == "custom" and isinstance(custom, dict) and not keeps_custom:
        identity, made = value.get("id"), str(custom.get("input"))
        return ToolCall(
            name=str(custom.get("name")), arguments=made, id=identity if isinstance(identity, str) else None
        )
    if not isinstance(kind, str) or not isinstance(call_id, str):
        return part
    if kind in _OPENAI_CALLS:
        name, arguments = kind.removesuffix("_call"), value.get(_OPENAI_CALLS[kind])
        return ToolCall(name=name, arguments=dumps(arguments, ensure_ascii=False), id=call_id)
    if kind in _OPENAI_OUTPUTS:
        output = value.get("output")
        text = output if isinstance(output, str) else dumps(output, ensure_ascii=False)
        return ToolResult(parts=(Text(text),), call_id=call_id)
    return part


DETAILS = frozenset({"low", "high", "auto", "original"})
"""The levels of detail of images in OpenAI's APIs."""
_TYPES = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "document": "application/pdf"}
"""The default media type of each kind."""


def order_parts(message: Message) -> tuple[Part, ...]:
    """Return the parts of a message; in a user's message results come first."""
    if message.role == "assistant":
        return message.parts
    return tuple(sorted(message.parts, key=lambda part: not isinstance(part, ToolResult)))


def runs(message: Message) -> Iterator[tuple[tuple[ToolResult, ...], tuple[Part, ...]]]:
    """Yield the parts of a message in runs: of results, or of other parts."""
    for _, run in groupby(order_parts(message), lambda part: isinstance(part, ToolResult)):
        parts = tuple(run)
        results = tuple(part for part in parts if isinstance(part, ToolResult))
        yield results, () if results else parts


def result_parts(parts: Iterable[Part]) -> Iterator[Text | Media]:
    """Yield the text and media of a result; other parts as JSON, so that the model still gets them."""
    for part in parts:
        if isinstance(part, Text | Media):
            yield part
        elif isinstance(part, Unknown) and (not isinstance(part.value, dict) or "type" in part.value):
            yield Text(dumps(part.value, ensure_ascii=False, separators=(",", ":")))


def beside(parts: tuple[Part, ...], place: int, key: str) -> Json:
    """Return the value that a reader found beside a part under a key, and put after that part."""
    for after in parts[place + 1 :]:
        if not isinstance(after, Unknown):
            break
        if isinstance(after.value, dict) and after.value.keys() == {key}:
            return after.value[key]
    return None


def media_type(media: Media) -> str:
    return media.media_type or _TYPES[media.kind]


def is_file(media: Media) -> bool:
    """Return whether the medium is given by the id of a file that the provider stores."""
    return media.data is None and media.url is not None and "://" not in media.url


def address(media: Media) -> str | None:
    """Return the address: a data URL where the bytes are present, else a web address."""
    if media.data is not None:
        return f"data:{media_type(media)};base64,{media.data}"
    return media.url if media.url is not None and media.url.startswith(("http://", "https://")) else None


Turn = tuple[str, list[dict[str, Json]]]
"""A role, and the content of its turn."""


def conversation(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages without the leading system messages. Later ones become the user's, because not every model
    accepts system messages there."""
    for message in dropwhile(_is_system, messages):
        yield replace(message, role="user") if _is_system(message) else message


def merge_turns(turns: Iterable[Turn], is_result: Callable[[dict[str, Json]], bool]) -> list[Turn]:
    """Return the turns with adjacent ones of one role merged; empty turns are left out."""
    made: list[Turn] = []
    for role, parts in turns:
        if parts and made and made[-1][0] == role:
            made[-1][1].extend(parts)
        elif parts:
            made.append((role, list(parts)))
    return [(role, sorted(parts, key=lambda part: not is_result(part))) for role, parts in made]


def _is_system(message: Message) -> bool:
    return message.role in ("system", "developer")
