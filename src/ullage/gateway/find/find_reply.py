"""The reply of `find_tool`, fitted to its token budget.

The reply is one JSON text with `tools`, `more` and `token_metrics`, and where needed `missing` and `hint`. Its whole
size is counted with the caller's tokenizer before it is sent, and it is shortened until it fits.

The room is shared between full definitions of the nearest tools and shorter forms of many. The tool that is needed has
rank 1 in 46 of 100 cases, rank 3 in 8, rank 10 in 1 and rank 40 in 0.1. A definition costs some 110 tokens, a signature
35, a line 24 and a name 11. A tool can be called at once from its definition, and mostly from its signature; a line or
a name needs one more search. So half of the room goes to the definitions of the three best, up to 70 % to signatures of
the next, up to 85 % to lines, and names take the rest; any room left makes the forms fuller, best first. `make
bench-search` compares the recall of this with other shapes.

A clear search needs much less: `fit_brief` shows the best match, its likely alternatives, and the names of tools not
far behind. A search is clear if its scores are high and concentrated on few tools (`has_brief_reply`); all others use
the whole budget.

Forms and their costs are cached between searches, because one search and the next find mostly the same tools. A cached
cost may be out of date where a meter has learnt since; the whole reply is counted again before it is sent.

`TokenMetrics` are the gross figures of one search. `Net` is what a client saves after Ullage's own tools,
instructions and replies are charged, for the first request and for a session; it may be negative. The turns of a
session are not observed: each call is one request that led to another, so there were at least calls + 1, and the
figure is a lower bound. Nothing here computes money.
"""

import json
import math
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple, cast

from ullage.tokens import Count, Method
from ullage.tool import Json, JsonObject

from ..merge.tool_view import Missing
from ..reply_metadata import characters
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
    "WeighJoined",
    "candidate",
    "compose",
    "fit",
    "fit_brief",
    "has_brief_reply",
]

_FIRST = 0.75
"""Share of the room that the best hit's definition may take."""
_DEFINITIONS = 0.5
"""Share of the room that definitions may take together; the next two add signatures, then lines."""
_SIGNATURES = 0.7
_LINES = 0.85
_WHOLE = 3
"""Best ranks whose definitions are added before anything else."""
_BEST = 8
"""Best ranks that may get definitions and signatures; beyond these, a line is as useful."""
_MANY = 40
"""Ranks that are shown as fully as possible before any further rank is added."""
_BRIEF = 360
"""Tokens of the tools in a brief reply; its figures take some 50 more. `make bench-search ONLY=brief` measures what
the constants below cost in recall and save in tokens."""
_SHARPNESS = 8.0
"""Inverse temperature of the softmax from scores to shares: a tool 0.1 behind another has 0.45 of its share."""
_FEW = 24.5
"""Most tools that the shares of a clear search are spread over, as the exponential of their entropy."""
_STRONG = 0.9
"""Least best score of a clear search: below it, nothing fits well by both words and meaning."""
_SURE = 0.6
"""Share from which the best match gets its definition, however long that is."""
_SHORT_DEFINITION = 140
"""Tokens up to which the best match's definition is shown in any case."""
_USUAL_DEFINITION = 110
"""Tokens of a definition that count against the room of a brief reply; a longer one, and what the tool returns, take no
room from names."""
_RIVAL = 0.1
"""Share from which one of the next `_RIVALS` tools gets a signature, within `_FOR_RIVALS` of the room."""
_RIVALS = 3
_FOR_RIVALS = 0.6
_FAR = 0.9
"""Distance to the best score beyond which a brief reply omits a tool, except for the `_LEAST` nearest."""
_LEAST = 5


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the reply's text, with its cost in tokens."""

    text: str
    cost: int
    """The upper edge of its count."""
    tokens: int | None = None
    """The exact count; None where the meter may still correct it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A tool in each of its forms, with their costs.

    A shorter form may cost as much as a longer one; the longer is then taken.
    """

    definition: Piece
    signature: Piece
    line: Piece
    name: Piece
    named: bool = False
    """Whether the query names the tool; its definition is then added first."""
    near: bool = True
    """False where the rank carries no information; the tool then gets no more than its name until all others are
    shown."""
    of_returns: int = 0
    """Tokens, in its definition, of what it returns."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """The forms that fit: definitions in `tools`, a line for each other tool in `more`, both best first."""

    tools: tuple[Piece, ...] = ()
    more: tuple[Piece, ...] = ()

    @property
    def cost(self) -> int:
        """Tokens of all pieces together."""
        return sum(piece.cost for piece in self.tools + self.more)

    def count_tokens(self, weigh: "Weigh") -> int:
        """Count the tokens of all pieces."""
        pieces = self.tools + self.more
        return sum([weigh(piece.text).tokens if piece.tokens is None else piece.tokens for piece in pieces])

    def less(self) -> "Fitted":
        """Return a copy without the last line, or without the last definition where there are no lines."""
        if self.more:
            return replace(self, more=self.more[:-1])
        return replace(self, tools=self.tools[:-1])


def fit(candidates: Sequence[Candidate], room: int) -> Fitted:
    """Return the fullest forms that fit into the room.

    Args:
        candidates: The tools, nearest first.
        room: In tokens.
    """
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
    """Return whether a brief reply is enough.

    True where the room is larger than a brief reply and the scores of the near tools point at few of them: the best
    fits well, and not many others score about as well.
    """
    if room <= _BRIEF:
        return False
    if not scores or max(scores) < _STRONG:
        return False
    return math.exp(-sum(share * math.log(share) for share in _shares(scores) if share)) <= _FEW


def fit_brief(candidates: Sequence[Candidate], scores: Sequence[float], room: int) -> Fitted:
    """Fit a brief reply: the best match, signatures of its rivals, and the names of tools not far behind.

    Args:
        candidates: Nearest first; those named in the query get their definitions.
        scores: Of the candidates, in the same order.
        room: In tokens, for the whole reply; a brief reply uses part of it.
    """
    shares, best = _shares(scores), max(scores)
    first, of_returns = candidates[0].definition.cost - candidates[0].of_returns, candidates[0].of_returns
    is_whole = shares[0] >= _SURE or first <= _SHORT_DEFINITION
    beside = max(0, first - _USUAL_DEFINITION) + of_returns
    brief = _BRIEF + (beside if is_whole or candidates[0].named else 0)
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
    """Return the softmax of the scores: each tool's share of being the one that is meant."""
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
    """The form chosen for each rank so far, and their total cost."""

    def __init__(self, candidates: Sequence[Candidate], room: int) -> None:
        self.candidates = candidates
        self.room = room
        self.forms: dict[int, _Form] = {}
        self.cost = 0
        self._pieces = [(one.name, one.line, one.signature, one.definition) for one in candidates]
        """The pieces of each candidate, in the order of `_Form`."""

    def add(self, ranks: Iterable[int], form: _Form, share: float = 1.0) -> bool:
        """Add the ranks not shown yet in this form, within that share of the room; return False if any did not fit."""
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
        """Replace shorter forms of these ranks by this one, while there is room."""
        for rank in ranks:
            now = self.forms.get(rank, form)
            if now < form:
                pieces = self._pieces[rank]
                more = pieces[form].cost - pieces[now].cost
                if self.cost + more <= self.room:
                    self.forms[rank] = form
                    self.cost += more

    def fitted(self) -> Fitted:
        """Return the chosen forms, best first."""
        pieces = [(form, self._pieces[rank][form]) for rank, form in sorted(self.forms.items())]
        return Fitted(
            tools=tuple(piece for form, piece in pieces if form is _Form.DEFINITION),
            more=tuple(piece for form, piece in pieces if form is not _Form.DEFINITION),
        )


def _show_definitions(shown: _Shown) -> None:
    """Add the definitions of the best ranks, and of tools named in the query."""
    for rank, candidate in enumerate(shown.candidates[:_BEST]):
        if candidate.named:
            shown.add([rank], _Form.DEFINITION)
        elif candidate.near and rank < _WHOLE:
            shown.add([rank], _Form.DEFINITION, _DEFINITIONS if rank else _FIRST)


_WITHIN = 0.01
_SESSIONS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenMetrics:
    """The four token figures of a search.

    Raises:
        ValueError: On construction, if the figures do not agree.
    """

    baseline_tokens: int
    """Tokens of all definitions in the catalogue searched, including Ullage's own, which a search may return too."""
    returned_tokens: int
    """Tokens of the definitions and lines in the reply."""
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
        """Compute the figures from the tokens of the catalogue and of the reply."""
        saved = baseline - returned
        percentage = round(_percentage(baseline, saved), 2)
        return cls(
            baseline_tokens=baseline, returned_tokens=returned, tokens_saved=saved, savings_percentage=percentage
        )

    def to_json(self) -> dict[str, Json]:
        """Return the figures as JSON."""
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
    """Tokens that tools cost in one request of a client."""

    without: int
    """All servers' definitions, as the client would send them without Ullage; without Ullage's own tools."""
    surface: int
    """The definitions that Ullage lists to the client now."""
    instructions: int

    @property
    def saved(self) -> int:
        """Tokens saved per request, with Ullage's own tools and instructions charged; negative for a loss."""
        return self.without - self.surface - self.instructions


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """Tokens a client saved after Ullage's tools, instructions and replies are charged; negative for a loss."""

    first_request: Carried
    turns: int
    """Least number of requests that the session can have made."""
    replies: int
    """Tokens of Ullage's replies, each counted once for every later request that contains it."""
    session: int

    def to_json(self) -> dict[str, Json]:
        """Return the figures as JSON."""
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
    """Tokens saved over all priced turns, before replies are charged."""
    unpriced: int = 0
    """Turns whose saving is not known yet."""
    replies: int = 0
    """Tokens of all replies so far, which each further request contains."""
    charged: int = 0
    recorded_turns: int = 0
    recorded: int = 0
    """The part of `charged` that the ledger has."""

    def price(self, carried: Carried) -> None:
        self.saved += self.unpriced * carried.saved
        self.unpriced = 0


class Savings:
    """Totals of each session's turns and replies; keeps the most recently active sessions."""

    def __init__(self, most: int = _SESSIONS) -> None:
        self._most = most
        self._sessions: OrderedDict[tuple[str, str], _Session] = OrderedDict()

    def called(self, session: tuple[str, str], carried: Carried | None) -> None:
        """Count a call, which means that one more request follows. Its saving is added once `carried` is known."""
        found = self._of(session)
        turns = 1 if found.turns else 2
        found.turns += turns
        found.unpriced += turns
        found.charged += found.replies
        if carried is not None:
            found.price(carried)

    def replied(self, session: tuple[str, str], tokens: int, *, is_recorded: bool = False) -> None:
        """Count Ullage's reply to that call, which the next and every later request contains.

        Args:
            session: Principal and session.
            tokens: Of the reply.
            is_recorded: Whether the ledger has an entry that charges the next request.
        """
        found = self._of(session)
        found.replies += tokens
        found.charged += tokens
        if is_recorded:
            found.recorded += tokens

    def take_unrecorded(self, session: tuple[str, str]) -> tuple[int, int]:
        """Return the turns and charged tokens that the ledger does not have yet, and mark them as recorded."""
        found = self._of(session)
        left = found.turns - found.recorded_turns, found.charged - found.recorded
        found.recorded_turns, found.recorded = found.turns, found.charged
        return left

    def net(self, session: tuple[str, str], carried: Carried) -> Net:
        """Return the net savings of the first request and of the session."""
        found = self._of(session)
        found.price(carried)
        return Net(first_request=carried, turns=found.turns, replies=found.charged, session=found.saved - found.charged)

    def _of(self, session: tuple[str, str]) -> _Session:
        found = self._sessions.pop(session, None) or _Session()
        self._sessions[session] = found
        if len(self._sessions) > self._most:
            self._sessions.popitem(last=False)
        return found


_FIGURES = re.compile(r"([0-9.]+)")
LEAST_BUDGET = 100
"""Smallest budget in tokens for which a reply is useful."""
_WRITES = " [write]"
_VIA = f',"call":"{CALL_WRITE.name}"'
_MOST_ALSO = 5
"""Most duplicates named beside a tool."""
_NOTES = 0.3
"""Share of the budget for everything except tools and figures."""

_LETTERS = 3
"""Least average number of characters in a token of definitions."""

Weigh = Callable[[str], Count]
WeighJoined = Callable[[Sequence[str]], Count]


@dataclass(frozen=True, slots=True)
class Beside:
    """Notes in the reply, besides tools and figures."""

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
        """Return the reply as JSON, without empty `missing` and `hint`."""
        said: dict[str, Json] = {
            "tools": [dict(tool) for tool in self.tools],
            "more": [*self.more],
            "token_metrics": self.token_metrics.to_json(),
        }
        beside: dict[str, Json] = {"missing": [*self.missing], "hint": self.hint}
        return {**said, **{key: value for key, value in beside.items() if value}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The reply of a search, with its figures."""

    text: str
    metrics: TokenMetrics
    tokens: Count
    """Tokens of the text."""


class About(NamedTuple):
    """Facts about a found tool that are not in its definition. A named tuple, because it is part of a cache's key."""

    named: bool = False
    near: bool = True
    writes: bool = False
    """Whether it must be called with `call_tool_write`."""
    also: tuple[str, ...] = ()
    """Names of other tools that do the same."""
    returns: str = ""
    """What it returns, as text; empty if that is not known or not shown."""

    @property
    def others(self) -> list[Json]:
        """The first few of `also`, with the number of the rest."""
        rest = len(self.also) - _MOST_ALSO
        return [*self.also[:_MOST_ALSO], *([f"…{rest} more"] if rest > 0 else [])]


def candidate(forms: Forms, about: About, weigh: Weigh, *, baseline: int) -> Candidate:
    """Build all forms of a tool with their costs.

    Every form but the name states whether the tool needs `call_tool_write` and which tools do the same, definition and
    signature also what it returns. The definition omits all of it where it would exceed the baseline with it.
    """
    others = about.others
    mark = (f" (also: {', '.join(map(str, others))})" if others else "") + (_WRITES if about.writes else "")
    returns = f',"returns":{written(about.returns)}' if about.returns else ""
    beside = returns + (f',"also":{written(others)}' if others else "") + (_VIA if about.writes else "")
    definition = f"{forms.definition[:-1]}{beside}}}"
    if beside and weigh(definition).tokens > baseline:
        definition = forms.definition
    return Candidate(
        definition=_piece(definition, weigh),
        signature=_piece(_marked(forms.signature, f" {about.returns}{mark}" if about.returns else mark), weigh),
        line=_piece(_marked(forms.line, mark), weigh),
        name=_piece(forms.name, weigh),
        named=about.named,
        near=about.near,
        of_returns=weigh(returns).tokens if returns and definition is not forms.definition else 0,
    )


def _marked(line: str, mark: str) -> str:
    return f"{line[:-1]}{written(mark)[1:]}" if mark else line


def _piece(text: str, weigh: Weigh) -> Piece:
    count = weigh(text)
    return Piece(text, count.high, count.tokens if count.method is Method.EXACT else None)


def compose(  # noqa: PLR0913
    candidates: Sequence[Candidate],
    *,
    baseline: int,
    budget: int,
    weigh: Weigh,
    weigh_joined: WeighJoined | None = None,
    beside: Beside,
    limit: int | None = None,
    scores: Sequence[float] = (),
) -> Found:
    """Compose the reply within the budget, returning no more tokens of tools than the baseline has.

    Args:
        candidates: The tools found, nearest first.
        baseline: Tokens of the whole catalogue.
        budget: Tokens for the whole reply.
        weigh: Counts tokens for the caller's model.
        weigh_joined: Counts texts as if joined; by `weigh` where None.
        beside: Notes for the reply.
        limit: Characters that the client shows; None for no limit.
        scores: Of the candidates. Where they point at few tools, the reply is brief. Without scores it is as full as
            fits.
    """
    if limit is not None:
        budget = min(budget, limit // _LETTERS)
    weigh_joined = weigh_joined or (lambda texts: weigh("".join(texts)))
    notes = _notes(beside, int(budget * _NOTES), weigh)
    frame = weigh("".join(_texts(Fitted(), notes, TokenMetrics.of(baseline, 0))))
    # Costs are the upper edges of counts, the baseline is a count.
    most = baseline * frame.high // max(1, frame.tokens)
    room = max(0, min(budget - frame.high, most))
    near = [score for one, score in zip(candidates, scores, strict=False) if one.near]
    is_brief = has_brief_reply(near, room)
    fitted = fit_brief(candidates, scores, room) if is_brief else fit(candidates, room)
    while fitted.tools or fitted.more:
        returned = fitted.count_tokens(weigh)
        if returned <= baseline:
            found = _found(fitted, notes, TokenMetrics.of(baseline, returned), weigh_joined)
            if found.tokens.high <= budget and (limit is None or characters(found.text) <= limit):
                return found
        fitted = fitted.less()
    if candidates:
        notes = _notes(
            Beside(hint=f"{len(candidates)} found, none fits; give more max_tokens"), budget - frame.high, weigh
        )
    # No tool was returned in place of the catalogue, so nothing was saved.
    return _found(Fitted(), notes, TokenMetrics.of(0, 0), weigh_joined)


def _found(fitted: Fitted, notes: str, metrics: TokenMetrics, weigh_joined: WeighJoined) -> Found:
    texts = _texts(fitted, notes, metrics)
    return Found(text="".join(texts), metrics=metrics, tokens=weigh_joined(texts))


def _texts(fitted: Fitted, notes: str, metrics: TokenMetrics) -> list[str]:
    """Return the reply's text in parts that other replies have too: pieces, and figures apart from their names."""
    figures = _FIGURES.split(written(metrics.to_json()))
    tools, more = _separated(fitted.tools), _separated(fitted.more)
    return ['{"tools":[', *tools, '],"more":[', *more, "],", notes, '"token_metrics":', *figures, "}"]


def _separated(pieces: Sequence[Piece]) -> list[str]:
    return [text for piece in pieces for text in (piece.text, ",")][:-1]


def _notes(beside: Beside, room: int, weigh: Weigh) -> str:
    """Format `missing` and `hint` at the greatest length that fits, each followed by a comma."""
    names: list[Json] = [one.server for one in beside.missing]
    whole: list[Json] = [f"{one.server}: {one.brief}" for one in beside.missing]
    few: list[Json] = [*names[:5], *([f"and {len(names) - 5} more"] if len(names) > 5 else [])]
    number: list[Json] = [f"{len(names)} servers"] if names else []
    for said in [
        {"missing": whole, "hint": beside.hint},
        {"missing": names, "hint": beside.hint},
        {"missing": few, "hint": beside.hint},
        {"missing": few},
        {"missing": number},
    ]:
        text = "".join(f'"{key}":{written(value)},' for key, value in said.items() if value)
        if weigh(text).high <= room:
            return text
    return ""


_MOST = 4_096
_Key = tuple[int, About, str, int]


class Candidates:
    """Cache of candidates for one `Searching`. Thread-safe: a lost entry is built again."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._known: dict[_Key, tuple[Forms, Candidate]] = {}
        """By the identity of the forms, which are kept in the value so that their ids stay valid."""

    def of_model(self, model: str, baseline: int) -> Callable[[Forms, About, Weigh], Candidate]:
        """Return a function that gets or builds candidates for this model's tokenizer and this baseline."""
        return partial(self._of, model, baseline)

    def _of(self, model: str, baseline: int, forms: Forms, about: About, weigh: Weigh) -> Candidate:
        key = id(forms), about, model, baseline
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= self._most:
                self._known.clear()
            known = self._known[key] = forms, candidate(forms, about, weigh, baseline=baseline)
        return known[1]
