"""Search by words and by meaning, over tool definitions and other short documents."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use
from ullage.options import MOST_USES, encoder_lacks

if TYPE_CHECKING:
    from .document import (
        Document,
        Embedder,
        EmbedderFailed,
        Field,
        Hit,
        Index,
        Named,
        Reason,
        Why,
        document_of,
        packed,
        unpacked,
    )
    from .load_embedder import load_encoder, load_table
    from .search_index import (
        MOST_BONUS,
        HybridIndex,
        LexicalIndex,
        Need,
        Use,
        Used,
        Uses,
        need_of,
        restrained,
    )
    from .stemming_and_synonyms import parts, terms
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Document": "document",
            "Embedder": "document",
            "EmbedderFailed": "document",
            "Field": "document",
            "Hit": "document",
            "HybridIndex": "search_index",
            "Index": "document",
            "LexicalIndex": "search_index",
            "MOST_BONUS": "search_index",
            "Named": "document",
            "Need": "search_index",
            "Reason": "document",
            "Use": "search_index",
            "Used": "search_index",
            "Uses": "search_index",
            "Why": "document",
            "document_of": "document",
            "load_encoder": "load_embedder",
            "load_table": "load_embedder",
            "need_of": "search_index",
            "packed": "document",
            "parts": "stemming_and_synonyms",
            "restrained": "search_index",
            "terms": "stemming_and_synonyms",
            "unpacked": "document",
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
