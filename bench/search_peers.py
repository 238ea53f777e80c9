"""How do others rank tools?

Four ways, written anew after their sources. All get what is best for them: the server's name before the tool's, as
behind a gateway, and where two questions can be asked, a description and keywords, the query as both.

mcp-optimizer embeds with bge-small-en-v1.5, which no package index offers, and ToolHive with whatever it is given;
all-MiniLM-L6-v2 stands in for both (`search_minilm`). They answer with eight tools at the most, half of them by
meaning: that is what their users get, so what nDCG@10 and recall@10 say of them is said of eight.
"""

import math
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from search_minilm import vectors_of
from search_sets import DEPTH, Row, Search, Set

__all__ = ["embed_all", "fastmcp", "fastmcp_loop", "fts5", "mcp_optimizer", "toolhive"]

_ANSWERED = 8
_BY_MEANING = 4
_FARTHEST = 1.0
"""Beyond this distance nothing is found by meaning."""
_COMMON_WORDS = (
    "name description schema input output type properties required title id tool server meta data content text value "
    "field column table index key primary"
)
"""That both treat apart."""
_COMMON = frozenset(_COMMON_WORDS.split())

Places = list[int]


def fastmcp(tools: Sequence[Row]) -> Search:
    """BM25 with k1 1.5 and b 0.75 over the words of name, description and parameters.

    Scores as fastmcp's `server/transforms/search/bm25.py` does (github.com/jlowin/fastmcp at a272dfa): lower case, runs
    of a to z and digits, single letters left out. Answers with ten where fastmcp's own default is five. Its loop over
    every tool is replaced by postings; `fastmcp_loop` has it for times.
    """
    counts, lengths, average = _fastmcp_counts(tools)
    postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, count in enumerate(counts):
        for word, times in count.items():
            postings[word].append((place, times))

    def search(query: str) -> list[str]:
        scores: dict[int, float] = defaultdict(float)
        for word in _fastmcp_words(query):
            found = postings.get(word, ())
            rarity = _fastmcp_rarity(len(tools), len(found))
            for place, times in found:
                scores[place] += rarity * _fastmcp_amount(times, lengths[place] / average)
        return [tools[place]["id"] for place in sorted(scores, key=lambda place: (-scores[place], place))[:DEPTH]]

    return search


def fastmcp_loop(tools: Sequence[Row]) -> Search:
    """The same, and as there a look at every tool for every word and a sort of them all."""
    counts, lengths, average = _fastmcp_counts(tools)
    holders = Counter(word for count in counts for word in count)

    def search(query: str) -> list[str]:
        scores = [0.0] * len(tools)
        for word in _fastmcp_words(query):
            if word in holders:
                rarity = _fastmcp_rarity(len(tools), holders[word])
                for place, count in enumerate(counts):
                    times = count.get(word, 0)
                    if times:
                        scores[place] += rarity * _fastmcp_amount(times, lengths[place] / average)
        ranked = sorted(range(len(tools)), key=scores.__getitem__, reverse=True)
        return [tools[place]["id"] for place in ranked[:DEPTH] if scores[place] > 0]

    return search


def _fastmcp_counts(tools: Sequence[Row]) -> tuple[list[Counter[str]], list[int], float]:
    counts = [Counter(_fastmcp_words(" ".join(_fastmcp_texts(row)))) for row in tools]
    lengths = [count.total() for count in counts]
    return counts, lengths, sum(lengths) / len(lengths)


def _fastmcp_words(text: str) -> list[str]:
    return [word for word in re.findall("[a-z0-9]+", text.lower()) if len(word) > 1]


def _fastmcp_texts(row: Row) -> Iterator[str]:
    yield _prefixed(row)
    yield row.get("description") or ""
    schema = row.get("inputSchema")
    for name, inner in ((schema.get("properties") if isinstance(schema, dict) else None) or {}).items():
        yield name
        yield str((inner.get("description") if isinstance(inner, dict) else None) or "")


def _fastmcp_rarity(number: int, holders: int) -> float:
    return math.log((number - holders + 0.5) / (holders + 0.5) + 1)


def _fastmcp_amount(times: int, length: float) -> float:
    return times * 2.5 / (times + 1.5 * (0.25 + 0.75 * length))


def fts5(tools: Sequence[Row]) -> Search:
    """SQLite's full-text index with the Porter tokenizer, any word of the query, ranked by its bm25()."""
    match = _full_text(tools, lambda row: (row.get("server") or "", row["name"], row.get("description") or ""), DEPTH)

    def search(query: str) -> list[str]:
        return [tools[place]["id"] for place in match(_any_of(dict.fromkeys(re.findall(r"\w+", query))))]

    return search


def mcp_optimizer(tools: Sequence[Row]) -> Search:
    """Four by meaning, then four by words that are not among them.

    As `src/mcp_optimizer/db/base_tool_ops.py` does (github.com/StacklokLabs/mcp-optimizer at 033e428, with its
    `ingestion.py` and first migration): embeds server, name and first sentence. By words it asks for any of them, but
    for the whole query as one phrase where it is one word or has a common one. What was found by words comes in the
    order in which tools were added, since their scores are dropped on the way (of tools added within one second the
    order is anybody's guess there).
    """
    near = _nearest([_optimizer_text(row) for row in tools], lambda distance: distance < _FARTHEST)
    match = _full_text(
        tools, lambda row: (row.get("server") or "", row["name"], row.get("description") or ""), _ANSWERED - _BY_MEANING
    )

    def search(query: str) -> list[str]:
        words = query.split()
        phrase = len(words) == 1 or any(word.lower() in _COMMON for word in words)
        by_words = match(_quoted(" ".join(words)) if phrase else _any_of(words))
        return _merged(tools, near(query), sorted(by_words))

    return search


def _optimizer_text(row: Row) -> str:
    parts = [f"Server: {row.get('server') or ''}", f"Tool: {row['name']}"]
    if row.get("description"):
        first, *_ = row["description"].replace("\n", " ").strip().split(". ")
        parts.append(f"Description: {first}")
    return " | ".join(parts)


def toolhive(tools: Sequence[Row]) -> Search:
    """Four by meaning, then four by words that are not among them.

    As ToolHive's vMCP does in `pkg/vmcp/optimizer/internal/toolstore/sqlite_store.go` (github.com/stacklok/toolhive at
    e25de16): embeds name and description, and by words asks for any of them, common ones left out. No keywords are
    given, so that the words are those of the description, as there.
    """
    near = _nearest([_toolhive_text(row) for row in tools], lambda distance: distance <= _FARTHEST)
    match = _full_text(tools, lambda row: (_prefixed(row), row.get("description") or ""), _ANSWERED - _BY_MEANING)

    def search(query: str) -> list[str]:
        words = {word.lower(): word for word in reversed(query.split())}
        by_words = match(_any_of(word for lower, word in words.items() if lower not in _COMMON))
        return _merged(tools, near(query), by_words)

    return search


def _toolhive_text(row: Row) -> str:
    return f"name: {_prefixed(row)} description: {row.get('description') or ''}"


def embed_all(sets: Iterable[Set]) -> None:
    """Makes every vector that the two merges will ask for, together."""
    texts = list[str]()
    for each in sets:
        texts += (query.text for query in each.queries)
        texts += (text_of(row) for row in each.tools for text_of in (_optimizer_text, _toolhive_text))
    vectors_of(texts)


def _prefixed(row: Row) -> str:
    return f"{row['server']}_{row['name']}" if row.get("server") else row["name"]


def _full_text(tools: Sequence[Row], columns: Callable[[Row], Sequence[str]], limit: int) -> Callable[[str], Places]:
    """The places of the best tools for an expression of FTS5, all columns alike."""
    rows = [(place, *columns(row)) for place, row in enumerate(tools)]
    names = [f"column{number}" for number in range(1, len(rows[0]))]
    database = sqlite3.connect(":memory:")
    database.execute(f"create virtual table tool using fts5({', '.join(names)}, tokenize = 'porter')")
    database.executemany(
        f"insert into tool (rowid, {', '.join(names)}) values (?{', ?' * len(names)})",
        rows,
    )
    asked = f"select rowid from tool where tool match ? order by rank limit {limit}"

    def match(expression: str) -> Places:
        return [place for (place,) in database.execute(asked, (expression,))] if expression else []

    return match


def _any_of(words: Iterable[str]) -> str:
    return " OR ".join(map(_quoted, words))


def _quoted(words: str) -> str:
    return '"' + words.replace('"', '""') + '"' if words else ""


def _nearest(texts: Sequence[str], is_near: Callable[[float], bool]) -> Callable[[str], Places]:
    vectors = vectors_of(texts)

    def near(query: str) -> Places:
        distances = 1 - vectors @ vectors_of([query])[0]
        nearest = np.argsort(distances, kind="stable")[:_BY_MEANING].tolist()
        return [place for place in nearest if is_near(distances[place])]

    return near


def _merged(tools: Sequence[Row], by_meaning: Places, by_words: Places) -> list[str]:
    return [tools[place]["id"] for place in dict.fromkeys((*by_meaning, *by_words))][:_ANSWERED]
