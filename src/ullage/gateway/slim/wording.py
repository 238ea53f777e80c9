"""Which words of a definition tell the model something?

Texts only: white space that carries nothing, titles and descriptions that repeat what stands beside them, and the first
sentence of a longer text. Nothing here looks at what a schema accepts.
"""

import re
from itertools import groupby

__all__ = ["first_sentence", "is_name", "is_said_in", "join_texts", "repeats", "spaced", "tidy"]

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\da-zA-Z_]+")
_FENCE = "```"
_MARKUP = re.compile(r"^(?:<[^<>]*>|[#*_>`\s])+")
_SENTENCE = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!etc)(?<!vs)(?<!\b[A-Z])[.!?](?=\s|$)|[。！？]")
_BREAK = re.compile(r"\n\s*\n|\n\s*[-*#<•]|\n(?=[^\n]*:[ \t]*(?:\n|$))")
_PLAIN = re.compile(r"[\w\s]+\.?")
_ARTICLES = ("a", "an", "the")
_WITH_ITS_NAME = re.compile(r"[`*\"')]{0,8}(?: ?\([^()]{0,80}\))?[`*]{0,8} ?[:=–—-]{1,8} ?")
"""What stands between a parameter's name and what is said of it."""
_AT_MOST = 110
"""Characters of that."""
_PLACES = 8
"""In which a text is looked at for the name before it."""
_LONG_TITLE = 300
_READ = 1_000
"""Characters of a text that a title may repeat."""
_OPENING = 4_000
"""Characters in which a first sentence is looked for."""


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
    """Whether every word of a short text already stands in the others, near their beginnings."""
    if len(text) > _LONG_TITLE:
        return False
    others = tuple(other[:_READ] for other in others)
    said = {word for other in others for word in _words(other)} | {"".join(_words(other)) for other in others}
    return said.issuperset(_words(text))


def is_name(text: str, name: str) -> bool:
    """Whether a description is no more than the name: `The owner.` for `owner`, not `owner/repo` for `owner_repo`."""
    if len(text) > 4 * len(name) + _LONG_TITLE:
        return False
    words = _words(text)
    bare = words[1:] if words[:1] and words[0] in _ARTICLES else words
    return _PLAIN.fullmatch(text) is not None and bare == _words(name)


def _words(text: str) -> list[str]:
    """In lower case; names are split at case and underscores."""
    return [word.lower() for word in _WORD.findall(text)]


def is_said_in(whole: str, name: str, text: str) -> bool:
    """Whether a tool's description, single-spaced, already says this of a parameter: `name: text`, `name (type): text`,
    `name - …`. A name without a letter is never looked for: it would be found in every rule and table."""
    body, at = spaced(text), 0
    if not body or not any(map(str.isalnum, name)):
        return False
    for _ in range(_PLACES):
        at = whole.find(body, at)
        if at < 0:
            return False
        end = at + len(body)
        if whole[end : end + 1] in ("", " ") and _stands_before(whole, at, name):
            return True
        at += 1
    return False


def _stands_before(whole: str, at: int, name: str) -> bool:
    """Whether the name is what the text at this place is said of."""
    start = max(0, at - _AT_MOST - len(name))
    while (start := whole.find(name, start, at)) >= 0:
        alone = start == 0 or not _is_of_a_word(whole[start - 1])
        if alone and _WITH_ITS_NAME.fullmatch(whole, start + len(name), at):
            return True
        start += 1
    return False


def _is_of_a_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def spaced(text: str) -> str:
    """The text in one line, with one space wherever there is any."""
    return " ".join(text.split())


def join_texts(first: str, second: str) -> str:
    """Two descriptions of one thing as one; a text that the other holds is not repeated."""
    if second in first:
        return first
    return second if first in second else f"{first}\n{second}"


def first_sentence(text: str, limit: int) -> str:
    """The first sentence, without markup before it or its full stop; cut at a word with `…` where it is too long."""
    paragraph = spaced(_BREAK.split(_MARKUP.sub("", text[:_OPENING]), 1)[0])
    end = _SENTENCE.search(paragraph)
    sentence = paragraph[: end.start()] if end else paragraph
    if len(sentence) <= limit:
        return sentence.rstrip(":;, ")
    return sentence[: limit - 1].rsplit(" ", 1)[0].rstrip(":;,. ") + "…"
