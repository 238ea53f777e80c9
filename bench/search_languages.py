"""How well are tools found by queries in other languages than theirs?

Twenty requests for tools of the set `mcpproxy_golden`, said in five languages (`training/tongues.txt`). Tools are in
English, as nearly all are. Measured where that set is among those of `DATA`; no floor.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from search_elsewhere import answers_elsewhere, have_encoder
from search_sets import MEASURES, Query, Set, judge

__all__ = ["Languages", "measure", "report"]

_LANGUAGES = ("Portuguese", "Spanish", "German", "Korean", "Chinese")
_SET = "mcpproxy_golden"
_QUERIES = Path(__file__).parent.parent / "training" / "tongues.txt"
_SHOWN = ("nDCG@10", "recall@1", "recall@5")


@dataclass(frozen=True, slots=True)
class Languages:
    values: Mapping[str, Mapping[str, Sequence[float]]]
    """The measures of each ranking in each language, in the order of `MEASURES`."""

    def missed(self) -> list[str]:
        return []

    def to_json(self) -> Mapping[str, object]:
        return {
            language: {
                ranking: {name: round(values[MEASURES.index(name)], 1) for name in _SHOWN}
                for ranking, values in found.items()
            }
            for language, found in self.values.items()
        }


def measure(sets: Sequence[Set]) -> Languages:
    tools = next((each.tools for each in sets if each.name == _SET), None)
    if tools is None:
        return Languages({})
    rows = [line.split("|") for line in _QUERIES.read_text(encoding="utf-8").splitlines()]
    asked = [
        Set(language, tools, [Query(row[column], frozenset({row[0]})) for row in rows])
        for column, language in enumerate(_LANGUAGES, start=1)
    ]
    found = answers_elsewhere("static", asked)
    if have_encoder():
        found |= answers_elsewhere("encoder", asked)
    return Languages(
        {
            each.name: {ranking: _means(each, answers[place]) for ranking, answers in found.items()}
            for place, each in enumerate(asked)
        }
    )


def _means(each: Set, answers: Sequence[Sequence[str]]) -> list[float]:
    judged = [judge(found, query.needed) for found, query in zip(answers, each.queries, strict=True)]
    return [mean(column) for column in zip(*judged, strict=True)]


def report(languages: Languages) -> None:
    if not languages.values:
        print(f"left out: `{_SET}`, whose tools are asked for, is not among the sets")
        return
    rankings = list(next(iter(languages.values.values())))
    for name in _SHOWN:
        print(f"{name:14}" + "".join(f"{ranking:>12}" for ranking in rankings))
        for language, found in languages.values.items():
            cells = "".join(f"{found[ranking][MEASURES.index(name)]:>12.1f}" for ranking in rankings)
            print(f"  {language:12}{cells}")
