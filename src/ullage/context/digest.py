"""What stands in for a summary when no model answers?

An account in the sections of a summary, made of what is written: what the user asked for in the user's words, what was
done as far as calls tell, the last words of the assistant, and what an earlier summary said. The same history gives the
same account, and it never has more tokens than it may.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ullage.messages import Message, join_texts

from .carried import Carried
from .clipping import clipped, fitted
from .deeds import Deed, deeds
from .sections import Section, read_sections, write_sections
from .sharing import shared

__all__ = ["digest"]

_FIRST, _REQUEST, _ANSWER, _EARLIER = 10.0, 8.0, 6.0, 12.0
_PLAN, _CHANGED, _ACT, _ERROR, _STEP, _READ = 3.0, 2.5, 2.5, 2.0, 1.5, 1.0
"""What the newest of each kind is worth."""
_FOLLOWING, _SLOWLY = 1.0, 10.0
"""How many go by until the worth is halved: of words, of deeds."""
_OLDER: dict[Section, float] = {Section.EARLIER: _EARLIER, Section.ASKED: 4.0, Section.DECISIONS: 4.0}
_OLD = 2.2
"""What an item of an earlier summary is worth, by its section: decisions are told nowhere else."""
_REQUESTS, _ANSWERS, _DEEDS = 60, 2, 200
"""How many of each are looked at, the newest."""
_LEAST, _FRAME = 48, 4
"""Tokens without which an item makes no sense, and those of its place in a list."""
_GREAT = 8
"""That part of the room is for what is worth most, before others are let in."""
_TRIES, _SPARE = 6, 0.05
"""How often the room is shared out, for what headings take is known only afterwards; the share of it that may be left.
"""
_WIDE = 8
"""Characters of a token, where a text is too long to be counted whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    section: Section
    text: str
    worth: float


def digest(
    messages: Sequence[Message],
    *,
    room: int,
    count: Callable[[str], int],
    earlier: Carried | None = None,
    beside_records: float = 1.0,
) -> str:
    """An account of messages in at most so many tokens; empty where these are too few to say anything.

    Where most results are structured, the records beside the account say more than it could: then it has
    `beside_records` of its room.
    """
    done = deeds(messages)
    if 2 * sum(deed.recorded for deed in done) > len(done):
        room = int(beside_records * room)
    if room < _LEAST // 2:
        return ""
    items = _once((*_earlier(earlier), *_words(messages), *_deeds(done)))
    sizes = [count(clipped(item.text, room * _WIDE)) + _FRAME for item in items]
    best, budget = "", room
    for _ in range(_TRIES):
        text = _written(items, sizes, budget, count)
        spare = room - count(text)
        if spare < 0:
            budget += spare - 1
            continue
        best = max(best, text, key=count)
        if spare < _SPARE * room or budget >= sum(sizes):
            break
        budget += spare
    return best or (fitted(max(items, key=lambda item: item.worth).text, room, count) if items else "")


def _written(items: Sequence[_Item], sizes: Sequence[int], room: int, count: Callable[[str], int]) -> str:
    worths = [item.worth for item in items]
    leasts = [max(_LEAST, room // _GREAT) if worth >= _ANSWER else _LEAST for worth in worths]
    given = shared(sizes, worths, leasts, room)
    chosen: dict[Section, list[str]] = {}
    for item, tokens in zip(items, given, strict=True):
        text = fitted(item.text, max(0, tokens - _FRAME), count)
        if text.strip():
            chosen.setdefault(item.section, []).append(text)
    return write_sections(chosen)


def _once(items: Iterable[_Item]) -> list[_Item]:
    """What is said twice stands where it stood first, at the higher of its worths."""
    found: dict[tuple[Section, str], _Item] = {}
    for item in items:
        known = found.get((item.section, item.text))
        found[item.section, item.text] = item if known is None or known.worth < item.worth else known
    return list(found.values())


def _earlier(earlier: Carried | None) -> Iterator[_Item]:
    for section, texts in read_sections(earlier.summary if earlier else "").items():
        for place, text in enumerate(texts):
            age = len(texts) - 1 - place
            worth = _OLDER.get(section, _OLD) / (1 + age / _SLOWLY)
            is_first = section is Section.ASKED and place == 0
            yield _Item(section=section, text=text, worth=_FIRST if is_first else worth)


def _words(messages: Sequence[Message]) -> Iterator[_Item]:
    """What the user asked for, and what the assistant answered last."""
    asked = [text for one in messages if one.role not in ("assistant", "tool") and (text := _said(one))]
    if len(asked) > 1:
        yield _Item(section=Section.ASKED, text=asked[0], worth=_FIRST)
    yield from _aged(Section.ASKED, asked[1:][-_REQUESTS:] or asked, _REQUEST, _FOLLOWING)
    answers = [text for one in messages if one.role == "assistant" and (text := _said(one))]
    yield from _aged(Section.STATE, answers[-_ANSWERS:], _ANSWER, _FOLLOWING)


def _deeds(done: Sequence[Deed]) -> Iterator[_Item]:
    changed = [path for deed in done for path in deed.changed]
    read = {path for deed in done for path in deed.read}.difference(changed)
    steps = [deed for deed in done if not (deed.read or deed.changed or deed.plan or deed.failed or deed.recorded)]
    wrong = [f"{deed.what}: {deed.outcome}" for deed in done if deed.failed and deed.outcome]
    plan = next((deed.plan for deed in reversed(done) if deed.plan), ())
    yield from _aged(Section.FILES, _newest(changed), _CHANGED, _SLOWLY)
    for worth, acts in ((_ACT, True), (_STEP, False)):
        yield from _aged(Section.STATE, _newest([_ran(deed) for deed in steps if deed.acts is acts]), worth, _SLOWLY)
    seen = _newest([path for deed in done for path in deed.read if path in read])
    yield from _aged(Section.STATE, [f"read {path}" for path in seen], _READ, _SLOWLY)
    yield from _aged(Section.ERRORS, _newest(wrong), _ERROR, _SLOWLY)
    yield from (_Item(section=Section.NEXT, text=text, worth=_PLAN) for text in plan)


def _ran(deed: Deed) -> str:
    return f"{deed.what} → {deed.outcome}" if deed.outcome else deed.what


def _newest(texts: Sequence[str]) -> list[str]:
    """Each but once, where it stood last."""
    return list(reversed(list(dict.fromkeys(reversed(texts)))[:_DEEDS]))


def _aged(section: Section, texts: Sequence[str], worth: float, halved: float) -> Iterator[_Item]:
    for place, text in enumerate(texts):
        yield _Item(section=section, text=text, worth=worth / (1 + (len(texts) - 1 - place) / halved))


def _said(message: Message) -> str:
    return join_texts(message.parts).strip()
