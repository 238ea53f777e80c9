"""Why is a tool among what was found?

Its score, what its words gave to that, what its meaning and what earlier use, and whether the query says its name: for
people in a few lines, for programs as JSON. Nothing is searched or printed here.
"""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ullage.gateway import Explained
from ullage.search import Document, Hit, Named, Reason, Why, parts, terms
from ullage.tool import Json

__all__ = ["explained", "why_json", "why_lines"]

_LABEL = 9
_INDENT = "    "
_TERMS = 6
"""Told to a person; the rest gave less."""
_LEAST = 0.005
"""Of a score, that is worth telling a person: less is 0 in two decimals."""
_DECIMALS = 4
_UNBROKEN = "\u00a0"
"""A space at which no line ends."""
_OF_SERVER = "it is of the server that was asked for"
_NAMED: Mapping[Named, str] = {
    Named.NO: "",
    Named.IN_PART: "the query is part of its name",
    Named.AMONG_OTHERS: "the query says its name among other words",
    Named.WHOLLY: "the query is its name",
    Named.EXACTLY: "the query is its name, to the letter",
}


def explained(line: str, found: Mapping[str, Explained]) -> Explained | None:
    """What is known of the tool that a line of a reply begins with."""
    return found.get(max((name for name in found if line.startswith(name)), key=len, default=""))


def why_lines(one: Explained, width: int) -> list[str]:
    """Aligned, and no wider than that."""
    if one.hit is None:
        return [f"{_INDENT}{_OF_SERVER}"]
    hit, why = one.hit, one.hit.explain()
    rows = [
        ("score", hit.score, _NAMED[hit.named]),
        ("words", why.words, _words(why.reasons, _written(hit.document)) or "none in common that says much"),
        *([("meaning", why.meaning, _meaning(why))] if why.nearness is not None else []),
        *([("closer", why.closer, "word by word, beside the best others")] if why.closer else []),
        *([("use", why.use, "called after a search like this one")] if why.use else []),
    ]
    return [line for label, score, said in rows for line in _row(label, score, said, width)]


def _row(label: str, score: float, said: str, width: int) -> list[str]:
    head = f"{_INDENT}{label:<{_LABEL}}{score:.2f}  "
    lines = textwrap.wrap(head + said, width, subsequent_indent=" " * len(head), break_long_words=False)
    return [line.replace(_UNBROKEN, " ") for line in lines]


def _written(document: Document) -> dict[str, str]:
    """Terms to words as they stand in the tool: a term is the stem of many."""
    words = (word for text in reversed(document.texts()) for word in reversed(parts(text)))
    return {term: word for word in words for term in terms(word)}


def _words(reasons: Sequence[Reason], written: Mapping[str, str]) -> str:
    """Each term with the fields it stands in, by what it gave."""
    by_term: dict[str, list[Reason]] = {}
    for reason in reasons:
        if reason.score >= _LEAST:
            by_term.setdefault(reason.term, []).append(reason)
    told = sorted(by_term.values(), key=lambda one: -sum(reason.score for reason in one))
    rest = f"; {len(told) - _TERMS} more" if len(told) > _TERMS else ""
    return "; ".join(_term(one, written) for one in told[:_TERMS]) + rest


def _term(reasons: Sequence[Reason], written: Mapping[str, str]) -> str:
    word, kin = written.get(reasons[0].term, reasons[0].term), "" if reasons[0].asked else " (akin)"
    gave = (f"{reason.field.value} {reason.score:.2f}".replace(" ", _UNBROKEN) for reason in reasons)
    return f"{word}{kin}: ".replace(" ", _UNBROKEN) + ", ".join(gave)


def _meaning(why: Why) -> str:
    return f"nearness {why.nearness:.2f}; at most {why.share:.2f} for this query"


def why_json(shown: Iterable[Explained]) -> dict[str, Json]:
    """By the tool's name; None for one that is there for its server's sake."""
    return {one.listed: None if one.hit is None else dict(_json(one.hit)) for one in shown}


def _json(hit: Hit) -> Iterator[tuple[str, Json]]:
    why = hit.explain()
    yield "score", _rounded(hit.score)
    yield "named", hit.named.name.lower() if hit.named else None
    yield "words", _rounded(why.words)
    yield "meaning", _rounded(why.meaning)
    yield "closer", _rounded(why.closer)
    yield "use", _rounded(why.use)
    yield "nearness", None if why.nearness is None else _rounded(why.nearness)
    yield "share", _rounded(why.share)
    yield "terms", [_reason_json(reason) for reason in why.reasons]


def _reason_json(reason: Reason) -> dict[str, Json]:
    return {
        "term": reason.term,
        "field": reason.field.value,
        "score": _rounded(reason.score),
        "asked": reason.asked,
    }


def _rounded(number: float) -> float:
    return round(number, _DECIMALS)
