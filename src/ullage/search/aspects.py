"""What of a document says what it means?

Five texts, in the order in which weights were trained on them: the server's name without words that every server has,
the tool's name, the first sentence of its description, what follows it, the names of parameters. How they become a
vector is not known here. Whatever changes here makes other weights necessary.
"""

import re

from .document import Document
from .words import parts

__all__ = ["ASPECTS", "aspects", "sentences"]

ASPECTS = ("server", "name", "head", "rest", "parameters")
_LONG_NAME = 500
_LONG_DESCRIPTION = 20_000
"""Characters read, so that no server can make a vector dear."""
_LONG_HEAD = 240
_LONG_REST = 1_200
_MOST_PARAMETERS = 20
_SAYS_NOTHING = frozenset({"mcp", "server", "smithery", "api"})
_SENTENCE = re.compile(r"(?<=[.!?。])\s+|\n\s*\n|\n\s*[-*•]\s+|。")


def aspects(document: Document) -> tuple[str, ...]:
    """One text each, in the order of `ASPECTS`."""
    head, rest = _parted(document.description[:_LONG_DESCRIPTION])
    return (
        " ".join(word for word in _words(_without_owner(document.server)) if word not in _SAYS_NOTHING),
        " ".join(_words(document.name)),
        head,
        rest[:_LONG_REST],
        " ".join(" ".join(_words(name)) for name in document.parameter_names[:_MOST_PARAMETERS]),
    )


def sentences(text: str) -> list[str]:
    """The sentences and the points of a list, each on one line."""
    return [" ".join(sentence.split()) for sentence in _SENTENCE.split(text.strip()) if sentence and sentence.strip()]


def _parted(description: str) -> tuple[str, str]:
    """The first sentence, and what follows it."""
    first, *others = sentences(description) or [""]
    return first[:_LONG_HEAD], " ".join((first[_LONG_HEAD:], *others)).strip()


def _without_owner(server: str) -> str:
    """`@owner/name`, as registries write it, is `name`."""
    return server.split("/", 1)[-1] if server.startswith("@") else server


def _words(name: str) -> list[str]:
    return parts(name[:_LONG_NAME])
