"""Contexts in step with conversations that another program holds."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from ullage.adapters.history_sync import Following, Mirrored, Shown, find_unchanged_origin
from ullage.context import Context, Options, Session
from ullage.errors import InvalidArguments
from ullage.messages import Format, Message, Text, ToolCall, ToolResult
from ullage.models import Usage, shipped
from ullage.tokens import Meter

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S2:formats")]

METER = Meter(shipped())


@dataclass(frozen=True)
class Turn:
    """A message of somebody else's: several texts under one roof."""

    role: str
    texts: tuple[str, ...]
    tokens: int | None = None


@dataclass
class Turns:
    """How such turns are read and written."""

    read_so_far: list[Turn] = field(default_factory=list[Turn])

    def read(self, message: object) -> Shown:
        assert isinstance(message, Turn)
        self.read_so_far.append(message)
        pieces = tuple(self._piece(message, text) for text in message.texts)
        usage = None if message.tokens is None else Usage(input=message.tokens, output=1)
        pinned = frozenset(place for place, text in enumerate(message.texts) if text.startswith("pin"))
        return Shown(natives=pieces, usage=usage, pinned=pinned)

    def _piece(self, turn: Turn, text: str) -> Mirrored:
        name, _, rest = text.partition(":")
        parts: tuple[Text | ToolCall | ToolResult, ...] = (Text(text),)
        if turn.role == "tool":
            parts = (ToolResult(parts=(Text(rest),), call_id=name, name="read"),)
        elif rest and turn.role == "assistant":
            parts = (ToolCall(name="read", arguments="{}", id=rest),)
        role = "tool" if turn.role == "tool" else "assistant" if turn.role == "assistant" else "user"
        return Mirrored(role=role, parts=parts, origin=turn, pieces=len(turn.texts), own=(text,), whole=parts)

    def write(self, natives: Sequence[object]) -> object:
        if (same := find_unchanged_origin(natives)) is not None:
            return same
        pieces = [one for one in natives if isinstance(one, Message)]
        origin = pieces[0].origin if isinstance(pieces[0], Mirrored) else Turn(pieces[0].role, ())
        assert isinstance(origin, Turn)
        return replace(origin, texts=tuple(map(_text, pieces)))


def _text(message: Message) -> str:
    inner = (part.parts if isinstance(part, ToolResult) else (part,) for part in message.parts)
    return "".join(part.text for parts in inner for part in parts if isinstance(part, Text))


def following(window: int = 1_000, threshold: float | tuple[str, float] = 0.65) -> tuple[Following, Turns]:
    turns = Turns()
    options = Options(context_window=window, compact_threshold=threshold)  # pyright: ignore[reportArgumentType]
    return Following(
        begin=lambda: Context(model="gpt-4o", meter=METER, format=Format.ULLAGE, options=options), conversion=turns
    ), turns


def user(text: str) -> Turn:
    return Turn("user", (text,))


def answer(text: str, tokens: int | None = None) -> Turn:
    return Turn("assistant", (text,), tokens)


async def test_a_history_that_fits_is_given_back_as_the_same_objects():
    follows, _ = following()
    history = [user("Hello."), answer("Hi."), user("How are you?")]
    given, prepared = await follows.prepare(history)
    assert all(one is other for one, other in zip(given, history, strict=True))
    assert not prepared.compacted


async def test_only_what_is_new_is_read():
    follows, turns = following()
    history = [user("Hello.")]
    await follows.prepare(history)
    history += [answer("Hi."), user("How are you?")]
    await follows.prepare(history)
    await follows.prepare([replace(turn) for turn in history])
    assert turns.read_so_far == history, "what is equal is the same, whatever object it is"


async def test_the_report_of_the_last_call_is_what_the_figures_go_by():
    follows, _ = following()
    first = [user("Hello.")]
    await follows.prepare(first)
    _, prepared = await follows.prepare([*first, answer("Hi.", tokens=30), user("How are you?")])
    assert prepared.status.used > 35
    assert prepared.status.method == "anchored"


async def test_reports_of_a_history_that_is_new_are_not_gone_by():
    follows, _ = following()
    _, prepared = await follows.prepare([user("Hello."), answer("Hi.", tokens=300), user("How are you?")])
    assert prepared.status.used < 30


def long_history(turns: int, first: str = "pin me") -> list[Turn]:
    said = [Turn("user", (first, "What do the orders say?"))]
    for number in range(turns):
        said.append(answer(f"call:c{number}"))
        said.append(Turn("tool", (f"c{number}:" + f"order {number} was shipped to Harbour Road. " * 6,)))
    return said


async def test_what_is_let_go_leaves_the_history_and_what_is_kept_stays_the_same():
    follows, _ = following()
    history = long_history(20)
    given, prepared = await follows.prepare(history)
    assert prepared.compacted
    said = [turn for turn in given if isinstance(turn, Turn)]
    assert len(said) == len(given)
    assert any(turn.texts[0].startswith("<context_summary>") for turn in said)
    assert said[-1] is history[-1]
    pinned = [turn for turn in said if "pin me" in turn.texts]
    assert len(pinned) == 1, "of one message a piece may stay while another goes"


async def test_a_history_goes_on_from_what_was_given_and_from_what_was_shown():
    """One program keeps what it is given, another shows all it ever had."""
    for keeps in (True, False):
        follows, turns = following()
        history = long_history(20)
        given, _ = await follows.prepare(history)
        read = len(turns.read_so_far)
        news = [answer("Done.", tokens=400), user("And now?")]
        again, prepared = await follows.prepare([*(given if keeps else history), *news])
        assert len(turns.read_so_far) == read + 2
        assert not prepared.compacted
        assert prepared.status.method == "anchored"
        assert all(one is other for one, other in zip(again, [*given, *news], strict=True))


async def test_a_result_in_other_words_is_a_copy_of_its_message():
    follows, _ = following(window=2_000, threshold=("messages", 1))
    history: list[Turn] = [user("Go."), answer("call:c1"), Turn("tool", ("c1:" + "a long story " * 500,))]
    given, prepared = await follows.prepare([*history, answer("Ok."), user("And?")])
    assert prepared.compacted
    changed = given[2]
    assert isinstance(changed, Turn)
    assert changed.role == "tool"
    assert len(changed.texts[0]) < len(history[2].texts[0])
    assert given[0] is history[0]


async def test_conversations_side_by_side_are_told_apart_by_how_they_begin():
    follows, turns = following()
    one, other = [user("Hello.")], [user("Good evening.")]
    for _ in range(3):
        await follows.prepare(one)
        await follows.prepare(other)
        one += [answer("Hi."), user("Go on.")]
        other += [answer("Good evening to you."), user("Go on.")]
    assert len(turns.read_so_far) == 10


async def test_a_history_that_was_changed_elsewhere_is_read_anew():
    follows, turns = following()
    await follows.prepare([user("Hello."), answer("Hi."), user("One.")])
    _, prepared = await follows.prepare([user("Hello."), answer("Hi!"), user("One.")])
    assert len(turns.read_so_far) == 6
    assert len(prepared.messages) == 3


async def test_conversations_that_were_not_heard_of_for_long_are_forgotten():
    follows, turns = following()
    for number in range(70):
        await follows.prepare([user(f"Conversation {number}.")])
    read = len(turns.read_so_far)
    await follows.prepare([user("Conversation 69."), answer("Hi.")])
    assert len(turns.read_so_far) == read + 1
    await follows.prepare([user("Conversation 0."), answer("Hi.")])
    assert len(turns.read_so_far) == read + 3


async def test_a_context_that_keeps_a_session_is_refused(tmp_path: Path):
    session = Session.open(tmp_path / "s.jsonl", format=Format.ULLAGE)
    follows = Following(begin=lambda: Context(model="gpt-4o", meter=METER, session=session), conversion=Turns())
    with pytest.raises(InvalidArguments):
        await follows.prepare([user("Hello.")])
