"""How well are tools found that nothing was trained with?

Folds over whole servers and sets (`training/folds.py`): each is searched with a table that was trained without its
tools, without tools elsewhere that read nearly the same, and without the queries written for either. The tables lie in
the folder that `FOLDS` names, `.bench/folds` by default; what the features of the second look weigh was fitted without
them too (`training/rerank.py`). Tables are made on a GPU (`training/train.py`), or as stand-ins on a CPU by
`make bench-folds` (`training/standin.py`). The two have floors of their own. Without tables nothing is measured, and
`ONLY=unseen` fails.

The real servers of a fold are asked for as one large catalogue, and in bundles of the size that a user configures.
Their queries are those of `training/wishes.tsv`; some of a bundle are joined, so that a request needs several tools.

`measure_shipped` asks the table in the wheel instead, of what it was not trained with: two sets that every table is
trained without, and the everyday requests, of whose tools it has learnt the texts. The weights of its second look were
fitted with the requests of those two sets. It cannot be asked of the folds' servers, since it has learnt from them.

`everyday.tsv` has requests in everyday words for tools of real servers, written for this and learnt from by nothing.
One half, every other line, may be looked at while ranking is changed; the other is held aside. They are in no mean.
"""

import json
import os
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from search_intervals import Draws, draw
from search_ours import rankings_of
from search_sets import MEASURES, NothingMeasured, Query, Row, Set, judge, read_rows, read_set, shared_folder

from ullage.search import Embedder, load_table
from ullage.search.load_embedder import read_table

__all__ = [
    "Part",
    "Shipped",
    "Unseen",
    "everyday_parts",
    "measure",
    "measure_shipped",
    "parts",
    "parts_to_fit",
    "report",
    "report_shipped",
]

_ROOT = Path(__file__).parent.parent
sys.path.append(str(_ROOT / "training"))
_NDCG = MEASURES.index("nDCG@10")
_SHOWN = ("lexical", "static", "fused")
_BUNDLE = 150
"""Tools from which a bundle of servers is full."""
_MOST = 300
"""Queries of one set."""
_JOINTS = (". Then ", " and then ", ". Also, ", ", and ", "; after that ", ".\n")
_SETS = {"metatool": 0, "metatool_multi": 0, "seal_dev": 1, "apibench": 2, "toolalpaca": 3}
"""Sets of train and the fold that each lies in. No table learns from the last two; weights of features do."""
_FLOOR = 68.0
"""Mean nDCG@10 of the fused ranking over the kinds, with tables trained by the recipe in training/README.md."""
_STAND_IN_FLOOR = 60.0
_KEPT_BACK = ("apibench", "toolalpaca")
"""Sets of train that no table learns from."""
_SHIPPED_FLOOR = 1.5
"""Points of nDCG@10 that the shipped table adds to words on these, as a mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """How many queries are drawn."""

    large: int
    """Of a fold's large catalogue."""
    of_bundle: int
    joined: int
    """Of a bundle, for several tools each."""


_MEASURED = Drawn(large=120, of_bundle=6, joined=4)
_TO_FIT = Drawn(large=400, of_bundle=20, joined=12)


@dataclass(frozen=True, slots=True)
class Part:
    """Some tools and queries of a kind, and the fold that they lie in."""

    kind: str
    fold: int
    set: Set


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    kinds: Sequence[str]
    values: Sequence[np.ndarray]
    """Of each kind, queries by rankings by measures."""
    tools: Sequence[float]
    """Of each kind, the tools of a part, as a mean."""
    everyday: Mapping[str, np.ndarray]
    """Of each half, queries by rankings by measures."""
    draws: Draws
    stand_in: bool
    """Whether the tables are stand-ins."""

    def missed(self) -> list[str]:
        mean, floor = self.draws.of(_SHOWN.index("fused"), _NDCG).mean, _STAND_IN_FLOOR if self.stand_in else _FLOOR
        return [] if mean >= floor else [f"fused: {mean:.2f} points of nDCG@10, floor {floor:g}"]

    def to_json(self) -> Mapping[str, object]:
        named = [*zip(self.kinds, self.values, strict=True), *self.everyday.items()]
        return {
            "nDCG@10 by kind": {
                kind: dict(zip(_SHOWN, values.mean(axis=0)[:, _NDCG].round(2).tolist(), strict=True))
                for kind, values in named
            },
            "mean, low, high": {
                name: {shown: self.draws.of(column, place).to_json() for column, shown in enumerate(_SHOWN)}
                for place, name in enumerate(MEASURES)
            },
            "tables": "stand-in" if self.stand_in else "trained",
        }


@dataclass(frozen=True, slots=True)
class Shipped:
    """What the table in the wheel finds, by kind: queries by rankings by measures."""

    values: Mapping[str, np.ndarray]

    def missed(self) -> list[str]:
        lexical, fused = (_SHOWN.index(name) for name in ("lexical", "fused"))
        gains = [
            float((self.values[name][:, fused, _NDCG] - self.values[name][:, lexical, _NDCG]).mean())
            for name in _KEPT_BACK
        ]
        gain = float(np.mean(gains))
        return (
            [] if gain >= _SHIPPED_FLOOR else [f"{gain:+.2f} points of nDCG@10 over words, floor {_SHIPPED_FLOOR:+g}"]
        )

    def to_json(self) -> Mapping[str, object]:
        return {
            name: dict(zip(_SHOWN, values.mean(axis=0)[:, _NDCG].round(2).tolist(), strict=True))
            for name, values in self.values.items()
        }


def measure_shipped(_: Sequence[Set]) -> Shipped:
    """Ask the table in the wheel of what it was not trained with."""
    if not (shared_folder() / "train").is_dir():
        raise NothingMeasured(f"no sets in `{shared_folder() / 'train'}`; name another folder with SHARED=path")
    table, found = load_table(), dict[str, list[np.ndarray]]()
    for name in _KEPT_BACK:
        each = read_set(shared_folder() / "train" / name)
        chosen = random.Random(7).sample(each.queries, min(_MOST, len(each.queries)))
        found[name] = [judged(Set(name, each.tools, chosen), table)]
    for part in everyday_parts():
        found.setdefault(part.kind, []).append(judged(part.set, table))
    return Shipped({name: np.concatenate(values) for name, values in found.items()})


def report_shipped(shipped: Shipped) -> None:
    print(f"{'nDCG@10, the table in the wheel':34}{'queries':>8}" + "".join(f"{shown:>10}" for shown in _SHOWN))
    for name, values in shipped.values.items():
        cells = "".join(f"{value:>10.1f}" for value in values.mean(axis=0)[:, _NDCG])
        print(f"{name:34}{len(values):>8}{cells}")


def folds_folder() -> Path:
    return Path(os.environ.get("FOLDS") or _ROOT / ".bench" / "folds")


def measure(_: Sequence[Set]) -> Unseen:
    """Of the sets of train and of the catalogues beside them; those of `DATA` are measured by `quality`."""
    from folds import FOLDS

    cards = sorted(folds_folder().glob("fold_*/table.json"))
    if len(cards) != FOLDS:
        raise NothingMeasured(
            f"{len(cards)} of {FOLDS} tables of folds in `{folds_folder()}`: `make bench-folds` first"
        )
    if not (shared_folder() / "train").is_dir():
        raise NothingMeasured(f"no sets in `{shared_folder() / 'train'}`; name another folder with SHARED=path")
    folds = {int(path.parent.name[-1]): read_table(path.parent) for path in cards}
    found: dict[str, list[np.ndarray]] = {}
    tools: dict[str, list[int]] = {}
    for part in parts():
        found.setdefault(part.kind, []).append(judged(part.set, folds[part.fold]))
        tools.setdefault(part.kind, []).append(len(part.set.tools))
    values = [np.concatenate(each) for each in found.values()]
    everyday: dict[str, list[np.ndarray]] = {}
    for part in everyday_parts():
        everyday.setdefault(part.kind, []).append(judged(part.set, folds[part.fold]))
    return Unseen(
        kinds=list(found),
        values=values,
        tools=[float(np.mean(each)) for each in tools.values()],
        everyday={half: np.concatenate(each) for half, each in everyday.items()},
        draws=draw(values),
        stand_in=any(json.loads(path.read_text(encoding="utf-8")).get("stand_in") for path in cards),
    )


def judged(each: Set, table: Embedder) -> np.ndarray:
    """Queries by rankings by measures."""
    rankings = rankings_of(each.tools, table)
    return np.array(
        [[judge(rankings[name](query.text), query.needed) for name in _SHOWN] for query in each.queries], dtype=float
    )


def parts() -> Iterator[Part]:
    """All that is measured, with the same draw of queries each time."""
    yield from _of_servers(_MEASURED)
    for name, fold in _SETS.items():
        each = read_set(shared_folder() / "train" / name)
        chosen = random.Random(7).sample(each.queries, min(_MOST, len(each.queries)))
        yield Part(name, fold, Set(name, each.tools, chosen))


def everyday_parts() -> Iterator[Part]:
    """The requests of `everyday.tsv`, each among the catalogues of the fold that its first tool lies in."""
    from folds import FOLDS, fold_of

    lines = Path(__file__).with_name("everyday.tsv").read_text(encoding="utf-8").splitlines()
    tools = [*_of_catalogues()]
    for fold in range(FOLDS):
        here = {row["id"]: row for row in tools if fold_of("", row["server"]) == fold}
        for half, name in enumerate(("everyday, looked at", "everyday, held aside")):
            asked = [line.split("\t") for line in lines[half::2]]
            queries = [
                Query(text, frozenset(ids.split()) & here.keys()) for text, ids in asked if ids.split()[0] in here
            ]
            if queries:
                yield Part(name, fold, Set(name, [*here.values()], queries))


def parts_to_fit() -> Iterator[Part]:
    """More requests for the same servers than are measured with, since weights that are fitted on few are fitted to
    these few. Whoever fits leaves the fold out that is measured."""
    yield from _of_servers(_TO_FIT)


def _of_servers(drawn: Drawn) -> Iterator[Part]:
    from folds import FOLDS, fold_of

    wishes, servers = _wishes(), dict[str, list[Row]]()
    for row in _real_tools():
        servers.setdefault(row["server"], []).append(row)
    for fold in range(FOLDS):
        chance = random.Random(fold)
        names = sorted(name for name in servers if fold_of("", name) == fold)
        chance.shuffle(names)
        everything = [row for name in names for row in servers[name]]
        queries = _single(everything, wishes, drawn.large, chance)
        yield Part("servers, large", fold, Set("large", everything, queries))
        for tools in _bundles(names, servers):
            yield Part("servers", fold, Set("bundle", tools, _single(tools, wishes, drawn.of_bundle, chance)))
            yield Part("servers, several", fold, Set("bundle", tools, _joined(tools, wishes, drawn.joined, chance)))


def _bundles(names: Sequence[str], servers: Mapping[str, list[Row]]) -> Iterator[list[Row]]:
    bundle = list[Row]()
    for name in names:
        bundle = bundle + servers[name]
        if len(bundle) >= _BUNDLE:
            yield bundle
            bundle = []


def _single(tools: Sequence[Row], wishes: Mapping[str, list[str]], number: int, chance: random.Random) -> list[Query]:
    asked = [(text, row["id"]) for row in tools for text in wishes.get(row["id"], ())]
    return [Query(text, frozenset({id_})) for text, id_ in chance.sample(asked, min(number, len(asked)))]


def _joined(tools: Sequence[Row], wishes: Mapping[str, list[str]], how_many: int, chance: random.Random) -> list[Query]:
    """Requests for two or three tools: those of one server as often as those of several."""
    asked, made = [row for row in tools if row["id"] in wishes], list[Query]()
    for number in range(how_many):
        first = chance.choice(asked)
        among = [row for row in asked if row is not first and (number % 2 or row["server"] == first["server"])]
        chosen = [first, *chance.sample(among, min(len(among), 1 + number // 2 % 2))]
        texts = [chance.choice(wishes[row["id"]]) for row in chosen]
        text = texts[0] + "".join(chance.choice(_JOINTS) + text for text in texts[1:])
        made.append(Query(text, frozenset(row["id"] for row in chosen)))
    return made


def _wishes() -> dict[str, list[str]]:
    """In English, by the ids of their tools."""
    from wishes import is_foreign

    found: dict[str, list[str]] = {}
    for line in (_ROOT / "training" / "wishes.tsv").read_text(encoding="utf-8").splitlines():
        id_, *texts = line.split("\t")
        found.setdefault(id_, []).extend(text for text in texts if not is_foreign(text))
    return {id_: texts for id_, texts in found.items() if texts}


def _real_tools() -> Iterator[Row]:
    """Of equal tools the first."""
    seen = set[tuple[str, str]]()
    for row in _rows():
        key = row["name"], row.get("description") or ""
        if key not in seen:
            seen.add(key)
            yield row


def _rows() -> Iterator[Row]:
    yield from read_rows(shared_folder() / "train" / "toucan_catalog" / "tools.jsonl")
    yield from _of_catalogues()


def _of_catalogues() -> Iterator[Row]:
    for path in sorted((shared_folder().parent / "catalogues").glob("*.json")):
        catalogue = json.loads(path.read_text(encoding="utf-8"))
        for row in catalogue["tools"]:
            yield row | {"server": catalogue["package"], "id": f"{catalogue['package']}:{row['name']}"}


def report(unseen: Unseen) -> None:
    print(f"tables of folds: {'stand-ins, made on a CPU' if unseen.stand_in else 'trained by training/README.md'}")
    print(f"{'nDCG@10, not learnt from':26}{'queries':>8}{'tools':>8}" + "".join(f"{name:>10}" for name in _SHOWN))
    for kind, values, tools in zip(unseen.kinds, unseen.values, unseen.tools, strict=True):
        print(f"  {kind:24}{len(values):>8}{tools:>8,.0f}" + _cells(values.mean(axis=0)[:, _NDCG].tolist()))
    intervals = [unseen.draws.of(column, _NDCG) for column in range(len(_SHOWN))]
    print(f"  {'mean':40}" + _cells([each.mean for each in intervals]))
    print(f"  {'95 % from':40}" + _cells([each.low for each in intervals]))
    print(f"  {'to':40}" + _cells([each.high for each in intervals]))
    for half, values in unseen.everyday.items():
        print(f"  {half:24}{len(values):>8}{'':8}" + _cells(values.mean(axis=0)[:, _NDCG].tolist()))


def _cells(values: Sequence[float]) -> str:
    return "".join(f"{value:>10.1f}" for value in values)
