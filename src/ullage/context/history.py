"""The messages of a context, with weights and what the provider reported.

`History` keeps the messages, the system prompt and the tools, weighs each message once when the weight is needed, and
keeps what the provider reported.

`Keeping` keeps the history in a session file: added messages are appended, a compaction replaces messages, and messages
of other processes are read in. Every call blocks on the disk. Neither class decides what is dropped.

`amended` repairs a history of which the file lost messages. A line that cannot be read loses its message. If that was a
call, its result is left without one; if it was a result, its call is; and a provider refuses either. Messages left
alone are turned into plain text, so that nothing more is lost, and a missing result is replaced by one that says so.
The stored messages are not changed.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from json import dumps
from typing import TypeVar

from ullage.errors import InvalidArguments, UnreadableRequest
from ullage.messages import (
    Format,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant_message,
    detect_messages,
    from_json,
    plain,
    read_message,
    user_message,
    write_message,
)
from ullage.models import Usage
from ullage.tokens import Meter, Steps
from ullage.tool import Json, JsonObject

from .context_options import Options
from .session import Draft, Record, Session, SessionChanged, listed
from .token_weights import Anchored, Entry, Fixed, Kind, Scale, changes_framing, observe
from .tool_pairs import Call, Pairing, is_instruction, pair, text_of
from .truncate_messages import Shed
from .window_usage import ContextUsage, usage_of

__all__ = ["Amended", "Coming", "History", "Keeping", "News", "amended", "is_broken", "refuse_what_cannot_be_read"]

_RESULT = "[The result of a call{named} that was lost:]"
_CALL = "[A call stood here whose result was lost: {call}]"
_NO_RESULT = "[The result was lost. The call may have been carried out: check before you call it again.]"
_THOUGHT = "[A thought stood here; what followed it was lost.]"
_BEGINNING = "[The beginning of this conversation was lost. Go on.]"
_LONGEST = 2_000
"""Characters of an unknown message that are shown."""
_IDENTITY = {Format.OPENAI_CHAT: "tool_call_id", Format.OPENAI_RESPONSES: "call_id"}
_CUSTOM = "custom_tool_call"
_IN_TURNS = (Format.ANTHROPIC, Format.GEMINI)
"""Formats in which results must follow all messages of one assistant turn, however many these are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amended:
    """Replacements for messages that a provider would refuse, by place."""

    retold: Mapping[int, object] = field(default_factory=dict[int, object])
    """Messages rewritten as text, by place."""
    before: Mapping[int, Sequence[object]] = field(default_factory=dict[int, Sequence[object]])
    """Stand-ins for messages lost before a place, by that place."""

    def __bool__(self) -> bool:
        return bool(self.retold or self.before)


def is_broken(messages: Sequence[Message], gap: int) -> bool:
    """Return whether messages may have been lost before the place `gap`: a call or a result is unpaired, or the
    assistant speaks first. Calls behind the gap are only waiting."""
    pairing = pair(messages)
    alone = any(one.call is None for one in pairing.answered) or any(one.place < gap for one in pairing.unanswered)
    return alone or _opener(messages) is not None or any(_is_left(messages, place) for place in range(gap))


def amended(
    messages: Sequence[Message],
    natives: Sequence[JsonObject],
    format: Format,  # noqa: A002
    gaps: Collection[int],
) -> Amended:
    """Repair a history.

    Args:
        messages: The messages, read.
        natives: The same messages as they were given.
        format: The format to write.
        gaps: Places of messages right before which some were lost.
    """
    pairing = pair(messages, gaps)
    return _Work(messages=messages, natives=natives, format=format, pairing=pairing, gap=max(gaps, default=-1)).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    messages: Sequence[Message]
    natives: Sequence[JsonObject]
    format: Format
    pairing: Pairing
    gap: int
    """Place of the last gap."""

    def run(self) -> Amended:
        retold = dict[int, object]()
        orphans = defaultdict[int, set[int]](set)
        for one in self.pairing.answered:
            if one.call is None:
                orphans[one.place].add(-1 if one.result is None else one.nth)
        for place, numbers in orphans.items():
            retold[place] = self._written(self._without_calls(self.messages[place], numbers))
        # Reasoning alone (Responses) is accepted only with what followed it.
        for place in range(self.gap):
            if _is_left(self.messages, place):
                thoughts = (part.text for part in self.messages[place].parts if isinstance(part, Thinking))
                retold[place] = assistant_message(self.format, "\n".join(filter(str.strip, thoughts)) or _THOUGHT)
        # Calls behind the gap may still be answered.
        parted = [call for call in self.pairing.unanswered if call.place < self.gap]
        for call in parted:
            # The form of the results of an unknown kind of call is unknown.
            if not any(isinstance(part, ToolCall) for part in self.messages[call.place].parts):
                shown = f"{call.name}({call.arguments})"[:_LONGEST]
                retold[call.place] = assistant_message(self.format, _CALL.format(call=shown))
        return Amended(retold=retold, before=self._stand_ins([call for call in parted if call.place not in retold]))

    def _without_calls(self, message: Message, numbers: set[int]) -> Message:
        """Return the message with those results as text behind the complete ones, or as a user message if none is
        complete."""
        nth, sound, told = 0, list[Part](), list[Part]()
        for part in message.parts:
            if not isinstance(part, ToolResult):
                if -1 not in numbers:
                    told.append(part)
                    continue
                shown = dumps(getattr(part, "value", None), ensure_ascii=False)[:_LONGEST]
                told.append(Text(f"{_RESULT.format(named='')}\n{shown}"))
                continue
            if nth in numbers:
                said = text_of(part, self.format)
                heading = _RESULT.format(named=f" of `{part.name}`" if part.name else "")
                told.append(Text(f"{heading}\n{said}" if said.strip() else heading))
                told += [inner for inner in part.parts if not isinstance(inner, Text)]
            else:
                sound.append(part)
            nth += 1
        return Message(role=message.role if sound else "user", parts=(*sound, *told))

    def _stand_ins(self, calls: Sequence[Call]) -> dict[int, list[object]]:
        made = defaultdict[int, list[object]](list)
        for call in calls:
            # Results are put behind the turn of their call.
            place = call.place + 1
            if self.format in _IN_TURNS:
                while place < len(self.messages) and self.messages[place].role == "assistant":
                    place += 1
            made[place] += self._no_result(call)
        first = _opener(self.messages)
        if first is not None and first <= self.gap:
            made[first].insert(0, user_message(self.format, _BEGINNING))
        return made

    def _no_result(self, call: Call) -> list[object]:
        name = None if self.format in _IDENTITY else call.name
        result = ToolResult(parts=(Text(_NO_RESULT),), call_id=call.id, name=name, is_error=True)
        made = self._written(Message(role="tool", parts=(result,)))
        if isinstance(made, Message):
            return [made]
        identity = {_IDENTITY[self.format]: call.id} if self.format in _IDENTITY and call.id else {}
        if self.natives[call.place].get("type") == _CUSTOM:
            identity["type"] = f"{_CUSTOM}_output"
        return [{**made, **identity}]

    def _written(self, message: Message) -> Message | dict[str, Json]:
        """Write a message as one message, as every format allows. Results and other parts are together only if the
        format allows it."""
        return message if self.format is Format.ULLAGE else write_message(message, self.format)[0]


def _opener(messages: Sequence[Message]) -> int | None:
    """Return the place of the first turn if it is the assistant's."""
    first = next((place for place, one in enumerate(messages) if not is_instruction(one)), None)
    return first if first is not None and messages[first].role == "assistant" else None


def _is_left(messages: Sequence[Message], place: int) -> bool:
    """Return whether a message contains only thinking and nothing of the assistant follows."""
    parts = messages[place].parts
    is_alone = any(isinstance(part, Thinking) for part in parts) and not any(
        isinstance(part, Text | ToolCall | ToolResult) for part in parts
    )
    return is_alone and place + 1 < len(messages) and messages[place + 1].role != "assistant"


Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """A message that is not weighed yet."""

    native: object
    pinned: bool = False
    kind: Kind = "message"
    record: str | None = None


@dataclass(frozen=True, slots=True)
class Mends:
    """Messages that are sent differently from what the file contains, by record id."""

    retold: Mapping[str, object]
    before: Mapping[str, tuple[object, ...]]
    """Stand-ins for messages lost before a record."""
    lost: tuple[int, ...]
    """Numbers of all messages that the file has lost."""

    def among(self, records: Sequence[Record]) -> tuple[frozenset[str], frozenset[str]]:
        ids = frozenset(record.id for record in records)
        return ids & self.retold.keys(), ids & self.before.keys()


_NO_MENDS = Mends({}, {}, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What a file contains that the context has not seen."""

    afresh: bool
    """Whether this is the whole history, because another process compacted it."""
    messages: tuple[Coming, ...]
    retold: frozenset[str] = frozenset()
    """Ids of records whose message is now or was before sent differently from the file. Cached weights of them are
    invalid."""
    mends: Mends = _NO_MENDS


class Keeping:
    """Keeps the history of a context in a session file. Every method blocks on the disk."""

    def __init__(self, session: Session, format: Format | None = None) -> None:  # noqa: A002
        self._session = session
        self._format = format or session.format
        self._looked: tuple[tuple[Record, ...], Mends] = ((), _NO_MENDS)
        """The records that were checked last, and their repairs."""
        self._taken = _NO_MENDS
        """The repairs that the current history includes."""
        self._read: dict[str, Message] = {}
        """Messages that were read in the search for losses, by record id."""
        self._made: dict[int, object] = {}
        """Stand-ins for lost messages, by `id()`. The file does not contain them."""

    @property
    def warning(self) -> str | None:
        """What was lost, as long as stand-ins are sent for it; otherwise None."""
        if not (self._taken.retold or self._taken.before):
            return None
        return (
            f"{listed('message', self._taken.lost)} of `{self._session.path}` can no longer be read: a result without "
            "its call is sent as text, and a call without its result with words that say so"
        )

    def append(self, natives: Sequence[object], *, pinned: bool, durable: bool) -> tuple[Coming, ...]:
        """Append messages to the file and return them, not weighed yet, under the ids of their records."""
        records = self._session.append([plain(native) for native in natives], pinned=pinned, durable=durable)
        return tuple(
            Coming(native=native, pinned=pinned, record=record.id)
            for native, record in zip(natives, records, strict=True)
        )

    def news(self, known: Sequence[str]) -> News:
        """Return what is new in the file, given the known ids in order."""
        records, before = self._session.refresh(), self._taken
        old, mends = records[: len(known)], self._look(records)
        is_same = mends is before or mends.among(old) == before.among(old)
        afresh = [record.id for record in old] != list(known) or not is_same
        new = records if afresh else records[len(known) :]
        coming = list[Coming]()
        for record in new:
            coming += [Coming(native=native) for native in mends.before.get(record.id, ())]
            native = mends.retold.get(record.id)
            if not native:
                neutral = self._session.format is Format.ULLAGE
                native = from_json(dict(record.message)) if neutral else record.message
            coming.append(Coming(native=native, pinned=record.pinned, kind=record.kind, record=record.id))
        return News(
            afresh=afresh,
            messages=tuple(coming),
            retold=frozenset({*before.retold, *mends.retold}),
            mends=mends,
        )

    def take(self, news: News) -> None:
        """Confirm that news have become part of the history."""
        self._taken = news.mends

    def replace(
        self, before: Sequence[Entry], after: Sequence[Entry], sheds: Sequence[Shed]
    ) -> tuple[tuple[Entry, ...], int]:
        """Replace messages in the file.

        Returns:
            The entries with their new ids, and the number of the compaction.

        Raises:
            SessionChanged: The file no longer contains `before`. Nothing is written.
            StoreFailed: The file cannot be written. Nothing is lost.
        """
        there = [entry for entry in before if not (entry.record is None and id(entry.native) in self._made)]
        snapshot = self._session.records[: len(there)]
        if [record.id for record in snapshot] != [entry.record for entry in there]:
            raise SessionChanged(f"another process compacted `{self._session.path}` meanwhile")
        same = {id(entry): record for entry, record in zip(there, snapshot, strict=True)}
        values = [
            same.get(id(entry))
            or Draft(message=plain(entry.native), kind=entry.kind, pinned=entry.pinned, of=entry.record)
            for entry in after
        ]
        made = self._session.replace(
            0,
            len(there),
            values,
            snapshot=snapshot,
            meta={"tiers": [shed.tier for shed in sheds], "shed": sum(shed.tokens for shed in sheds)},
        )
        records = self._session.records
        self._taken = self._look(records)
        return tuple(
            (entry if entry.record == record.id else replace(entry, record=record.id))
            for entry, record in zip(after, records, strict=False)
        ), made.number

    def _look(self, records: tuple[Record, ...]) -> Mends:
        """Check for messages that the file has lost, if their numbers have gaps. Compactions leave gaps too, so that
        usually nothing was lost."""
        seen, mends = self._looked
        if records is not seen:
            mends = self._mended(records) if any(_gaps(records)) else _NO_MENDS
            self._made |= {id(one): one for natives in mends.before.values() for one in natives}
            self._looked = records, mends
        return mends

    def _mended(self, records: tuple[Record, ...]) -> Mends:
        try:
            written, before = self._written(records), self._read
            read = {one.id: before.get(one.id) or read_message(one.message, written) for one in records}
            self._read = read
            messages = [read[record.id] for record in records]
        except UnreadableRequest:
            # It is reported when the message is weighed.
            return _NO_MENDS
        holes = dict(_gaps(records))
        lost = self._session.lost() if is_broken(messages, max(holes)) else ()
        gaps = frozenset(place for place, gone in holes.items() if any(one in gone for one in lost))
        if not gaps:
            return _NO_MENDS
        found = amended(messages, [record.message for record in records], self._written(records), gaps)
        # Stand-ins that were made before for the same messages stay the same objects.
        _, known = self._looked
        retold = {records[place].id: native for place, native in found.retold.items()}
        added = {records[place].id: tuple(natives) for place, natives in found.before.items()}
        return Mends(
            {name: _same(native, known.retold.get(name)) for name, native in retold.items()},
            {name: _same(natives, known.before.get(name)) for name, natives in added.items()},
            lost,
        )

    def _written(self, records: Sequence[Record]) -> Format:
        self._format = self._format or detect_messages([one.message for one in records], model=self._session.model)
        return self._format


def _gaps(records: Sequence[Record]) -> Iterator[tuple[int, range]]:
    """Yield the places before which numbers are missing, and these numbers."""
    numbers = [0, *(record.seq for record in records)]
    for place, (before, number) in enumerate(pairwise(numbers)):
        if number > before + 1:
            yield place, range(before + 1, number)


def _same(made: Made, known: Made | None) -> Made:
    return known if known is not None and known == made else made


class History:
    """The messages of a context and their weights. Others may add messages between two steps of weighing."""

    def __init__(
        self,
        *,
        model: str,
        meter: Meter,
        format: Format | None,  # noqa: A002
        system: object,
        tools: Sequence[object],
    ) -> None:
        self.model = model
        self.system, self.tools = system, tuple(tools)
        self.entries: tuple[Entry, ...] = ()
        """Weighed messages."""
        self.coming: list[Coming] = []
        """Messages that are not weighed yet."""
        self.sent = 0
        """Number of entries sent with the last request; 0 if they were not these entries."""
        self.anchored: Anchored | None = None
        self._meter = meter
        self._format = format
        self._scale: Scale | None = None
        self._fixed: Fixed | None = None

    @property
    def messages(self) -> tuple[object, ...]:
        return tuple(entry.native for entry in (*self.entries, *self.coming))

    @property
    def ids(self) -> list[str]:
        """Ids of the messages in the session's file. Stand-ins for lost messages have none."""
        return [one.record for one in (*self.entries, *self.coming) if one.record is not None]

    def instruct(self, system: object) -> None:
        if system != self.system:
            self.system, self._fixed = system, None

    def assume_format(self, format: Format) -> None:  # noqa: A002
        self._format = format

    def offer(self, tools: Sequence[object]) -> None:
        if tuple(tools) != self.tools:
            self.tools, self._fixed = tuple(tools), None

    def see(self, news: News) -> None:
        """Read in what a file contains. Known messages stay the same objects."""
        held: dict[str | None, object] = {}
        if news.afresh:
            both = (*self.entries, *self.coming)
            held = {one.record: one.native for one in both if one.record and one.record not in news.retold}
            self.entries, self.coming, self.anchored, self.sent = (), [], None, 0
        self.coming += [replace(one, native=held.get(one.record, one.native)) for one in news.messages]

    def is_answer(self, native: object) -> bool:
        """Return whether a message is an answer of the model. An answer could be requested again, a user's message
        could not."""
        written = self._format or detect_messages((native,), model=self.model)
        return read_message(native, written).role == "assistant"

    @property
    def scale(self) -> Scale:
        return self._scale or self._detected_scale()

    def _detected_scale(self) -> Scale:
        """Detect a format that was not given, again whenever there are more messages."""
        written = self._format or detect_messages(self.messages, model=self.model)
        if self._scale is None or self._scale.format is not written:
            again = [
                Coming(native=entry.native, pinned=entry.pinned, kind=entry.kind, record=entry.record)
                for entry in self.entries
            ]
            self.entries, self.coming = (), [*again, *self.coming]
            self.anchored, self._fixed, self.sent = None, None, 0
            self._scale = Scale(self._meter, self.model, written)
        return self._scale

    def weigh(self) -> Steps[None]:
        """Weigh new messages, and the fixed part of the request if it may have changed.

        Others may add, weigh or instruct between two steps. Weights of a history that has changed since are discarded.
        """
        while self.coming:
            scale, entries, coming = self._detected_scale(), self.entries, list(self.coming)
            grown = yield from scale.grown(entries, [one.native for one in coming])
            if self.entries is entries and self.coming[: len(coming)] == coming:
                known = len(self.entries)
                fresh = tuple(
                    replace(
                        entry,
                        pinned=one.pinned,
                        kind=entry.kind if one.kind == "message" else one.kind,
                        record=one.record,
                    )
                    for entry, one in zip(grown[known:], coming, strict=False)
                )
                self.entries, self.coming = (*grown[:known], *fresh), self.coming[len(coming) :]
                if any(changes_framing(entry.message) for entry in fresh):
                    self._fixed = None
        while self._fixed is None:
            scale, system, tools = self.scale, self.system, self.tools
            fixed = yield from scale.fixed(system, tools, self.entries)
            if self._scale is scale and self.system is system and self.tools is tools:
                self._fixed = fixed

    @property
    def fixed(self) -> Fixed:
        """Weights of the system prompt and the tools. Valid when everything is weighed."""
        assert self._fixed is not None
        return self._fixed

    @property
    def bare(self) -> int:
        """Tokens of a request without messages, as the provider counts it. What the provider adds does not shrink when
        messages are dropped."""
        return self.fixed.total.tokens if self.anchored is None else self.anchored.weigh(self.fixed, ()).tokens

    def usage(self, entries: Sequence[Entry], options: Options, learnt: int | None) -> ContextUsage:
        """Compute the usage of the window. Valid when everything is weighed. A window that the provider's refusal
        revealed overrides a larger one that was given."""
        said = options.context_window
        held = replace(options, context_window=min(said, learnt)) if said and learnt else options
        return usage_of(self.scale, self.fixed, entries, held, anchored=self.anchored, learnt=learnt)

    def report(self, usage: Usage, sent: int, *, is_next: bool) -> None:
        """Record what the provider reported for the first `sent` entries. `is_next` means that only its answer followed
        them."""
        self.anchored = observe(
            self.scale,
            usage,
            fixed=self.fixed,
            sent=self.entries[:sent],
            answer=self.entries[sent:] if is_next else (),
            before=self.anchored,
        )

    def since(self, snapshot: Sequence[Entry]) -> tuple[Entry, ...] | None:
        """Return what was added to a snapshot; None if the history is another, because the file was read again
        meanwhile."""
        same = (entry.native is other.native for entry, other in zip(self.entries, snapshot, strict=False))
        return self.entries[len(snapshot) :] if len(self.entries) >= len(snapshot) and all(same) else None


def refuse_what_cannot_be_read(messages: Sequence[object]) -> None:
    """Reject unreadable messages before they become part of the history, which could not be sent with them."""
    for one in messages:
        if isinstance(one, list | tuple):
            raise InvalidArguments("a list of messages was given as one message", suggestion="add(*messages)")
        if not isinstance(one, str):
            plain(one)
