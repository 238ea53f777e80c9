"""Neural sentence encoder for `ullage[encoder]`.

`Encoder` is an optional, more accurate embedder: a small neural network of BERT's kind, run by any library that can.
Texts are encoded one at a time: the network's eight-bit arithmetic takes its scale from the whole input, so a text
would get another vector in a batch; and batches, padded to their longest text, save nothing. It reads no file and
imports no library that runs networks.

`WordPiece` splits text as the network's tokenizer does (uncased): control characters are removed, ideographs and
punctuation are separated, and text is lower-cased without accents; then each word is split into the longest known
pieces from its beginning, with one unknown piece for a word that has none. It works with any vocabulary of that kind.

`Together` combines the encoder with the table: the encoder understands English better, and the table knows words of
other languages. A vector of both is their weighted concatenation, so that similarity is the weighted sum of both. For
text that is not in Latin letters the table is used alone.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .document import Document, Embedder, WordVectors, words_of
from .stemming_and_synonyms import apart, asked, aspects

__all__ = ["Encoder", "Network", "Together", "WordPiece"]

_BEGIN, _END, _UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
_LONG_WORD = 100
"""Letters beyond which a word counts as unknown."""
_REMEMBERED = 32_768
"""Words whose pieces are cached; when full, the cache is cleared."""
_ASCII = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
_CONTROL = dict.fromkeys(code for code in (*range(32), 127) if chr(code) not in "\t\n\r")
_IDEOGRAPHS = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f]"
)


class WordPiece:
    """Splits texts by one vocabulary, in which a piece that continues a word begins with `##`."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(vocabulary)}
        self._begin, self._end, self._unknown = (self._numbers[piece] for piece in (_BEGIN, _END, _UNKNOWN))
        self._known: dict[str, tuple[int, ...]] = {}

    def numbers(self, text: str, most: int) -> list[int]:
        """Return the piece numbers of a text, at most `most`, including the marks of beginning and end."""
        found = list[int]()
        for word in _words(text):
            known = self._known.get(word)
            found += self._learn(word) if known is None else known
            if len(found) > most - 2:
                break
        return [self._begin, *found[: most - 2], self._end]

    def _learn(self, word: str) -> tuple[int, ...]:
        if len(word) > _LONG_WORD:
            return (self._unknown,)
        pieces = self._cut(word)
        numbers = (self._unknown,) if pieces is None else pieces
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[word] = numbers
        return numbers

    def _cut(self, word: str) -> tuple[int, ...] | None:
        """Return the pieces of a word; None where some part of it is not a piece."""
        numbers, start = list[int](), 0
        while start < len(word):
            for end in range(len(word), start, -1):
                number = self._numbers.get(("##" if start else "") + word[start:end])
                if number is not None:
                    numbers.append(number)
                    start = end
                    break
            else:
                return None
        return tuple(numbers)


def _words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII.findall(text.translate(_CONTROL).lower())
    letters = apart(_IDEOGRAPHS.sub(r" \g<0> ", "".join(map(_clean, text))), "NFD")
    bare = "".join(letter for letter in letters if unicodedata.category(letter) != "Mn")
    # Lower-cased letter by letter, so that a sigma at the end of a word is not converted to another letter.
    return "".join(_alone(letter) for letter in bare.replace("Σ", "σ").lower()).split()


def _clean(letter: str) -> str:
    if letter in "\t\n\r":
        return " "
    return "" if letter == "\ufffd" or unicodedata.category(letter) in {"Cc", "Cf", "Co"} else letter


def _alone(letter: str) -> str:
    if letter.isascii():
        return letter if letter.isalnum() or letter.isspace() else f" {letter} "
    return f" {letter} " if unicodedata.category(letter).startswith("P") else letter


_SHARE = 0.65
"""The encoder's share. With more, other languages are found less well; with less, English is."""
_BOTH = _SHARE**0.5, (1 - _SHARE) ** 0.5
_TABLE = 0.0, (1 - _SHARE) ** -0.5
_LATIN = "\u0250"
"""The first letter after the Latin ones."""

_Numbers = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """An `Embedder` of vectors. See the module's description."""

    encoder: Embedder
    table: Embedder

    @property
    def edition(self) -> str:
        return f"together-{_SHARE}-{self.encoder.edition}-{self.table.edition}"

    @property
    def weight(self) -> float:
        return self.encoder.weight

    @property
    def words(self) -> WordVectors | None:
        """The table's word vectors, because the encoder embeds whole texts only."""
        return words_of(self.table)

    def embed_documents(self, documents: Sequence[Document]) -> _Numbers:
        of_encoder, of_table = _BOTH
        return _joined(
            of_encoder * self.encoder.embed_documents(documents), of_table * self.table.embed_documents(documents)
        )

    def embed_query(self, query: str) -> _Numbers:
        # A row made by the table alone counts fully beside documents in which the table has a part.
        weights = [_BOTH if _is_latin(text) else _TABLE for text in asked(query)]
        of_encoder, of_table = np.array(weights, dtype=np.float32).T[:, :, None]
        by_table = self.table.embed_query(query)
        # Where the table hardly finds a meaning, the encoder's vector, which depends on letters too, is reduced as
        # well.
        believed = np.sqrt((by_table * by_table).sum(axis=1, keepdims=True))
        believed[believed == 0] = 1
        return _joined(of_encoder * believed * self.encoder.embed_query(query), of_table * by_table)


def _joined(first: _Numbers, second: _Numbers) -> _Numbers:
    return np.hstack((first, second)).astype(np.float32)


def _is_latin(text: str) -> bool:
    letters = [letter for letter in text if letter.isalpha()]
    return 2 * sum(letter < _LATIN for letter in letters) >= len(letters)


_WAY = 1
"""Version of the method; increase it whenever the same network would give another vector."""
_LONGEST = 128
"""Pieces of a text that are encoded."""
_NUMBERS = 384
_WEIGHT = 12.0
"""Weight of similarity; anything from 10 to 20 works as well. Higher than the table's, because it is right more
often."""


class Network(Protocol):
    """The part of an onnxruntime session that is used."""

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, NDArray[np.int64]], /
    ) -> Sequence[_Numbers]:
        """Run the network. The first output has a row a text, each of length one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """An `Embedder` of vectors. See the module's description."""

    digest: str
    """Digest of the network's file."""
    pieces: WordPiece
    network: Network

    @property
    def edition(self) -> str:
        return f"encoder-{_WAY}-{self.digest}"

    @property
    def weight(self) -> float:
        return _WEIGHT

    def embed_documents(self, documents: Sequence[Document]) -> _Numbers:
        return self._embed(" ".join(filter(None, aspects(document))) for document in documents)

    def embed_query(self, query: str) -> _Numbers:
        return self._embed(asked(query))

    def _embed(self, texts: Iterable[str]) -> _Numbers:
        found = list[_Numbers]()
        for text in texts:
            numbers = self.pieces.numbers(text, _LONGEST)
            if len(numbers) <= 2:
                found.append(np.zeros(_NUMBERS, dtype=np.float32))
                continue
            read = np.array([numbers], dtype=np.int64)
            found.append(self.network.run(None, {"input_ids": read, "attention_mask": np.ones_like(read)})[0][0])
        return np.stack(found) if found else np.zeros((0, _NUMBERS), dtype=np.float32)
