"""Documents, embedders, hits and the index protocol.

A `Document` is the text of one tool, field by field. The weights of fields are in `postings`, the splitting into terms
in `stemming_and_synonyms`. A broken schema never raises: what cannot be read is not searched.

An `Embedder` is the interface of a model of meaning: the table that ships with the package, or a neural encoder.
Vectors of documents are stored beyond a process; those of another edition cannot be compared with the queries of this
one.

`packed` and `unpacked` convert a vector to bytes that can be checked: a mark of the edition, the numbers in half
precision, and a checksum of both. `unpacked` returns None where the edition differs or the data is damaged; the vector
then has to be computed again. Storage of the bytes is the caller's task.

A `Hit` is one result of a search, and `Why` its score: words, meaning, reranking and use.

`Index` is the interface of an index over any kind of document: tools, passages of a session, passages of files. No
index is implemented here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Protocol
from zlib import crc32

from ullage.errors import Unavailable

if TYPE_CHECKING:
    from ullage.tool import JsonObject, Tool

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
"""Depth to which parameters in nested objects and lists are read. Queries name nothing below it."""
_PARAMETERS = 200
"""The most parameters read from one tool, so that no server can make the index expensive."""
_LONG = 20_000
"""Characters read from one field; the longest description of a real tool is far shorter."""


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
    """The text of one tool. Of two documents with equal ids, one is a newer version of the other."""

    id: str
    name: str
    server: str = ""
    title: str = ""
    description: str = ""
    parameter_names: tuple[str, ...] = ()
    parameter_descriptions: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other names of the tool, such as the one under which it is listed. They match a query that gives the name, and
    are not searched for words."""

    def texts(self) -> tuple[str, ...]:
        """Return one text for each field, in the order of `Field`."""
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
    """Return the document of a tool; its id is the tool's name unless another is given."""
    parameters = list(islice(_parameters(tool.input_schema, _DEPTH), _PARAMETERS))
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


def _parameters(schema: "JsonObject", depth: int) -> Iterator[tuple[str, str]]:
    """Yield name and description of each parameter, an object's before those inside it."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not depth:
        return
    for name, inner in properties.items():
        text = inner.get("description") if isinstance(inner, dict) else None
        description = text if isinstance(text, str) else ""
        yield name, description
        if isinstance(inner, dict):
            yield from _parameters(inner, depth - 1)
            items = inner.get("items")
            if isinstance(items, dict):
                yield from _parameters(items, depth - 1)


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]


_MARK = 8
_SUM = 4


def packed(vector: "Vector", edition: str) -> bytes:
    """Return a vector as bytes. Half precision changes a similarity by less than a thousandth."""
    body = _mark(edition) + vector.astype("<f2").tobytes()
    return body + crc32(body).to_bytes(_SUM, "little")


def unpacked(data: bytes, edition: str) -> "Vector | None":
    """Return the vector in bytes that `packed` made; None where they are of another edition or damaged."""
    # Imported here because numpy takes a tenth of a second, and is not needed to count tokens or serve a list.
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
    """Vectors, one a row, each of length one; shorter where little of a text is known, and all zeros where nothing
    is."""


class EmbedderFailed(Unavailable):
    """An embedder raised an unexpected error. A search can continue without it."""

    def __init__(self, embedder: "Embedder", error: Exception) -> None:
        super().__init__(f"an embedder failed: {str(error) or type(error).__name__}")
        self.embedder = embedder


class Embedder(Protocol):
    """Turns texts into vectors: the same for the same text, on every machine and in every thread."""

    @property
    def edition(self) -> str:
        """Identifier of the weights and of how they are used: changes whenever a vector would."""
        ...

    @property
    def weight(self) -> float:
        """The weight of similarity relative to words: the best score by words at which both contribute half of a fused
        score."""
        ...

    def embed_documents(self, documents: Sequence[Document]) -> "Vectors":
        """Return a row for each document, in their order."""
        ...

    def embed_query(self, query: str) -> "Vectors":
        """Return the vector of the whole query in the first row; for several sentences, a row for each of them
        follows."""
        ...


class WordVectors(Protocol):
    """Vectors of single words, identified by their row numbers."""

    @property
    def feature_weights(self) -> tuple[float, ...]:
        """The weight of the fused score in `Reranker`, then that of each of its features, in their order."""
        ...

    def query_words(self, query: str) -> "tuple[Rows, Vectors]":
        """Return the rows of a query, each once and in order, and how significant each is in a query."""
        ...

    def document_words(self, document: Document) -> "tuple[Rows, ...]":
        """Return the rows of each aspect of a document, each once and in order."""
        ...

    def nearness_of_words(self, asked: "Rows", rows: "Rows") -> "tuple[Vectors, Vectors]":
        """Return the similarity of each row to each of the `asked` rows, a row for each of these; and the length of the
        vector of each."""
        ...


def words_of(embedder: Embedder) -> WordVectors | None:
    """Return the vectors of single words behind an embedder; None for one that only embeds whole texts."""
    words: WordVectors | None = getattr(embedder, "words", None)
    return words if words is not None and words.feature_weights else None


class Named(IntEnum):
    """How the query names a document. Higher values rank first, whatever the scores."""

    NO = 0
    IN_PART = 1
    """The whole query is part of the name, from the beginning of a word: `create_iss`."""
    AMONG_OTHERS = 2
    """A word of the query can only be this name: `file a bug with create_issue`."""
    WHOLLY = 3
    """The whole query is the name, in any spelling: `github.createIssue`."""
    EXACTLY = 4
    """The query is exactly the name, and ranks before other spellings of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """The contribution of one term in one field. The reasons of a hit add up to its score by words."""

    term: str
    """As indexed: lower case and stemmed."""
    field: Field
    score: float
    asked: bool
    """False where the query does not contain the term, but a related one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The components of a hit's score: words, meaning, reranking and use add up to it."""

    words: float
    reasons: tuple[Reason, ...]
    """The contribution of each term in each field to the score by words, greatest first."""
    meaning: float = 0.0
    nearness: float | None = None
    """The similarity of meaning: 1 for the same, about 0 for unrelated texts. None where the index does not use
    meaning."""
    share: float = 0.0
    """The most that meaning could contribute for this query; words could contribute the rest."""
    closer: float = 0.0
    """The gain from comparing it with the query word by word and clause by clause; 0 where it was not among the
    candidates."""
    use: float = 0.0
    """The gain from previous use."""


@dataclass(slots=True)
class Hit:
    """A document found by a query. Not to be changed; it is not frozen because a search makes a hundred, and a frozen
    one takes four times as long to make."""

    document: Document
    score: float
    """The score, comparable within one query only. 0 where only the name matched."""
    named: Named
    explain: Callable[[], Why] = field(repr=False, compare=False)
    """Computes the components of the score on demand, from the index as it was at the search."""

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The contribution of each term in each field to the score, greatest first."""
        return self.explain().reasons


class Index(Protocol):
    """An index of documents by id. The same documents, added in the same order, give the same scores on every
    machine."""

    def add(self, document: Document) -> None:
        """Add a document; one with the same id is replaced and keeps its position."""
        ...

    def remove(self, document_id: str) -> None:
        """Remove a document; an unknown id is not an error."""
        ...

    def scores(self, query: str) -> Mapping[str, float]:
        """Return the score of each document found, by id, all above 0 and on one scale within this query.

        Documents that the index cannot score are left out. An empty query has no scores.
        """
        ...
