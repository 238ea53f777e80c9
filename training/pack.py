"""What does the training read?

Makes one folder of everything that training and measuring read, as numbers, so that the machine that trains needs
neither this project nor a tokenizer nor a network: tools and queries cut into pieces (those of the encoder and those of
the table), pairs, negatives, the sets that are measured with and their lexical scores, and the encoder in half
precision. `python training/pack.py DATA MODEL WORDNET PACK`, with `small` behind it for a rehearsal.
"""

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from lexicon import LEXICON, switched
from negatives import look_alikes
from pairs import Pair, self_made, supervised
from phrases import kinds_of_tools, phrased
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from tools import Described, folds_without, read_rows, real_tools, set_documents, set_tools, without_twins
from wishes import wished
from wordnet import meanings

from ullage.search import LexicalIndex
from ullage.search.static_embedder import Pieces, fold
from ullage.search.stemming_and_synonyms import ASPECTS

SUPERVISED = ("metatool", "metatool_multi", "seal_dev")
KEPT_BACK = ("toolalpaca", "apibench")
"""Sets of train that are measured with instead: never learnt from, nor chosen by."""
_NEW_WORDS = 1_200
_LEAST_SEEN = 8
"""Tools that must have a word for it to get a row of its own."""
_LEAST_CJK = 5
_LEXICAL_KEPT = 150
"""Lexical scores kept for each query."""
_LONG_QUERY = 96
_MEANINGS = 40_000
_EVERYDAY = Path(__file__).parent.parent / "bench" / "everyday.tsv"
_SMALL = 300
"""Tools, and words, of a rehearsal."""

Cut = Callable[[str], Sequence[int]]


def main(data: Path, model: Path, wordnet: Path, pack: Path, *, small: bool) -> None:
    chance = random.Random(7)
    pack.mkdir(parents=True, exist_ok=True)
    measured = {path.name: path for path in sorted((data / "search" / "dev").iterdir())}
    measured |= {name: data / "search" / "train" / name for name in KEPT_BACK}
    tools = list(without_twins(real_tools(data), [tool for path in measured.values() for tool in set_tools(path)]))
    if small:
        tools = tools[:_SMALL]
    said = chance.sample(list(meanings(wordnet)), _SMALL if small else _MEANINGS)
    stories = [example for _, text in said for example in text.split("; ")[1:]]
    pairs = list(self_made(tools, stories, chance))
    print("real", len(tools), "tools", len(pairs), "pairs")
    pairs += (written := list(wished(tools)))
    print("written", len(written), "pairs")
    for name in SUPERVISED[:0] if small else SUPERVISED:
        _add_set(data / "search" / "train" / name, tools, pairs, chance, _needed(measured))
    tools += kinds_of_tools()
    pairs += (said_in_passing := list(phrased(tools, _EVERYDAY)))
    print("said in passing", len(said_in_passing), "pairs")
    chance.shuffle(pairs)
    print("all", len(tools), "tools", len(pairs), "pairs")
    entries = vocabulary(tools, model)
    (pack / "vocabulary.json").write_text(json.dumps(entries, ensure_ascii=False), encoding="utf-8")
    encoder, table = _cutters(model, [piece for piece, _ in entries])
    left_out = {"negatives": look_alikes(tools, chance), "folds": folds_without(tools)}
    _write(pack / "tools.npz", _of_tools(tools, encoder, table) | left_out)
    _write(pack / "pairs.npz", _of_pairs(pairs, encoder, table, chance))
    _write(pack / "meanings.npz", _both("word", [word for word, _ in said], encoder, table)
           | _both("meaning", [text for _, text in said], encoder, table))  # fmt: skip
    _write(pack / "rows.npz", _ragged("row", [encoder(text) for _, text in entries]))
    for name, path in measured.items():
        if small and name not in {"apibank", "mcpproxy_golden"}:
            continue
        _write(pack / f"set_{name}.npz", _of_set(path, encoder, table))
    _write(pack / "encoder.npz", _halves(load_file(model / "model.safetensors")))
    (pack / "config.json").write_text((model / "config.json").read_text(encoding="utf-8"), encoding="utf-8")


def _halves(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Weights in half precision, all first bytes before all second ones, since they compress better apart."""
    return {
        name: np.stack(
            [weight.astype(np.float16).view(np.uint8).reshape(*weight.shape, 2)[..., byte] for byte in (0, 1)]
        )
        for name, weight in weights.items()
        if weight.dtype == np.float32
    }


def vocabulary(tools: Iterable[Described], model: Path) -> list[tuple[str, str]]:
    """The rows of the table, each with the text that its first vector is made of."""
    pieces = (model / "vocab.txt").read_text(encoding="utf-8").split("\n")
    latin = [piece for piece in pieces if piece.removeprefix("##").isalnum() and piece.isascii()]
    known, words, letters = set(latin), Counter[str](), Counter[str]()
    for tool in tools:
        text = fold(" ".join(tool.fields)).lower()
        runs = set("".join(letter if letter.isalnum() else " " for letter in text).split())
        words.update(run for run in runs if run.isascii() and run.isalpha() and 3 <= len(run) <= 24)
        letters.update({letter for run in runs for letter in run if letter >= "\u3040"})
    common = sorted(words.items(), key=lambda pair: (-pair[1], pair[0]))
    new = [word for word, seen in common if seen >= _LEAST_SEEN and word not in known][:_NEW_WORDS]
    entries = [(piece, LEXICON.get(piece, piece)) for piece in latin] + [
        (word, LEXICON.get(word, word)) for word in new
    ]
    entries += [(word, english) for word, english in LEXICON.items() if word not in known and word not in new]
    held = {piece for piece, _ in entries}
    entries += [(one, one) for one, seen in sorted(letters.items()) if seen >= _LEAST_CJK and one not in held]
    print("rows", len(latin), "latin", len(new), "words", len(entries), "in all")
    return entries


def _needed(measured: dict[str, Path]) -> frozenset[str]:
    """Tools that a query of the measured sets asks for."""
    return frozenset(
        id_ for path in measured.values() for row in read_rows(path / "queries.jsonl") for id_ in row["relevant"]
    )


def _add_set(
    folder: Path, tools: list[Described], pairs: list[Pair], chance: random.Random, barred: frozenset[str]
) -> None:
    places = {tool.id: place for place, tool in enumerate(tools) if tool.source == folder.name.removesuffix("_multi")}
    if not places:
        added = [tool for tool in set_tools(folder) if tool.id not in barred]
        places = {tool.id: len(tools) + place for place, tool in enumerate(added)}
        tools.extend(added)
    made = list(supervised(read_rows(folder / "queries.jsonl"), places, chance, barred=barred))
    print(folder.name, len(places), "tools", len(made), "pairs")
    pairs.extend(made)


def _cutters(model: Path, pieces: Sequence[str]) -> tuple[Cut, Cut]:
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids, Pieces(pieces).rows


def _of_tools(tools: Sequence[Described], encoder: Cut, table: Cut) -> dict[str, np.ndarray]:
    return {
        key: value
        for place, field in enumerate(ASPECTS)
        for key, value in _both(field, [tool.fields[place] for tool in tools], encoder, table).items()
    }


def _of_pairs(pairs: Sequence[Pair], encoder: Cut, table: Cut, chance: random.Random) -> dict[str, np.ndarray]:
    """The table also sees queries with words in other languages; the encoder, which knows none, does not."""
    return (
        _ragged("query_encoder", [encoder(pair.english or pair.query)[:_LONG_QUERY] for pair in pairs])
        | _ragged(
            "query_table",
            [table(pair.query if pair.english else switched(pair.query, chance))[:_LONG_QUERY] for pair in pairs],
        )
        | {
            "tool": np.array([pair.tool for pair in pairs], dtype=np.int32),
            "hidden": np.array([pair.hidden for pair in pairs], dtype=np.int8),
            "written": np.array([pair.written for pair in pairs]),
            "beside": np.array([pair.beside for pair in pairs], dtype=np.int32),
        }
    )


def _of_set(folder: Path, encoder: Cut, table: Cut) -> dict[str, np.ndarray]:
    tools = set_tools(folder)
    places = {tool.id: place for place, tool in enumerate(tools)}
    rows = [row for row in read_rows(folder / "queries.jsonl") if row["relevant"]]
    queries = [row["query"] for row in rows]
    near, scores = _lexical(folder, queries, places)
    return (
        _of_tools(tools, encoder, table)
        | _both("query", queries, encoder, table)
        | _ragged("relevant", [[places[id_] for id_ in row["relevant"] if id_ in places] for row in rows])
        | {"near": near, "scores": scores}
    )


def _lexical(folder: Path, queries: Sequence[str], places: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """For each query the tools that share words with it, best first, and their scores; -1 where there are no more."""
    index = LexicalIndex(set_documents(folder))
    near = np.full((len(queries), _LEXICAL_KEPT), -1, dtype=np.int32)
    scores = np.zeros((len(queries), _LEXICAL_KEPT), dtype=np.float32)
    for place, query in enumerate(queries):
        best = sorted(index.scores(query).items(), key=lambda pair: -pair[1])[:_LEXICAL_KEPT]
        near[place, : len(best)] = [places[id_] for id_, _ in best]
        scores[place, : len(best)] = [score for _, score in best]
    return near, scores


def _both(name: str, texts: Sequence[str], encoder: Cut, table: Cut) -> dict[str, np.ndarray]:
    return _ragged(f"{name}_encoder", [encoder(text) for text in texts]) | _ragged(
        f"{name}_table", [table(text) for text in texts]
    )


def _ragged(name: str, lists: Sequence[Sequence[int]]) -> dict[str, np.ndarray]:
    """Lists of unequal length as one array, and where each ends."""
    flat = np.fromiter((each for row in lists for each in row), dtype=np.uint16)
    return {name: flat, f"{name}_ends": np.cumsum([len(row) for row in lists], dtype=np.int32)}


def _write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    np.savez_compressed(path, **arrays)  # pyright: ignore[reportArgumentType]
    print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:5]), small="small" in sys.argv[5:])
