"""How much of each tool can be shown within a budget?

Whoever looks for a tool is served best by much of the nearest and a little of many. A tool is needed at the first rank
in 46 of 100 cases, at the third in 8, at the tenth in 1 and at the fortieth in a tenth of one; a definition costs some
110 tokens, a signature 35, a line 24 and a name 11; from a definition and mostly from a signature a tool can be called
at once, from a line or a name after one more search. So half of the room goes to the three best whole, up to 70 % to
signatures of the next, up to 85 % to lines, and names take the rest; what is then left makes all of it fuller, best
first. `make bench-search` shows what that finds beside other shapes.

Pure arithmetic over costs; who counts them, and what stands around, is the reply's affair.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

__all__ = ["Candidate", "Fitted", "Piece", "fit"]

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

    def add(self, ranks: Iterable[int], form: _Form, share: float = 1.0) -> None:
        """Shows what is not shown yet, while everything stays within that share of the room."""
        room, forms, at = self.room * share, self.forms, form.value
        for rank in ranks:
            if rank not in forms and self.cost + (cost := self._pieces[rank][at].cost) <= room:
                forms[rank] = form
                self.cost += cost

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
