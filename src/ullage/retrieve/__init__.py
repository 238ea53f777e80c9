"""Searches folders of text files and returns passages with citations, within a token budget."""

from .folder_files import EXCLUDED, Bounds, FileRoots, Image, RetrieveSettings
from .passages import PassageIndex
from .retriever import META, PREFIX, TOOL, FolderRetriever, Found, Passage, Place, Query, Retriever, RetrieveSource

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
