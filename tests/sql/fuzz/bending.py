"""How can a statement be spoilt so that a careless reader takes it for another?

What comes out may be allowed, provided that no engine then does anything with it.
"""

from random import Random

from .scanning import Mutator, joined, rewritten, scan

__all__ = ["BENDING"]

_ODD_SPACES = "\u00a0\u3000\u2003\u200b\u2060\ufeff\u1680\u2028\u0085\x0b\x0c\x1f\x00"
_LOOKALIKES = str.maketrans("aceopxyiSEKT", "асеорхуіЅЕКТ")


def odd_spaces(text: str, dialect: str, random: Random) -> str:
    odd = random.choice(_ODD_SPACES)
    return rewritten(text, dialect, "space", lambda space: odd if random.random() < 0.5 else space)


def full_width(text: str, dialect: str, random: Random) -> str:
    def widen(word: str) -> str:
        return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in word) if random.random() < 0.4 else word

    return rewritten(text, dialect, "word", widen)


def lookalikes(text: str, dialect: str, random: Random) -> str:
    return rewritten(text, dialect, "word", lambda word: word.translate(_LOOKALIKES) if random.random() < 0.3 else word)


def invisible(text: str, dialect: str, random: Random) -> str:
    place = random.randrange(len(text) + 1)
    return (
        text[:place]
        + random.choice("\u200b\u200c\u200d\u2060\ufeff\u00ad\u202e\u2066\u180e\x00\x08\x1a")
        + text[place:]
    )


def wrong_quotes(text: str, dialect: str, random: Random) -> str:
    """Any word in any quotes, whether the dialect has them or not."""
    styles = ('"{}"', "`{}`", "[{}]", "'{}'", "$${}$$", "N'{}'", "q'[{}]'")

    def quote(word: str) -> str:
        return random.choice(styles).format(word) if random.random() < 0.2 else word

    return rewritten(text, dialect, "word", quote)


def broken_comments(text: str, dialect: str, random: Random) -> str:
    pieces = (
        "/*",
        "*/",
        "--",
        "#",
        "/*!",
        "--+",
        "/*+",
        "*/ */",
        "/* /*",
        "-- \r",
        "{",
        "}",
        "\\",
        "$$",
        "'",
        '"',
        "`",
    )
    place = random.randrange(len(text) + 1)
    return text[:place] + random.choice(pieces) + text[place:]


def lost_piece(text: str, dialect: str, random: Random) -> str:
    tokens = scan(text, dialect)
    del tokens[random.randrange(len(tokens))]
    return joined(tokens) or " "


def doubled_piece(text: str, dialect: str, random: Random) -> str:
    tokens = scan(text, dialect)
    at = random.randrange(len(tokens))
    return joined(tokens[: at + 1]) + " " + joined(tokens[at:])


def swapped_pieces(text: str, dialect: str, random: Random) -> str:
    tokens = scan(text, dialect)
    one, other = random.randrange(len(tokens)), random.randrange(len(tokens))
    tokens[one], tokens[other] = tokens[other], tokens[one]
    return joined(tokens)


def hidden_in_alias(text: str, dialect: str, random: Random) -> str:
    """The attack behind something that reads as a name."""
    starts = (
        "SELECT 1 AS x ",
        "SELECT 1 ",
        "SELECT 'a' ",
        "SELECT name FROM customers ",
        "SELECT name FROM customers c ",
    )
    return random.choice(starts) + random.choice(("", "\n", ",")) + text


BENDING: tuple[Mutator, ...] = (
    odd_spaces,
    full_width,
    lookalikes,
    invisible,
    wrong_quotes,
    broken_comments,
    lost_piece,
    doubled_piece,
    swapped_pieces,
    hidden_in_alias,
)
