"""Where does one token of SQL end and the next begin?

A scanner of its own, so that what mutates the guard's input shares no mistake with what the guard reads by. It knows
strings, quoted names, comments, numbers, words and marks of six dialects, and nothing of grammar. What it cannot end
(a string without its quote) is one last token of the kind `rest`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

__all__ = ["NESTING", "Mutator", "Token", "joined", "rewritten", "scan"]

Mutator = Callable[[str, str, Random], "str | None"]
"""Statement, dialect and chance to another statement; None where there is nothing to take hold of."""

NESTING = frozenset({"postgres", "duckdb", "tsql"})
"""Dialects in which a comment may hold a comment."""


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    """`space`, `comment`, `string`, `quoted`, `number`, `word`, `mark` or `rest`."""
    text: str


def scan(text: str, dialect: str) -> list[Token]:
    return list(_scan(text, dialect))


def joined(tokens: Sequence[Token]) -> str:
    return "".join(token.text for token in tokens)


def rewritten(text: str, dialect: str, kind: str, change: Callable[[str], str]) -> str:
    return "".join(change(token.text) if token.kind == kind else token.text for token in scan(text, dialect))


def _scan(text: str, dialect: str) -> Iterator[Token]:
    position = 0
    pattern = _pattern(dialect)
    while position < len(text):
        if text.startswith("/*", position):
            end = _comment_end(text, position, dialect)
            yield Token("comment" if end else "rest", text[position : end or len(text)])
            position = end or len(text)
            continue
        match = pattern.match(text, position)
        if match is None or match.lastgroup is None:
            yield Token("rest", text[position:])
            return
        yield Token(match.lastgroup, match.group())
        position = match.end()


def _comment_end(text: str, start: int, dialect: str) -> int | None:
    depth = 0
    for match in re.finditer(r"/\*|\*/", text[start:]):
        opens = match.group() == "/*"
        depth += 1 if opens and (dialect in NESTING or not depth) else 0 if opens else -1
        if not depth:
            return start + match.end()
    return None


_DOUBLED = r"'(?:[^']|'')*'"
_ESCAPED = r"'(?:[^'\\]|\\.|'')*'"
_STRINGS = {
    "postgres": rf"[eE]{_ESCAPED}|(?:[bBxXnN]|[uU]&)?{_DOUBLED}|\$(?P<tag>[A-Za-z_]\w*)?\$.*?\$(?(tag)(?P=tag))\$",
    "duckdb": rf"[eE]{_ESCAPED}|[xX]?{_DOUBLED}|\$(?P<tag>[A-Za-z_]\w*)?\$.*?\$(?(tag)(?P=tag))\$",
    "mysql": rf"(?:[bBxXnN]|_\w+)?{_ESCAPED}|" + r'"(?:[^"\\]|\\.|"")*"',
    "sqlite": rf"[xX]?{_DOUBLED}",
    "tsql": rf"[nN]?{_DOUBLED}",
    "oracle": rf"[nN]?[qQ]'(?:\[.*?\]|\{{.*?\}}|\(.*?\)|<.*?>|(?P<mark_>[^\s\[{{(<]).*?(?P=mark_))'|[nN]?{_DOUBLED}",
}
_QUOTED = {
    "postgres": r'(?:[uU]&)?"(?:[^"]|"")*"',
    "duckdb": r'"(?:[^"]|"")*"',
    "mysql": r"`(?:[^`]|``)*`",
    "sqlite": r'"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]',
    "tsql": r'"(?:[^"]|"")*"|\[(?:[^\]]|\]\])*\]',
    "oracle": r'"[^"]*"',
}


@cache
def _pattern(dialect: str) -> re.Pattern[str]:
    line = r"--(?=[\s\x00-\x1f]|\Z)[^\n]*|\#[^\n]*" if dialect == "mysql" else r"--[^\n]*"
    plain = r"[^\W\d][\w$]*"
    words = {"tsql": r"@{0,2}[^\W\d][\w$#@]*|\#{1,2}\w+", "mysql": r"@{1,2}[\w.$]+|[^\W\d][\w$]*"}
    return re.compile(
        rf"(?P<comment>{line})|(?P<space>\s+)|(?P<string>{_STRINGS[dialect]})|(?P<quoted>{_QUOTED[dialect]})"
        rf"|(?P<number>0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)"
        rf"|(?P<word>{words.get(dialect, plain)})"
        r"|(?P<mark>(?:(?!--|/\*)[+\-*/<>=~!@#%^&|?:]){2,}|[^\s\w])",
        re.DOTALL,
    )
