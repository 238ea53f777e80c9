"""Whether an agent can go on from what a cut leaves: are the arguments of its next calls there, each with its partner?

Part of `make bench-context`; alone, `python bench/context_relations.py`. The cuts are the first compaction of each
trace in each window of `context_continuity`, made without a model, so that a digest stands for the summary; LangChain's
summariser with a model that says one sentence gets the same cuts. The real next calls tell what is needed: each value
among their arguments that stood in a message which is now gone or changed, and that nobody says again before the call.

An argument is there when it can be read to the letter. Its partners are the first other value of the same object (a
flight's number and its date) and, within a list of objects, the call's own first value (a reservation and its
passenger), as far as both stood in one result, one call or one line of prose before the cut. It is there with its
partners when it stands with each of them in one untouched message, or in one line or item of what was written anew. A
line of a ledger that only lists words relates none of them.
"""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import anyio
from context_alone import run_alone
from context_continuity import TINY, Way, joined, read_arguments, rounded, texts_of
from context_others import First, first_points
from context_peers import Left, left_by
from context_traces import MODELS, read_traces
from delegate_peers import present

from ullage.context.identifiers import read_identifiers
from ullage.context.token_weights import Scale
from ullage.messages import Format, Message, ToolCall, ToolResult
from ullage.models import shipped
from ullage.tokens import Meter

OURS = "ullage, a digest"
FLOOR = 0.90
NEXT = 5
"""Calls after a cut that are looked at."""
LONGEST, WORDS = 80, 6
"""Characters and words of an argument that is one value and no text."""
ENOUGH = 30
"""Arguments that the next calls of a family need at least, or it has no floor: half a dozen are one line of code."""
SERVICE = ("tau_airline", "k8s_gpt5", "livemcp")
"""Families of sessions with services, which must be there; in those of `any_agent` no call needs what was dropped."""
_ITEM = re.compile(r"\n(?=- |\S)")


@dataclass(frozen=True, slots=True)
class Need:
    """An argument of a later call that stood in what is gone, with the values that belong to it."""

    value: str
    partners: tuple[str, ...]


@dataclass(slots=True)
class Tally:
    needed: int = 0
    there: int = 0
    paired: int = 0
    """Needed with a partner."""
    together: int = 0
    """Of these, there with every partner."""
    right: int = 0
    """There, and with every partner where there are some."""

    @property
    def share(self) -> float | None:
        """None where nothing was needed, of which there is no share."""
        return self.right / self.needed if self.needed else None


@dataclass(slots=True)
class Figures:
    cuts: dict[str, int] = field(default_factory=dict[str, int])
    found: dict[tuple[str, str], Tally] = field(default_factory=dict[tuple[str, str], Tally])
    """By party and family."""

    def missed(self) -> list[str]:
        found = list[str]()
        for family in dict.fromkeys((*SERVICE, *self.cuts)):
            tally = self.found.get((OURS, family), Tally())
            if family in SERVICE and tally.needed < ENOUGH:
                found.append(f"{family}: the calls after the cuts need {tally.needed} arguments, under {ENOUGH}")
            elif tally.needed >= ENOUGH and tally.right < FLOOR * tally.needed and "in windows of" not in family:
                found.append(
                    f"{family}: {tally.share:.1%} of arguments are there with their partners, under {FLOOR:.0%}"
                )
        return found

    def to_json(self) -> dict[str, object]:
        parties = dict.fromkeys(party for party, _ in self.found)
        return {
            party: {family: rounded(tally.share) for (name, family), tally in self.found.items() if name == party}
            for party in parties
        }


def needs(first: First, gone: set[int]) -> Iterator[Need]:
    """What the next calls need of the messages that are gone."""
    messages, step = first.point.trace.messages, first.point.step
    texts = [text_of(message) for message in messages]
    before = [unit for place in gone for unit in original_units(messages[place])]
    seen = 0
    for place in range(step, len(messages)):
        for call in (part for part in messages[place].parts if isinstance(part, ToolCall)):
            seen += 1
            if seen > NEXT:
                return
            for value, partners in arguments(read_arguments(call.arguments)):
                holding = [text for text in before if value in text]
                if holding and not any(value in text for text in texts[step:place]):
                    belong = tuple(one for one in partners if any(one in text for text in holding))
                    yield Need(value, belong)


def arguments(asked: Any) -> Iterator[tuple[str, list[str]]]:  # noqa: ANN401
    """Each short value of a call's arguments, with those that belong to it."""
    top = next(scalars(asked), None) if isinstance(asked, dict) else None
    waiting = [asked]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, dict):
            values = list(scalars(one))
            for value in values:
                partner = next((other for other in values if other != value), None)
                above = top if one is not asked and top != value else None
                yield value, list(dict.fromkeys(name for name in (partner, above) if name))
        waiting += [
            inner for inner in (one.values() if isinstance(one, dict) else one) if isinstance(inner, dict | list)
        ]


def scalars(held: dict[str, Any]) -> Iterator[str]:
    for value in held.values():
        text = str(value).strip()
        is_value = isinstance(value, str | int | float) and not isinstance(value, bool)
        if is_value and 1 < len(text) <= LONGEST and len(text.split()) <= WORDS and "\n" not in text:
            yield text


def text_of(message: Message) -> str:
    return "\n".join(text for part in message.parts for text in texts_of(part))


def original_units(message: Message) -> list[str]:
    """Within which values belong together before a cut: a result, the arguments of a call, a line of what was said."""
    found = list[str]()
    for part in message.parts:
        if isinstance(part, ToolCall | ToolResult):
            found.append("\n".join(texts_of(part)))
        else:
            found += [line for text in texts_of(part) for line in text.split("\n")]
    return found


def units(left: Sequence[Message], history: Sequence[Message]) -> list[str]:
    """The texts within which two values belong together."""
    known = {id(message) for message in history}
    found = list[str]()
    for message in left:
        text = text_of(message)
        if id(message) in known:
            found.append(text)
            continue
        for item in _ITEM.split(text):
            words = read_identifiers(item) if "\n" not in item else ()
            found += [word.word for word in words] or [item]
    return found


def family_of(first: First) -> str:
    """The family of a cut; those in windows that no chat model has are a row of their own, which has no floor."""
    family = first.point.trace.family
    return f"{family} in windows of under {TINY:,}" if first.point.window < TINY else family


def tell(figures: Figures, party: str, first: First, left: Left) -> None:
    there = {id(message) for message in left.messages}
    gone = {place for place, message in enumerate(first.point.history) if id(message) not in there}
    kept = units(left.messages, first.point.history)
    tally = figures.found.setdefault((party, family_of(first)), Tally())
    for need in needs(first, gone):
        is_there = any(need.value in unit for unit in kept)
        is_together = is_there and all(
            any(need.value in unit and partner in unit for unit in kept) for partner in need.partners
        )
        tally.needed += 1
        tally.there += is_there
        tally.paired += bool(need.partners)
        tally.together += bool(need.partners) and is_together
        tally.right += is_together


async def digested(first: First) -> Left:
    """What is left where no model makes a summary."""
    way = Way(scale=first.scale, window=first.point.window, chunks=first.chunks, summarizer=None)
    made = await way.points()
    if not made:
        return Left(messages=first.point.history, compacted=False)
    natives = list(chain.from_iterable(first.chunks[:-1]))
    known = dict(zip(map(id, natives), first.point.history, strict=True))
    return Left(messages=tuple(known.get(id(entry.native), entry.message) for entry in made[-1][1]), compacted=True)


def run(data: Path) -> Figures:
    figures = Figures()
    scale = Scale(Meter(shipped()), MODELS[Format.OPENAI_CHAT], Format.OPENAI_CHAT)
    traces = read_traces(data)
    firsts = [first for trace in (*traces, *joined(traces, scale)) for first in first_points(trace, scale)]
    for first in firsts:
        family = family_of(first)
        figures.cuts[family] = figures.cuts.get(family, 0) + 1
        tell(figures, OURS, first, anyio.run(digested, first))
    if present(("langchain",), wanted=os.environ.get("PEERS") != "no"):
        for first, left in zip(firsts, left_by("langchain", [first.point for first in firsts]), strict=True):
            tell(figures, "langchain", first, left)
    return figures


def report(figures: Figures) -> None:
    titles = ("needed", "there", "with partner", "together", "there and together")
    print(f"{'arguments of the next calls':40}{'cuts':>6}  {'':18}" + "".join(f"{title:>20}" for title in titles))
    for (party, family), tally in figures.found.items():
        shares = ((tally.there, tally.needed), (tally.together, tally.paired), (tally.right, tally.needed))
        there, together, both = (f"{part / whole:.1%}" if whole else "-" for part, whole in shares)
        print(
            f"{family:40}{figures.cuts[family]:>6}  {party:18}{tally.needed:>20}{there:>20}"
            f"{tally.paired:>20}{together:>20}{both:>20}"
        )


if __name__ == "__main__":
    sys.exit(run_alone(run, report))
