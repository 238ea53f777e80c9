"""Which words of a definition tell the model something?

Texts only: white space that carries nothing, titles and descriptions that repeat what stands beside them, and the first
sentence of a longer text. Nothing here looks at what a schema accepts.
"""

import re
from itertools import groupby

__all__ = ["first_sentence", "is_name", "is_said_in", "join_texts", "repeats", "tidy"]

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\da-zA-Z_]+")
_FENCE = "```"
_MARKUP = re.compile(r"^(?:<[^<>]*>|[#*_>`\s])+")
_SENTENCE = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!etc)(?<!vs)(?<!\b[A-Z])[.!?](?=\s|$)|[。！？]")
_BREAK = re.compile(r"\n\s*\n|\n\s*[-*#<•]|\n(?=[^\n]*:[ \t]*(?:\n|$))")
_PLAIN = re.compile(r"[\w\s]+\.?")
_ARTICLES = ("a", "an", "the")


def tidy(text: str) -> str:
    """The text without indentation common to all lines, trailing or doubled spaces, and blank lines in a row.

    Inside a fenced block, spaces within a line stay.
    """
    lines = text.strip().expandtabs(4).splitlines()
    margin = min((_indentation(line) for line in lines[1:] if line.strip()), default=0)
    fenced, kept = False, list[str]()
    for line in lines[:1] + [line[margin:] for line in lines[1:]]:
        fenced ^= line.lstrip().startswith(_FENCE)
        kept.append(line.rstrip() if fenced else _single_spaced(line))
    runs = ((blank, list(run)) for blank, run in groupby(kept, key=lambda line: not line))
    return "\n".join(line for blank, run in runs for line in (run[:1] if blank else run))


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _single_spaced(line: str) -> str:
    return " " * _indentation(line) + " ".join(line.split())


def repeats(text: str, *others: str) -> bool:
    """Whether every word of a short text already stands in the others."""
    said = {word for other in others for word in _words(other)} | {"".join(_words(other)) for other in others}
    return said.issuperset(_words(text))


def is_name(text: str, name: str) -> bool:
    """Whether a description is no more than the name: `The owner.` for `owner`, not `owner/repo` for `owner_repo`."""
    words = _words(text)
    bare = words[1:] if words[:1] and words[0] in _ARTICLES else words
    return _PLAIN.fullmatch(text) is not None and bare == _words(name)


def _words(text: str) -> list[str]:
    """In lower case; names are split at case and underscores."""
    return [word.lower() for word in _WORD.findall(text)]


def is_said_in(whole: str, name: str, text: str) -> bool:
    """Whether a tool's description already says this of a parameter: `name: text`, `name (type): text`, `name - …`."""
    place = re.escape(name) + r"[`*\"')]*(?:\s*\([^()\n]{0,80}\))?[`*]*\s*[:=–—-]+\s*"
    body = r"\s+".join(map(re.escape, text.split()))
    return re.search(rf"(?<!\w){place}{body}(?=\s|$)", whole) is not None


def join_texts(first: str, second: str) -> str:
    """Two descriptions of one thing as one; a text that the other holds is not repeated."""
    if second in first:
        return first
    return second if first in second else f"{first}\n{second}"


def first_sentence(text: str, limit: int) -> str:
    """The first sentence, without markup before it or its full stop; cut at a word with `…` where it is too long."""
    paragraph = " ".join(_BREAK.split(_MARKUP.sub("", text), 1)[0].split())
    end = _SENTENCE.search(paragraph)
    sentence = paragraph[: end.start()] if end else paragraph
    if len(sentence) <= limit:
        return sentence.rstrip(":;, ")
    return sentence[: limit - 1].rsplit(" ", 1)[0].rstrip(":;,. ") + "…"
