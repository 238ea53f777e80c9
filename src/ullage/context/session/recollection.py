"""Where in what was let go does it say that?

Passages are ranked by two things: what the query names letter for letter (ids, paths, quoted words, the whole of it),
and the words that they share with it. Who asks for nothing but a name that a call was given wants that call's result,
the latest one first and from its beginning.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ullage.messages import Message
from ullage.search import Document, LexicalIndex

from .passages import LetGo, Passage, calls_of, passages_of
from .recalled import Recalled, nothing, recalled

__all__ = ["Recollection"]

_NEAR = 0.3
"""Of the best score, that a passage must have which has nothing letter for letter."""
_QUOTED = re.compile(r"[\"'`“‘«]([^\"'`”’»]{2,200})[\"'`”’»]")
_EDGES = ".,;:!?()[]{}<>\"'`“”‘’«»"
_NAME = re.compile(r"\d|\w[_/\\.:@#=-]+\w|[a-z][A-Z]")
_LEAST, _LONGEST = 2, 500
"""Characters of a name."""


class Recollection:
    """Holds the passages of what was let go. Not for two threads at a time."""

    def __init__(self) -> None:
        self._index = LexicalIndex()
        self._held: dict[str, tuple[Passage, ...]] = {}
        """By the id of the message."""

    def hold(self, gone: Mapping[str, LetGo], around: Iterable[Message] = ()) -> None:
        """Holds these and no others. `around` are messages that were not let go and may hold the calls of results."""
        for identifier in [one for one in self._held if one not in gone]:
            for passage in self._held.pop(identifier):
                self._index.remove(passage.id)
        new = [one for identifier, one in gone.items() if identifier not in self._held]
        if new:
            calls = calls_of((*(one.message for one in gone.values()), *around))
            for one in new:
                self._held[one.id] = tuple(passages_of(one, calls))
                for passage in self._held[one.id]:
                    self._index.add(_document(passage))

    def ready(self) -> None:
        """Does beforehand what whoever asks first after a change would wait for."""
        self._index.ready()

    def recall(self, query: str, *, limit: int, room: int, count: Callable[[str], int], skip: int = 0) -> Recalled:
        """What was let go that is near the query, after the first `skip` passages, within so many tokens."""
        if not self._held:
            return nothing(room, count)
        return recalled(self.find(query), skip=skip, limit=limit, room=room, count=count)

    def find(self, query: str) -> tuple[Passage, ...]:
        """Best first; the same query finds the same as long as the same is held."""
        named, scores = _names(query), self._index.scores(query)
        least = _NEAR * max(scores.values(), default=0.0)
        passages = (passage for held in self._held.values() for passage in held)
        ranked = [_Ranked.of(passage, named, scores.get(passage.id, 0.0)) for passage in passages]
        exact = [one for one in ranked if one.exact]
        # Who gives nothing but a name and is understood does not want what only resembles it.
        near = [] if exact and named.alone else [one for one in ranked if not one.exact and one.score >= least > 0]
        found = [*exact, *near]
        return tuple(one.passage for one in sorted(found, key=_Ranked.order))


@dataclass(frozen=True, slots=True)
class _Names:
    """What a query says letter for letter."""

    names: tuple[str, ...]
    alone: bool
    """Whether it says nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranked:
    passage: Passage
    exact: int
    """For each name of the query, 2 where it stands in the passage or its call, 1 where only as part of a word."""
    called: int
    """The same for its call alone."""
    score: float
    """By words; 0 where the whole result is what is asked for."""

    @classmethod
    def of(cls, passage: Passage, named: _Names, score: float) -> "_Ranked":
        if not named.names:
            return cls(passage=passage, exact=0, called=0, score=0.0 if named.alone else score)
        about, text = passage.about.casefold(), passage.text.casefold()
        called = sum(_stands(name, about) for name in named.names)
        exact = sum(max(_stands(name, about), _stands(name, text)) for name in named.names)
        is_whole = named.alone and called == 2 * len(named.names)
        return cls(passage=passage, exact=exact, called=called, score=0.0 if is_whole else score)

    def order(self) -> tuple[float, ...]:
        passage = self.passage
        return (
            *(-self.exact, -self.called, -self.score),
            *(-passage.message, passage.part, passage.first, passage.piece),
        )


def _stands(name: str, text: str) -> int:
    """1 for a part of a word: `ORD-17` in `ORD-172` is another order."""
    if name not in text:
        return 0
    start, end = r"(?<!\w)" if name[0].isalnum() else "", r"(?!\w)" if name[-1].isalnum() else ""
    return 2 if re.search(f"{start}{re.escape(name)}{end}", text) else 1


def _names(query: str) -> _Names:
    """What is quoted, words that look like somebody's identifier, and the whole where it says more than these."""
    quoted = [found.strip() for found in _QUOTED.findall(query)]
    words = [word.strip(_EDGES) for word in _QUOTED.sub(" ", query).split()]
    names = [*quoted, *filter(_is_name, words)]
    alone = bool(names) and all(map(_is_name, filter(None, words)))
    phrase = [query.strip()] if not alone and len(words) > 1 else []
    kept = (name.casefold() for name in (*phrase, *names) if _LEAST <= len(name) <= _LONGEST)
    return _Names(tuple(dict.fromkeys(kept)), alone)


def _is_name(word: str) -> bool:
    return bool(_NAME.search(word))


def _document(passage: Passage) -> Document:
    return Document(id=passage.id, name="", server=passage.speaker, title=passage.about, description=passage.text)
