"""Search by words and by meaning."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use
from ullage.options import encoder_lacks

if TYPE_CHECKING:
    from .document import Document, Field, document_of
    from .embedder import Embedder, EmbedderFailed
    from .hit import Hit, Named, Reason, Why
    from .hybrid import HybridIndex
    from .index import Index
    from .lexical import LexicalIndex
    from .loading import load_encoder, load_table
    from .uses import MOST_BONUS, MOST_USES, Need, Use, Used, Uses, need_of, restrained
    from .vectors import packed, unpacked
    from .words import parts, terms
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Document": "document",
            "Embedder": "embedder",
            "EmbedderFailed": "embedder",
            "Field": "document",
            "Hit": "hit",
            "HybridIndex": "hybrid",
            "Index": "index",
            "LexicalIndex": "lexical",
            "MOST_BONUS": "uses",
            "MOST_USES": "uses",
            "Named": "hit",
            "Need": "uses",
            "Reason": "hit",
            "Use": "uses",
            "Used": "uses",
            "Uses": "uses",
            "Why": "hit",
            "document_of": "document",
            "load_encoder": "loading",
            "load_table": "loading",
            "need_of": "uses",
            "packed": "vectors",
            "parts": "words",
            "restrained": "uses",
            "terms": "words",
            "unpacked": "vectors",
        },
    )

__all__ = [
    "MOST_BONUS",
    "MOST_USES",
    "Document",
    "Embedder",
    "EmbedderFailed",
    "Field",
    "Hit",
    "HybridIndex",
    "Index",
    "LexicalIndex",
    "Named",
    "Need",
    "Reason",
    "Use",
    "Used",
    "Uses",
    "Why",
    "document_of",
    "encoder_lacks",
    "load_encoder",
    "load_table",
    "need_of",
    "packed",
    "parts",
    "restrained",
    "terms",
    "unpacked",
]
