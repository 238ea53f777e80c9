"""The reply of `find_tool`, fitted to its token budget.

The reply is one JSON text with `tools`, `more` and `token_metrics`, and where there is reason `missing` and `hint`.
Its size is counted whole, by the tokenizer of whoever asked, before it leaves; it is made smaller until it fits.

Whoever looks for a tool is served best by much of the nearest and a little of many. A tool is needed at the first rank
in 46 of 100 cases, at the third in 8, at the tenth in 1 and at the fortieth in a tenth of one; a definition costs some
110 tokens, a signature 35, a line 24 and a name 11; from a definition and mostly from a signature a tool can be called
at once, from a line or a name after one more search. So half of the room goes to the three best whole, up to 70 % to
signatures of the next, up to 85 % to lines, and names take the rest; what is then left makes all of it fuller, best
first. `make bench-search` shows what that finds beside other shapes.

Where the search was clear, much less does: `fit_brief` shows the best match, those that may well be meant instead, and
the names of what is not far behind. A clear search is one whose scores are high and gather on few tools
(`has_brief_reply`); all others are given the whole budget.

Pure arithmetic over costs; who counts them, and what stands around, is the reply's affair.

Of one search and the next most tools are the same, and so is what stands in a reply of them. Costs are those of the
first time: where a meter has learnt since, the whole reply is weighed anyway before it leaves.

`TokenMetrics` are the gross figures of one search. `Net` is what remains for a client when Ullage's own tools, its
instructions and its replies are charged, for the first request and for a session; it may be negative. A session's turns
are not seen from here: each call is one request that came back for more, so there were at least calls + 1, and the
figure is a lower bound. Money is not known here.
"""

import json
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from typing import Any, cast

from ullage.tokens import Count
from ullage.tool import Json, JsonObject

from ..merge.tool_view import Missing
from ..metering import characters
from .tool_forms import CALL_WRITE, Forms, written

__all__ = [
    "LEAST_BUDGET",
    "About",
    "Beside",
    "Candidate",
    "Candidates",
    "Carried",
    "FindToolResponse",
    "Fitted",
    "Found",
    "Net",
    "Piece",
    "Savings",
    "TokenMetrics",
    "Weigh",
    "candidate",
    "compose",
    "fit",
    "fit_brief",
    "has_brief_reply",
]

_FIRST = 0.75
"""Of the room, that the best hit's definition may take."""
_DEFINITIONS = 0.5
"""Of the room, that definitions may take together; then signatures as well, and lines."""
_SIGNATURES = 0.7
_LINES = 0.85
_WHOLE = 3
"""Ranks whose definitions come before anything else."""
_BEST = 8
"""Ranks that definitions and signatures are meant for: beyond, they are no better a guess than a line."""
_MANY = 40
"""Ranks beyond which there is nothing before all others are shown as fully as they may be."""
_BRIEF = 360
"""Tokens of the tools in a brief reply; its figures take some 50 more. What the constants below cost in recall and save
in tokens, `make bench-search ONLY=brief` measures."""
_SHARPNESS = 8.0
"""Of the softmax that makes shares of scores: a tool 0.1 behind another has 0.45 of its share."""
_FEW = 24.5
"""Tools that the shares of a clear search are spread over at the most, as the exponential of their entropy."""
_STRONG = 0.9
"""The best match's score, below which nothing fits well by both words and meaning and a search is not clear."""
_SURE = 0.6
"""A share from which the best match is shown whole, however long its definition is."""
_SHORT_DEFINITION = 140
"""Tokens of the best match's definition that is shown whole in any case."""
_USUAL_DEFINITION = 110
"""Tokens of a definition that count against the room of a brief reply; a longer one does not push names out."""
_RIVAL = 0.1
"""A share from which a further tool is shown as a signature, of the next `_RIVALS`, in `_FOR_RIVALS` of the room."""
_RIVALS = 3
_FOR_RIVALS = 0.6
_FAR = 0.9
"""Behind the best score, from which a tool is not shown in a brief reply, but for the `_LEAST` nearest."""
_LEAST = 5


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a reply as it will stand there."""

    text: str
    cost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A tool in each of its forms; cheaper forms may cost as much as dearer ones, then the dearer is taken."""

    definition: Piece
    signature: Piece
    line: Piece
    name: Piece
    named: bool = False
    """Whether it was asked for by its name, and its definition comes before anything else."""
    near: bool = True
    """False where its rank says nothing: it is no more than named before all others are."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is shown: definitions, and a line for each other tool, both best first."""

    tools: tuple[Piece, ...] = ()
    more: tuple[Piece, ...] = ()

    @property
    def cost(self) -> int:
        return sum(piece.cost for piece in self.tools + self.more)

    def less(self) -> "Fitted":
        """Without its last line, or without its last definition."""
        if self.more:
            return replace(self, more=self.more[:-1])
        return replace(self, tools=self.tools[:-1])


def fit(candidates: Sequence[Candidate], room: int) -> Fitted:
    """The best that fits into the room, for candidates in the order of their nearness."""
    shown = _Shown(candidates, room)
    near = [rank for rank, candidate in enumerate(candidates[:_MANY]) if candidate.near]
    many = [rank for rank, candidate in enumerate(candidates) if rank < _MANY or not candidate.near]
    every = range(len(candidates))
    _show_definitions(shown)
    shown.add(near[:_BEST], _Form.SIGNATURE, _SIGNATURES)
    shown.add(near, _Form.LINE, _LINES)
    shown.add(many, _Form.NAME)
    shown.make_fuller(many, _Form.LINE)
    shown.make_fuller(many, _Form.SIGNATURE)
    shown.make_fuller(many[:_BEST], _Form.DEFINITION)
    if len(many) < len(candidates):
        shown.add(every, _Form.NAME)
        shown.make_fuller(every, _Form.LINE)
    return shown.fitted()


def has_brief_reply(scores: Sequence[float], room: int) -> bool:
    """Whether a reply need not use its whole room.

    True where the room is larger than a brief reply and few tools can be meant, by the scores of those that are near:
    the best fits well, and not many more do about as well.
    """
    if room <= _BRIEF:
        return False
    if not scores or max(scores) < _STRONG:
        return False
    return math.exp(-sum(share * math.log(share) for share in _shares(scores) if share)) <= _FEW


def fit_brief(candidates: Sequence[Candidate], scores: Sequence[float], room: int) -> Fitted:
    """What a clear search shows within the room: the best match, signatures of its rivals, and the names of all others
    that are not far behind.

    Args:
        candidates: In the order of their nearness; those that were asked for by name come whole.
        scores: Of the candidates, in the same order.
        room: Of the whole budget, of which a brief reply takes a part.
    """
    shares, best = _shares(scores), max(scores)
    first = candidates[0].definition.cost
    is_whole = shares[0] >= _SURE or first <= _SHORT_DEFINITION
    brief = _BRIEF + (max(0, first - _USUAL_DEFINITION) if is_whole or candidates[0].named else 0)
    shown = _Shown(candidates, min(room, brief))
    named = [rank for rank, candidate in enumerate(candidates[:_BEST]) if candidate.named]
    shown.add(named or [0] * is_whole, _Form.DEFINITION)
    shown.add([0], _Form.SIGNATURE)
    rivals = [rank for rank in range(1, min(_RIVALS + 1, len(shares))) if shares[rank] >= _RIVAL]
    shown.add(rivals, _Form.SIGNATURE, _FOR_RIVALS)
    near = [rank for rank, score in enumerate(scores) if rank < _LEAST or best - score <= _FAR]
    for rank in near:
        if not shown.add([rank], _Form.NAME):
            break
    return shown.fitted()


def _shares(scores: Sequence[float]) -> list[float]:
    """Of each in being what was meant: their softmax."""
    best = max(scores)
    weights = [math.exp(_SHARPNESS * (score - best)) for score in scores]
    total = sum(weights)
    return [weight / total for weight in weights]


class _Form(IntEnum):
    NAME = 0
    LINE = 1
    SIGNATURE = 2
    DEFINITION = 3


class _Shown:
    """The form taken for each rank."""

    def __init__(self, candidates: Sequence[Candidate], room: int) -> None:
        self.candidates = candidates
        self.room = room
        self.forms: dict[int, _Form] = {}
        self.cost = 0
        self._pieces = [(one.name, one.line, one.signature, one.definition) for one in candidates]
        """In the order of `_Form`."""

    def add(self, ranks: Iterable[int], form: _Form, share: float = 1.0) -> bool:
        """Shows what is not shown yet, while everything stays within that share of the room; False where one of them
        found no room."""
        room, forms, at = self.room * share, self.forms, form.value
        all_fit = True
        for rank in ranks:
            if rank in forms:
                continue
            if self.cost + (cost := self._pieces[rank][at].cost) <= room:
                forms[rank] = form
                self.cost += cost
            else:
                all_fit = False
        return all_fit

    def make_fuller(self, ranks: Iterable[int], form: _Form) -> None:
        """Shows more of what is shown, while there is room."""
        for rank in ranks:
            now = self.forms.get(rank, form)
            if now < form:
                pieces = self._pieces[rank]
                more = pieces[form].cost - pieces[now].cost
                if self.cost + more <= self.room:
                    self.forms[rank] = form
                    self.cost += more

    def fitted(self) -> Fitted:
        pieces = [(form, self._pieces[rank][form]) for rank, form in sorted(self.forms.items())]
        return Fitted(
            tools=tuple(piece for form, piece in pieces if form is _Form.DEFINITION),
            more=tuple(piece for form, piece in pieces if form is not _Form.DEFINITION),
        )


def _show_definitions(shown: _Shown) -> None:
    """The best whole, and whatever was asked for by name."""
    for rank, candidate in enumerate(shown.candidates[:_BEST]):
        if candidate.named:
            shown.add([rank], _Form.DEFINITION)
        elif candidate.near and rank < _WHOLE:
            shown.add([rank], _Form.DEFINITION, _DEFINITIONS if rank else _FIRST)


_WITHIN = 0.01
_SESSIONS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenMetrics:
    """The four figures of a search. Figures that do not agree cannot be constructed."""

    baseline_tokens: int
    """The definitions of every tool that the search covers, our own among them: it may return them."""
    returned_tokens: int
    """The definitions and lines of the reply."""
    tokens_saved: int
    savings_percentage: float
    """From 0 to 100; 0 where the baseline is 0."""

    def __post_init__(self) -> None:
        if not 0 <= self.returned_tokens <= self.baseline_tokens:
            raise ValueError(f"returned tokens lie between 0 and the baseline, not {self.returned_tokens}")
        if self.tokens_saved != self.baseline_tokens - self.returned_tokens:
            raise ValueError(f"tokens saved are baseline less returned, not {self.tokens_saved}")
        # Written so that a percentage that is no number fails as well.
        if not abs(self.savings_percentage - _percentage(self.baseline_tokens, self.tokens_saved)) <= _WITHIN:
            raise ValueError(f"{self.savings_percentage} is not the percentage of {self.tokens_saved} tokens saved")
        if not 0 <= self.savings_percentage <= 100:
            raise ValueError(f"a percentage lies between 0 and 100, not {self.savings_percentage}")

    @classmethod
    def of(cls, baseline: int, returned: int) -> "TokenMetrics":
        saved = baseline - returned
        percentage = round(_percentage(baseline, saved), 2)
        return cls(
            baseline_tokens=baseline, returned_tokens=returned, tokens_saved=saved, savings_percentage=percentage
        )

    def to_json(self) -> dict[str, Json]:
        return {
            "baseline_tokens": self.baseline_tokens,
            "returned_tokens": self.returned_tokens,
            "tokens_saved": self.tokens_saved,
            "savings_percentage": self.savings_percentage,
        }


def _percentage(baseline: int, saved: int) -> float:
    return 100 * saved / baseline if baseline else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What one request of a client carries of tools, in tokens."""

    without: int
    """The definitions of every server's tools, as the client would carry them without Ullage: none of our own."""
    surface: int
    """The definitions listed to it now."""
    instructions: int

    @property
    def saved(self) -> int:
        return self.without - self.surface - self.instructions


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """What a client saved when everything of ours is charged; below 0 where it lost."""

    first_request: Carried
    turns: int
    """Requests that the session must have made at the least."""
    replies: int
    """Tokens of our replies, each counted once for every later request that carries it."""
    session: int

    def to_json(self) -> dict[str, Json]:
        first = self.first_request
        return {
            "first_request": {
                "without": first.without,
                "surface": first.surface,
                "instructions": first.instructions,
                "net_tokens": first.saved,
            },
            "session": {
                "turns": self.turns,
                "replies_carried": self.replies,
                "net_tokens": self.session,
                "bound": "lower: over calls + 1 requests",
            },
        }


@dataclass(slots=True)
class _Session:
    turns: int = 0
    saved: int = 0
    """Over all priced turns, before our replies are charged."""
    unpriced: int = 0
    """Turns of which it was not yet known what they save."""
    replies: int = 0
    """Tokens that a further request would carry."""
    charged: int = 0
    recorded_turns: int = 0
    recorded: int = 0
    """Of what was charged, what is in the ledger."""

    def price(self, carried: Carried) -> None:
        self.saved += self.unpriced * carried.saved
        self.unpriced = 0


class Savings:
    """Adds up each session's turns and replies; a session not heard of for long is forgotten."""

    def __init__(self, most: int = _SESSIONS) -> None:
        self._most = most
        self._sessions: OrderedDict[tuple[str, str], _Session] = OrderedDict()

    def called(self, session: tuple[str, str], carried: Carried | None) -> None:
        """A call came, so one more request will follow. What it saves is added when that is known."""
        found = self._of(session)
        turns = 1 if found.turns else 2
        found.turns += turns
        found.unpriced += turns
        found.charged += found.replies
        if carried is not None:
            found.price(carried)

    def replied(self, session: tuple[str, str], tokens: int, *, is_recorded: bool = False) -> None:
        """A reply of ours to that call: the next request carries it, and each one after. With `is_recorded` the ledger
        has an entry that charges the next request."""
        found = self._of(session)
        found.replies += tokens
        found.charged += tokens
        if is_recorded:
            found.recorded += tokens

    def take_unrecorded(self, session: tuple[str, str]) -> tuple[int, int]:
        """Turns, and replies charged, that the ledger does not have yet; it has them from now on."""
        found = self._of(session)
        left = found.turns - found.recorded_turns, found.charged - found.recorded
        found.recorded_turns, found.recorded = found.turns, found.charged
        return left

    def net(self, session: tuple[str, str], carried: Carried) -> Net:
        found = self._of(session)
        found.price(carried)
        return Net(first_request=carried, turns=found.turns, replies=found.charged, session=found.saved - found.charged)

    def _of(self, session: tuple[str, str]) -> _Session:
        found = self._sessions.pop(session, None) or _Session()
        self._sessions[session] = found
        if len(self._sessions) > self._most:
            self._sessions.popitem(last=False)
        return found


LEAST_BUDGET = 100
"""Tokens below which no reply says anything."""
_WRITES = " [write]"
_VIA = f',"call":"{CALL_WRITE.name}"'
_MOST_ALSO = 5
"""Tools named beside one that does the same."""
_NOTES = 0.3
"""Of the budget, that everything beside tools and figures may take."""

_LETTERS = 3
"""Characters that a token of definitions has at the least, on the whole."""

Weigh = Callable[[str], Count]


@dataclass(frozen=True, slots=True)
class Beside:
    """What is said besides tools and figures."""

    missing: Sequence[Missing] = ()
    """Servers whose tools could not be searched."""
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindToolResponse:
    """A reply of `find_tool` as programs read it.

    Example:
        >>> reply = '{"tools":[],"more":[],"token_metrics":{"baseline_tokens":0,"returned_tokens":0,"tokens_saved":0,'
        >>> FindToolResponse.read(reply + '"savings_percentage":0}}').token_metrics.tokens_saved
        0
    """

    tools: tuple[JsonObject, ...]
    """Definitions, best match first."""
    token_metrics: TokenMetrics
    more: tuple[str, ...] = ()
    """Further tools, a line each."""
    missing: tuple[Json, ...] = ()
    """Servers whose tools could not be searched."""
    hint: str | None = None

    @classmethod
    def read(cls, text: str) -> "FindToolResponse":
        """Parses the text of a reply.

        Raises:
            ValueError: The text is no reply of `find_tool`, or its figures do not agree.
        """
        value: Json = json.loads(text)
        try:
            found = cast("dict[str, Any]", value)
            return cls(
                tools=tuple(found["tools"]),
                token_metrics=TokenMetrics(**found["token_metrics"]),
                more=tuple(found.get("more", ())),
                missing=tuple(found.get("missing", ())),
                hint=found.get("hint"),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError("this is no reply of find_tool") from error

    def to_json(self) -> dict[str, Json]:
        said: dict[str, Json] = {
            "tools": [dict(tool) for tool in self.tools],
            "more": [*self.more],
            "token_metrics": self.token_metrics.to_json(),
        }
        beside: dict[str, Json] = {"missing": [*self.missing], "hint": self.hint}
        return {**said, **{key: value for key, value in beside.items() if value}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    text: str
    metrics: TokenMetrics
    tokens: Count
    """Of the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What is known of a tool besides its definition."""

    named: bool = False
    near: bool = True
    writes: bool = False
    """Whether it goes through the other door."""
    also: tuple[str, ...] = ()
    """Others that do the same."""

    @property
    def others(self) -> list[Json]:
        """The first few of them."""
        rest = len(self.also) - _MOST_ALSO
        return [*self.also[:_MOST_ALSO], *([f"…{rest} more"] if rest > 0 else [])]


def candidate(forms: Forms, about: About, weigh: Weigh, *, baseline: int) -> Candidate:
    """The tool in all its forms with their costs. Which door it takes, and who else does the same, is said in all but
    the name, unless the definition would for that exceed all that there is."""
    others = about.others
    mark = (f" (also: {', '.join(map(str, others))})" if others else "") + (_WRITES if about.writes else "")
    beside = (f',"also":{written(others)}' if others else "") + (_VIA if about.writes else "")
    definition = f"{forms.definition[:-1]}{beside}}}"
    if beside and weigh(definition).tokens > baseline:
        definition = forms.definition
    return Candidate(
        definition=_piece(definition, weigh),
        signature=_piece(_marked(forms.signature, mark), weigh),
        line=_piece(_marked(forms.line, mark), weigh),
        name=_piece(forms.name, weigh),
        named=about.named,
        near=about.near,
    )


def _marked(line: str, mark: str) -> str:
    return f"{line[:-1]}{written(mark)[1:]}" if mark else line


def _piece(text: str, weigh: Weigh) -> Piece:
    return Piece(text, weigh(text).high)


def compose(  # noqa: PLR0913
    candidates: Sequence[Candidate],
    *,
    baseline: int,
    budget: int,
    weigh: Weigh,
    beside: Beside,
    limit: int | None = None,
    scores: Sequence[float] = (),
) -> Found:
    """The reply within the budget, and within the baseline: no reply returns more than there is.

    Args:
        limit: Characters that the client shows; None for any number.
        scores: Of the candidates; where they say that few can be meant, the reply is brief. Without them it is the
            fullest that fits.
    """
    if limit is not None:
        budget = min(budget, limit // _LETTERS)
    notes = _notes(beside, int(budget * _NOTES), weigh)
    frame = weigh(_text(Fitted(), notes, TokenMetrics.of(baseline, 0)))
    # Costs are the upper edges of counts, the baseline is a count.
    most = baseline * frame.high // max(1, frame.tokens)
    room = max(0, min(budget - frame.high, most))
    near = [score for one, score in zip(candidates, scores, strict=False) if one.near]
    is_brief = has_brief_reply(near, room)
    fitted = fit_brief(candidates, scores, room) if is_brief else fit(candidates, room)
    while fitted != Fitted():
        returned = sum(weigh(piece.text).tokens for piece in (*fitted.tools, *fitted.more))
        if returned <= baseline:
            found = _found(fitted, notes, TokenMetrics.of(baseline, returned), weigh)
            if found.tokens.high <= budget and (limit is None or characters(found.text) <= limit):
                return found
        fitted = fitted.less()
    if candidates:
        notes = _notes(
            Beside(hint=f"{len(candidates)} found, none fits; give more max_tokens"), budget - frame.high, weigh
        )
    # Nothing was returned in the place of the catalogue, so nothing was saved.
    return _found(Fitted(), notes, TokenMetrics.of(0, 0), weigh)


def _found(fitted: Fitted, notes: str, metrics: TokenMetrics, weigh: Weigh) -> Found:
    text = _text(fitted, notes, metrics)
    return Found(text=text, metrics=metrics, tokens=weigh(text))


def _text(fitted: Fitted, notes: str, metrics: TokenMetrics) -> str:
    tools, more = (",".join(piece.text for piece in pieces) for pieces in (fitted.tools, fitted.more))
    return f'{{"tools":[{tools}],"more":[{more}],{notes}"token_metrics":{written(metrics.to_json())}}}'


def _notes(beside: Beside, room: int, weigh: Weigh) -> str:
    """`missing` and `hint` at the greatest length that the room allows, each followed by a comma."""
    for said in _lengths(beside.missing, beside.hint):
        text = "".join(f'"{key}":{written(value)},' for key, value in said.items() if value)
        if weigh(text).high <= room:
            return text
    return ""


def _lengths(missing: Sequence[Missing], hint: str | None) -> list[dict[str, Json]]:
    names: list[Json] = [one.server for one in missing]
    whole: list[Json] = [f"{one.server}: {one.brief}" for one in missing]
    few: list[Json] = [*names[:5], *([f"and {len(names) - 5} more"] if len(names) > 5 else [])]
    number: list[Json] = [f"{len(names)} servers"] if names else []
    return [
        {"missing": whole, "hint": hint},
        {"missing": names, "hint": hint},
        {"missing": few, "hint": hint},
        {"missing": few},
        {"missing": number},
    ]


_MOST = 4_096
_Key = tuple[int, About, str, int]


class Candidates:
    """Of one `Searching`. Safe between threads: what is lost is made again."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._known: dict[_Key, tuple[Forms, Candidate]] = {}
        """By the forms' identity, which holds as long as they are held here."""

    def of_model(self, model: str, baseline: int) -> Callable[[Forms, About, Weigh], Candidate]:
        """Finds or makes them, for one that counts so and a catalogue that weighs so much."""
        return partial(self._of, model, baseline)

    def _of(self, model: str, baseline: int, forms: Forms, about: About, weigh: Weigh) -> Candidate:
        key = id(forms), about, model, baseline
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= self._most:
                self._known.clear()
            known = self._known[key] = forms, candidate(forms, about, weigh, baseline=baseline)
        return known[1]
