"""What is near this query?"""

from ullage.options import encoder_lacks

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
