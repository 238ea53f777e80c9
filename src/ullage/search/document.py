"""Documents, embedders, hits and the index protocol.

A document is the text of one tool, field by field. What a field weighs, the index knows; how it becomes terms,
`words`. Nothing here fails on a schema that is broken: what cannot be read is not searched.

The seam between search by meaning and whatever knows meanings: the table that ships with the package, or an encoder.
Vectors of documents outlive a process; those of another edition say nothing about this one's queries.

The values that a search returns: a hit, how the query named it, and what gave it its score: words, meaning, use.

The seam for whoever searches other things than tools: passages of a session, passages of files. An index of any kind
holds documents and says how near each is to a query. None is implemented here.

As bytes that can be checked: a mark of the edition, the numbers in half precision, a sum over both. Whoever reads gets
the vector, or None where it is of another edition or was damaged: then it has to be made again. Where the bytes lie is
not known here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol
from zlib import crc32

from ullage.errors import Unavailable

if TYPE_CHECKING:
    from ullage.tool import Json, JsonObject, Tool

__all__ = [
    "Document",
    "Embedder",
    "EmbedderFailed",
    "Field",
    "Hit",
    "Index",
    "Named",
    "Reason",
    "Why",
    "WordVectors",
    "document_of",
    "packed",
    "unpacked",
    "words_of",
]

_DEPTH = 3
"""How far into nested objects and lists parameters are read. Beyond it lies detail that no query names."""
_PARAMETERS = 200
"""Read from one tool at the most, so that no server can make the index dear."""
_LONG = 20_000
"""Characters read from one field; the longest description of a real tool is far below."""


class Field(Enum):
    """The fields of a document, in the order in which they are indexed."""

    SERVER = "server"
    NAME = "name"
    TITLE = "title"
    DESCRIPTION = "description"
    PARAMETER_NAMES = "parameter names"
    PARAMETER_DESCRIPTIONS = "parameter descriptions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The text of one tool. Documents with equal ids are the same document, one newer than the other."""

    id: str
    name: str
    server: str = ""
    title: str = ""
    description: str = ""
    parameter_names: tuple[str, ...] = ()
    parameter_descriptions: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other names that it goes by, such as the one it is listed under. Known when asked for, not searched for words."""

    def texts(self) -> tuple[str, ...]:
        """One text a field, in the order of `Field`."""
        return tuple(
            text[:_LONG]
            for text in (
                self.server,
                self.name,
                self.title,
                self.description,
                " ".join(self.parameter_names),
                "\n".join(self.parameter_descriptions),
            )
        )


def document_of(tool: "Tool", *, server: str = "", document_id: str | None = None) -> Document:
    """The document of a tool; its id is the tool's name unless another is given."""
    parameters = list(_first(_parameters(tool.input_schema, _DEPTH)))
    return Document(
        id=tool.name if document_id is None else document_id,
        name=tool.name,
        server=server,
        title=tool.title or "",
        description=tool.description or "",
        parameter_names=tuple(name for name, _ in parameters),
        parameter_descriptions=tuple(text for _, text in parameters if text),
        aliases=tool.aliases,
    )


def _first(parameters: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for _, parameter in zip(range(_PARAMETERS), parameters, strict=False):
        yield parameter


def _parameters(schema: "JsonObject", depth: int) -> Iterator[tuple[str, str]]:
    """Name and description of each parameter, an object's before those inside it."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not depth:
        return
    for name, inner in properties.items():
        text = inner.get("description") if isinstance(inner, dict) else None
        description = text if isinstance(text, str) else ""
        yield name, description
        yield from _inside(inner, depth - 1)


def _inside(schema: "Json", depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(schema, dict):
        yield from _parameters(schema, depth)
        items = schema.get("items")
        if isinstance(items, dict):
            yield from _parameters(items, depth)


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]


_MARK = 8
_SUM = 4


def packed(vector: "Vector", edition: str) -> bytes:
    """Half precision moves a nearness by less than a thousandth."""
    body = _mark(edition) + vector.astype("<f2").tobytes()
    return body + crc32(body).to_bytes(_SUM, "little")


def unpacked(data: bytes, edition: str) -> "Vector | None":
    # Not at the top: numpy takes a tenth of a second, and who only counts tokens or serves a list never needs it.
    import numpy as np

    body = data[:-_SUM]
    if not body.startswith(_mark(edition)) or len(body) % 2 or crc32(body).to_bytes(_SUM, "little") != data[-_SUM:]:
        return None
    return np.frombuffer(body, dtype="<f2", offset=_MARK).astype(np.float32)


def _mark(edition: str) -> bytes:
    return blake2b(edition.encode(), digest_size=_MARK).digest()


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.intp]
    Vectors = NDArray[np.float32]
    """One a row, each of length one; shorter where little of a text is known, and of zeros where nothing is."""


class EmbedderFailed(Unavailable):
    """An embedder raised what it should not. Whoever searches can do without it."""

    def __init__(self, embedder: "Embedder", error: Exception) -> None:
        super().__init__(f"an embedder failed: {str(error) or type(error).__name__}")
        self.embedder = embedder


class Embedder(Protocol):
    """Says the same of the same text, on every machine and in every thread."""

    @property
    def edition(self) -> str:
        """Names the weights and the way they are used: changes whenever a vector would."""
        ...

    @property
    def weight(self) -> float:
        """What nearness weighs beside words: the best score by words at which both have half of a fused score."""
        ...

    def embed_documents(self, documents: Sequence[Document]) -> "Vectors":
        """A row for each document, in their order."""
        ...

    def embed_query(self, query: str) -> "Vectors":
        """The first row is the whole query; where it has several sentences, a row for each of them follows."""
        ...


class WordVectors(Protocol):
    """Vectors of single words, known by the numbers of their rows."""

    @property
    def feature_weights(self) -> tuple[float, ...]:
        """What the fused score weighs in `rerank`, then each of its `FEATURES` in their order."""
        ...

    def query_words(self, query: str) -> "tuple[Rows, Vectors]":
        """The rows of a query, each once and in order, and how much each tells in a query."""
        ...

    def document_words(self, document: Document) -> "tuple[Rows, ...]":
        """The rows of each aspect of a document, each once and in order."""
        ...

    def nearness_of_words(self, asked: "Rows", rows: "Rows") -> "tuple[Vectors, Vectors]":
        """How near each row is to each that was asked for, a row each of these; and how long the vector of each is."""
        ...


def words_of(embedder: Embedder) -> WordVectors | None:
    """The vectors of single words behind an embedder; None for one that knows whole texts only."""
    words: WordVectors | None = getattr(embedder, "words", None)
    return words if words is not None and words.feature_weights else None


class Named(IntEnum):
    """Whether the query says a document's name. More comes before less, whatever the scores."""

    NO = 0
    IN_PART = 1
    """The whole query is part of the name, from the beginning of a word: `create_iss`."""
    AMONG_OTHERS = 2
    """A word of the query can only be this name: `file a bug with create_issue`."""
    WHOLLY = 3
    """The whole query is the name, in whatever spelling: `github.createIssue`."""
    EXACTLY = 4
    """The query is the name letter for letter, and so comes before other spellings of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """What one term in one field gave. The reasons of a hit sum to what words gave it."""

    term: str
    """As indexed: lower case and stemmed."""
    field: Field
    score: float
    asked: bool
    """False where the query had not the term but a kin word of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """What gave a hit its score: words, meaning, the closer look and use sum to it."""

    words: float
    reasons: tuple[Reason, ...]
    """What each term in each field gave to that, greatest first."""
    meaning: float = 0.0
    nearness: float | None = None
    """Of meanings: 1 for the same, about 0 for what has nothing to do with one another. None where meaning is not known
    to the index."""
    share: float = 0.0
    """What meaning could give to this query's hits at the most; words could give the rest."""
    closer: float = 0.0
    """What comparing it with the query word by word and clause by clause added; 0 where it was not among the best."""
    use: float = 0.0
    """What having been of use before added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A document that is near the query."""

    document: Document
    score: float
    """Comparable within one query only. 0 where the name alone matched."""
    named: Named
    explain: Callable[[], Why] = field(repr=False, compare=False)
    """Why, worked out when asked for, of the index as it was at the search."""

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """What each term in each field gave to the score, greatest first."""
        return self.explain().reasons


class Index(Protocol):
    """Holds documents by id. The same documents, added in the same order, give the same scores on every machine."""

    def add(self, document: Document) -> None:
        """Takes a document in; one with the same id is replaced and keeps its place."""
        ...

    def remove(self, document_id: str) -> None:
        """Lets a document go; one that is not there is no error."""
        ...

    def scores(self, query: str) -> Mapping[str, float]:
        """How near each document is, by id, all above 0 and on one scale within this query.

        A document left out is one that the index has nothing to say for. An empty query has no scores.
        """
        ...
