"""What is near this query?"""

from .document import Document, Field, document_of
from .hit import Hit, Named, Reason
from .index import Index
from .lexical import LexicalIndex
from .words import terms

__all__ = ["Document", "Field", "Hit", "Index", "LexicalIndex", "Named", "Reason", "document_of", "terms"]
