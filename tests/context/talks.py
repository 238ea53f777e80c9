"""Talks in neutral messages, as each provider shapes them; a scale of one token for four letters; and an oracle that
knows by itself what a provider would refuse."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

from hypothesis import strategies as st

from ullage.context import Entry
from ullage.messages import (
    Format,
    Media,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    read_message,
)
from ullage.tokens import Count, Steps, drain

Shape = Literal["anthropic", "chat", "gemini", "responses"]
PICTURE = Media(kind="image", media_type="image/png", data="iVBORw0KGgo=")


@dataclass
class Scale:
    """Counts a token for four letters and a thousand for a picture."""

    format: Format = Format.ULLAGE
    counted: list[str] = field(default_factory=list)

    def count(self, text: str) -> int:
        self.counted.append(text)
        return (len(text) + 3) // 4

    def entries(self, natives: Sequence[object], after: Sequence[Entry] = ()) -> Steps[tuple[Entry, ...]]:
        del after
        yield
        blank = Entry(native=None, message=user(""), weight=Count.exact(0))
        return tuple(self.remade(blank, native) for native in natives)

    def remade(self, entry: Entry, native: object) -> Entry:
        message = read_message(native, self.format)
        return replace(entry, native=native, message=message, weight=Count.exact(4 + sum(map(_weight, message.parts))))


def _weight(part: Part) -> int:
    match part:
        case Text() | Thinking():
            return (len(part.text) + 3) // 4
        case ToolCall():
            return (len(part.name) + len(part.arguments) + 3) // 4
        case ToolResult():
            return sum(map(_weight, part.parts))
        case Media():
            return 1_000
        case _:
            return 10


def user(*said: str | Part) -> Message:
    return Message(role="user", parts=_parts(said))


def assistant(*said: str | Part) -> Message:
    return Message(role="assistant", parts=_parts(said))


def system(text: str) -> Message:
    return Message(role="system", parts=(Text(text),))


def tool(*results: Part) -> Message:
    return Message(role="tool", parts=results)


def call(identity: str | None, name: str = "read", arguments: str = '{"path": "src/a.py"}') -> ToolCall:
    return ToolCall(name=name, arguments=arguments, id=identity)


def result(identity: str | None, *said: str | Part, is_error: bool = False) -> ToolResult:
    return ToolResult(call_id=identity, parts=_parts(said or ("done",)), is_error=is_error)


def _parts(said: Iterable[str | Part]) -> tuple[Part, ...]:
    return tuple(Text(one) if isinstance(one, str) else one for one in said)


def entries_of(messages: Iterable[Message], *, pinned: Iterable[int] = ()) -> tuple[Entry, ...]:
    made = drain(Scale().entries(tuple(messages)))
    held = set(pinned)
    return tuple(replace(entry, pinned=place in held) for place, entry in enumerate(made))


def texts_of(entries: Iterable[Entry]) -> list[str]:
    """The first words of each message, for reading."""
    return [next((part.text for part in one.message.parts if isinstance(part, Text)), "") for one in entries]


# What a talk may be.


@dataclass(frozen=True)
class _Step:
    calls: int
    thinks: bool
    says: bool
    sizes: tuple[int, ...]


_steps = st.builds(
    _Step,
    calls=st.integers(1, 3),
    thinks=st.booleans(),
    says=st.booleans(),
    sizes=st.tuples(*[st.sampled_from([3, 40, 900, 6_000])] * 3),
)
_askings = st.sampled_from(["text", "long", "picture first", "picture last", "told"])


@st.composite
def talks(draw: st.DrawFn, *, shape: Shape | None = None, most: int = 5) -> list[Message]:
    """A valid history of one of the four shapes; the last turn may still be going on."""
    form = draw(st.sampled_from(["anthropic", "chat", "gemini", "responses"])) if shape is None else shape
    told = [system("Be brief.")] if form in ("chat", "responses") and draw(st.booleans()) else []
    turns = draw(st.lists(st.tuples(_askings, st.lists(_steps, max_size=4)), min_size=1, max_size=most))
    for number, (asking, steps) in enumerate(turns):
        told += _asked(asking, number)
        first_only = draw(st.booleans())
        for nth, step in enumerate(steps):
            thinks = (nth == 0 or step.thinks) if first_only else bool(steps[0].thinks)
            told += _STEPS[form](replace(step, thinks=thinks), f"{number}.{nth}")
        if number < len(turns) - 1 or not steps or draw(st.booleans()):
            told.append(assistant(f"answer {number}"))
    return told


def _asked(asking: str, number: int) -> list[Message]:
    words = user(f"question {number}")
    return {
        "text": [words],
        "long": [user(f"question {number}" + " and more" * 400)],
        "picture first": [user(PICTURE), words],
        "picture last": [words, user(PICTURE)],
        "told": [words, system(f"note {number}")],
    }[asking]


def _said(step: _Step, calls: Sequence[Part]) -> tuple[Part, ...]:
    thinking = (Thinking(text="hm", signature="sealed"),) if step.thinks else ()
    return (*thinking, *((Text("I look."),) if step.says else ()), *calls)


def _body(step: _Step, nth: int) -> str:
    return "line of it\n" * (step.sizes[nth] // 10) + "end"


def _anthropic(step: _Step, number: str) -> list[Message]:
    ids = [f"{number}.{nth}" for nth in range(step.calls)]
    results = (result(identity, _body(step, nth)) for nth, identity in enumerate(ids))
    return [assistant(*_said(step, [call(one) for one in ids])), user(*results)]


def _chat(step: _Step, number: str) -> list[Message]:
    ids = [f"{number}.{nth}" for nth in range(step.calls)]
    results = [tool(result(identity, _body(step, nth))) for nth, identity in enumerate(ids)]
    return [assistant(*_said(step, [call(one) for one in ids])), *results]


def _gemini(step: _Step, number: str) -> list[Message]:
    del number
    calls = [call(None, f"f{nth}") for nth in range(step.calls)]
    results = (replace(result(None, _body(step, nth)), name=f"f{nth}") for nth in range(step.calls))
    return [assistant(*_said(step, calls)), user(*results)]


def _responses(step: _Step, number: str) -> list[Message]:
    ids = [f"{number}.{nth}" for nth in range(step.calls)]
    thinking = [assistant(Thinking(text="hm", signature="sealed"))] if step.thinks else []
    said = [assistant("I look.")] if step.says else []
    results = [tool(result(identity, _body(step, nth))) for nth, identity in enumerate(ids)]
    return [*thinking, *said, *(assistant(call(one)) for one in ids), *results]


_STEPS = {"anthropic": _anthropic, "chat": _chat, "gemini": _gemini, "responses": _responses}

# What a provider would refuse.


def refusals(messages: Sequence[Message], original: Sequence[Message]) -> list[str]:
    """What is wrong with a history that was made of another."""
    said = [message for message in messages if message.role != "system"]
    found = [*_pairing(said), *_sides(said, original), *_reasoning(messages)]
    if said and _side(said[0]) != "user":
        found.append("the assistant has the first word")
    if _opens_thinking(original) and not _opens_thinking(messages):
        found.append("the turn that goes on has lost the thinking it began with")
    return found


def _pairing(messages: Sequence[Message]) -> Iterable[str]:
    """Each result answers a call of the turn before it, and each call has one, before anything else is said."""
    waiting = list[tuple[str | None, str]]()
    for before, message in zip((None, *messages), messages, strict=False):
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        goes_on = message.role == "assistant" and before is not None and before.role == "assistant"
        if not results and not goes_on and waiting:
            yield f"no result for {waiting}"
        if not results and not goes_on:
            waiting.clear()
        for one in results:
            known = [w for w in waiting if w[0] == one.call_id and (w[0] is not None or w[1] == one.name)]
            if not known:
                yield f"no call for {one.call_id}"
                continue
            waiting.remove(known[0])
        waiting += [(part.id, part.name) for part in message.parts if isinstance(part, ToolCall)]
    if waiting and any(isinstance(part, ToolResult) for part in messages[-1].parts):
        yield f"results, but none for {waiting}"


def _side(message: Message) -> str:
    return "assistant" if message.role == "assistant" else "user"


def _sides(messages: Sequence[Message], original: Sequence[Message]) -> Iterable[str]:
    """Turns alternate, but where they did not before."""
    spoken = [message for message in original if message.role != "system"]
    before = {(id(one), id(two)) for one, two in pairwise(spoken)}
    for one, two in pairwise(messages):
        brings = any(isinstance(part, ToolResult) for part in two.parts)
        if _side(one) == _side(two) and not brings and (id(one), id(two)) not in before:
            yield f"two turns of the {_side(one)}'s"


def _reasoning(messages: Sequence[Message]) -> Iterable[str]:
    for one, two in zip(messages, (*messages[1:], user("")), strict=True):
        if all(isinstance(part, Thinking) for part in one.parts) and two.role != "assistant":
            yield "reasoning without what followed it"


def _opens_thinking(messages: Sequence[Message]) -> bool:
    """Whether what follows the user's last words begins with thinking."""
    last = max(
        (
            place
            for place, message in enumerate(messages)
            if message.role == "user" and not any(isinstance(part, ToolResult) for part in message.parts)
        ),
        default=-1,
    )
    first = next((message for message in messages[last + 1 :] if message.role == "assistant"), None)
    return first is not None and any(isinstance(part, Thinking) for part in first.parts)
