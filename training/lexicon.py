"""How are the words of tools said in other languages?

The encoder knows English only. Rows for the commonest words of Portuguese, Spanish, German, Korean and Chinese
(`lexicon.txt`) and of French, Italian, Japanese and Russian (`lexicon_more.txt`) begin where their English words are,
and some words of training queries are exchanged for them. Both files were written for this project: a line a word,
English first, then a column a language; the last line has words that say nothing. Russian words are beginnings, since
their endings change. What is also an English word is passed over.
"""

import random
import re
from pathlib import Path

from ullage.search.static_embedder import fold

__all__ = ["LEXICON", "switched"]

_FILES = {"lexicon.txt": 5, "lexicon_more.txt": 4}
"""Each with its number of languages."""
_SHARE = 0.15
"""Of the queries in which words are exchanged."""

_ENGLISH_TOO = frozenset(
    [
        "ache",
        "al",
        "as",
        "audio",
        "audios",
        "auto",
        "autos",
        "bases",
        "budget",
        "cameras",
        "canal",
        "com",
        "commits",
        "conversion",
        "cores",
        "cree",
        "da",
        "dame",
        "do",
        "dos",
        "du",
        "em",
        "emails",
        "en",
        "eu",
        "execute",
        "favor",
        "handy",
        "hole",
        "hotels",
        "im",
        "lee",
        "lied",
        "links",
        "logs",
        "mail",
        "mails",
        "na",
        "no",
        "nova",
        "o",
        "os",
        "pasta",
        "patient",
        "problem",
        "red",
        "reproduce",
        "reserve",
        "restaurants",
        "resume",
        "reunion",
        "rode",
        "site",
        "tempo",
        "time",
        "uber",
        "um",
        "versions",
        "videos",
        "web",
        "website",
    ]
)


def _languages() -> list[dict[str, list[str]]]:
    """For each language the words that stand for an English one."""
    found: list[dict[str, list[str]]] = []
    for name, number in _FILES.items():
        languages: list[dict[str, list[str]]] = [{} for _ in range(number)]
        for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines():
            english, *columns = line.split("|")
            for language, column in zip(languages, columns, strict=True):
                words = [fold(word).lower() for word in column.split()]
                language[english] = [word for word in words if word not in _ENGLISH_TOO and word not in english.split()]
        found += languages
    return found


_LANGUAGES = _languages()
LEXICON = {word: english for language in reversed(_LANGUAGES) for english, words in language.items() for word in words}
"""The English of each word, without accents and in lower case."""
_BY_WORD = [{english.split()[0]: words for english, words in language.items() if words} for language in _LANGUAGES]
_WORD = re.compile(r"[A-Za-z]+")


def switched(query: str, chance: random.Random) -> str:
    """The query, now and then with words of another language in place of its own."""
    if chance.random() >= _SHARE:
        return query
    language = chance.choice(_BY_WORD)

    def other(found: re.Match[str]) -> str:
        word = found.group().lower()
        choices = language.get(word) or language.get(word.removesuffix("s"))
        return f" {chance.choice(choices)} " if choices else found.group()

    return _WORD.sub(other, query)
