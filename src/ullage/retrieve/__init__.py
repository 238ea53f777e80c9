"""Searches folders of text files and returns passages."""

from .file_roots import FileRoots, Image
from .folder import FolderRetriever
from .handles import PREFIX
from .postings import PassageIndex
from .retriever import Found, Passage, Place, Query, Retriever
from .settings import EXCLUDED, Bounds, RetrieveSettings
from .source import META, TOOL, RetrieveSource

__all__ = [
    "EXCLUDED",
    "META",
    "PREFIX",
    "TOOL",
    "Bounds",
    "FileRoots",
    "FolderRetriever",
    "Found",
    "Image",
    "Passage",
    "PassageIndex",
    "Place",
    "Query",
    "RetrieveSettings",
    "RetrieveSource",
    "Retriever",
]
