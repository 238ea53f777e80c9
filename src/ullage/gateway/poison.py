"""Flags on definitions that try to steer the model: poisoned descriptions, shadowed tools, requests for secrets.

`find_flags` looks at everything a model is told about one server: names, descriptions, every string of the schemas,
instructions and prompts. It adds up signals, each a pattern with a weight between 0 and 1, and flags a definition whose
sum reaches 0.9. One strong signal ("ignore all previous instructions") suffices; weak ones ("must be called first",
"`password`") count only together, because honest servers use them all the time. What the definition says about other
tools of its own server is no signal.

Text is read as a model would read it: without invisible characters, with look-alike letters folded, and with base64,
hexadecimal, percent, entity and ROT13 encodings undone. A flag is advice for the user and blocks nothing.

Index of patterns by the literals that each of them requires, to search one text for many patterns quickly.

A hundred patterns over every sentence of a server's definitions take seconds; most of them cannot match, because none
of their words occurs. `PatternIndex` finds the few that can by looking up every three and four letters of the text. A
pattern for which no literal can be derived is always tried, so the result is the same as with a search for each.
"""

import base64
import binascii
import codecs
import contextlib
import html
import importlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, cast
from urllib.parse import unquote

from ullage.invisible_characters import decode_hidden, escape_invisible, has_invisible, remove_invisible
from ullage.tool import Json, JsonObject, Tool

from .poison_signals import (
    CONTEXT_DESCRIBED,
    CONTEXT_PARAMETER,
    CONTEXT_PURPOSE,
    FOREIGN_USE,
    SECRET_DESCRIBED,
    SECRET_PARAMETER,
    SECRET_PURPOSE,
    SENTENCE_PARAMETER,
    SIGNALS,
    FlagKind,
)

__all__ = ["Flag", "FlagKind", "PatternIndex", "find_flags", "flag_json", "flag_line", "required_literals"]

# The parser of `re` has no public name. Without it every pattern would be tried on every text.
_parser: Any = importlib.import_module("re._parser")
_constants: Any = importlib.import_module("re._constants")


_LEAST, _GRAM = 3, 6
"""Least and most characters of a literal by which a pattern is found."""
_MOST_ALTERNATIVES = 40


class PatternIndex:
    """Patterns in lower case, without flags; compiled when first searched."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._sources = patterns
        self._compiled: dict[int, re.Pattern[str]] = {}

    def search(self, text: str) -> Iterator[tuple[int, re.Match[str]]]:
        """The number and the first match of every pattern that occurs in a text in lower case."""
        candidates = set(self._always)
        by_size = self._by_gram
        for size, grams in by_size.items():
            for gram in {text[start : start + size] for start in range(len(text) - size + 1)} & grams.keys():
                candidates |= grams[gram]
        for number in sorted(candidates):
            pattern = self._compiled.get(number)
            if pattern is None:
                pattern = self._compiled[number] = re.compile(self._sources[number])
            match = pattern.search(text)
            if match is not None:
                yield number, match

    @cached_property
    def _literals(self) -> list[frozenset[str] | None]:
        return [required_literals(source) for source in self._sources]

    @cached_property
    def _always(self) -> frozenset[int]:
        return frozenset(number for number, literals in enumerate(self._literals) if literals is None)

    @cached_property
    def _by_gram(self) -> dict[int, dict[str, set[int]]]:
        """By length, the beginnings of literals and the patterns that they belong to."""
        by_size: dict[int, dict[str, set[int]]] = {}
        for number, literals in enumerate(self._literals):
            for literal in literals or ():
                gram = literal[:_GRAM]
                by_size.setdefault(len(gram), {}).setdefault(gram, set()).add(number)
        return by_size


def required_literals(pattern: str) -> frozenset[str] | None:
    """Literals of which one occurs in every match; None where there is no such set of at least three letters each."""
    return _required(_parser.parse(pattern))


def _required(sequence: Iterable[tuple[object, Any]]) -> frozenset[str] | None:
    """Return the best of the sets that the parts of a sequence require; parts that require nothing are ignored."""
    sets: list[frozenset[str]] = []
    runs = [""]
    for operation, argument in sequence:
        if operation is _constants.LITERAL:
            runs = [run + chr(argument) for run in runs]
            continue
        if operation is _constants.AT:
            continue
        branches = _branches(operation, argument)
        if branches is None:
            sets.append(frozenset(runs))
            runs = [""]
            continue
        # The text before a choice belongs to each of its alternatives.
        heads = {_head(branch) for branch in branches}
        if len(runs) * len(heads) <= _MOST_ALTERNATIVES * 4:
            sets.append(frozenset(run + head for run in runs for head in heads))
        sets.append(frozenset(runs))
        inner = [_required(branch) for branch in branches]
        if all(inner):
            sets.append(frozenset[str]().union(*(one for one in inner if one)))
        runs = [""]
    sets.append(frozenset(runs))
    usable = [one for one in sets if min(map(len, one)) >= _LEAST]
    return max(usable, key=lambda one: (min(_GRAM, *map(len, one)), -len(one))) if usable else None


def _branches(
    operation: object,
    argument: Any,  # noqa: ANN401 - what the parser has for an operation
) -> list[list[tuple[object, Any]]] | None:
    """The alternatives of a group or of something that occurs at least once; None for what may be absent."""
    if operation is _constants.BRANCH:
        return [list(branch) for branch in argument[1]]
    if operation is _constants.SUBPATTERN:
        inner = list(argument[-1])
        if len(inner) == 1 and inner[0][0] is _constants.BRANCH:
            return [list(branch) for branch in inner[0][1][1]]
        return [inner]
    if operation in (_constants.MAX_REPEAT, _constants.MIN_REPEAT) and argument[0] >= 1:
        return [list(argument[2])]
    return None


def _head(branch: Iterable[tuple[object, Any]]) -> str:
    """The literal at the beginning of a sequence."""
    head = ""
    for operation, argument in branch:
        if operation is _constants.LITERAL:
            head += chr(argument)
        elif operation is not _constants.AT:
            break
    return head


_THRESHOLD = 0.9
_PASSAGE = 3
"""Consecutive sentences that are weighed together."""
_MOST_QUOTES = 3
"""Most flags for one definition; those with the heaviest signals."""
_LONGEST_QUOTE = 120
_ALIKE = 0.6
"""Share of the words of two descriptions that both have."""
_SHORTEST = 8
_LONGEST = 200_000
"""Characters of one definition that are read."""
_MOST_NESTED = 25
"""Parameters inside other parameters up to which their names are judged."""
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\s*\n\s*|(?<=[。！？；])")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_HEX = re.compile(r"(?:\b0x|\b)(?:[0-9a-fA-F]{2}){12,}\b|(?:\\x[0-9a-fA-F]{2}){8,}")
_ENCODED_LETTERS = re.compile(
    r"(?:%[46][1-9a-fA-F]|%[57][0-9aA]|&#(?:x[46][1-9a-f]|x[57][0-9a]|9[7-9]|1[01]\d|12[0-2]);|\\u00[4-7][0-9a-fA-F]){3,}"
)
_SPACED = re.compile(r"(?<!\w)(?:\w[ .\-_*]{1,3}){7,}\w(?!\w)")
_LEET = str.maketrans("013457@$", "oieastas")
_SPEAKER = re.compile(r"(?im)^[ \t]*(human|user|assistant|ai|model)[ \t]*:")
_ENCODINGS = {"encoded": 0.7, "encoded letters": 0.8}
"""Weight of prose that was written in base64 or hexadecimal, or letter by letter."""
_ENCODED_SENTENCE = 6
"""Words from which encoded prose is more than a sample such as `hello world`."""
_COMMAND = re.compile(
    r"\b(?:curl|wget|chmod|chown|rm|nc|ncat|bash|sh|zsh|python3?|perl|powershell|iwr|eval|exec|sudo|ssh|scp|dd|mkfifo|certutil)\b"
    r" [-+~/.$<>&|\w]|/bin/(?:ba|z)?sh|/dev/tcp/|\| ?(?:ba)?sh\b|<script|\bos\.system|\bsubprocess\b"
)
_PRIVATE_USE = re.compile("[\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]")
_REPORTED = re.compile(
    r"\b(?:detect\w*|analy[sz]\w+|check\w*|explain\w*|flag\w*|block\w*|prevent\w*|identif\w+|scan\w*|recogni[sz]\w+|filter\w*|"
    r"attempts?|tries|such as|sample \w+|training text|expected \w+|mock \w+|test cases?)\b.{0,60}$",
    re.IGNORECASE,
)
"""Matches text before words that a definition only mentions, as those of security tools do, and does not address to
the model."""
_STRAY = re.compile("[\u200b\ufeff\xad]")
_REVERSED_WORDS = re.compile(
    r"(?:snoitcurtsni|stpmorp?|tpmorp|drowssap|slaitnederc|suoiverp|daolpu|erongi|eht)\b", re.IGNORECASE
)
_BASE32 = re.compile(r"\b[A-Z2-7]{32,}={0,6}(?![\w=])")
_CODES = re.compile(r"\b(?:[01]{7,8} ){11,}[01]{7,8}\b|\b(?:(?:3[2-9]|[4-9]\d|1[01]\d|12[0-6]) ){11,}(?:\d{2,3})\b")
"""Letters as binary or decimal numbers."""
_BITS = 7
_OVERLAY = re.compile("[\u0305\u0332-\u0338\u20d0-\u20f0]")
"""Lines and frames drawn over letters."""
_STYLED = re.compile(
    "[\u1d00-\u1d25\u0262\u026a\u0274\u0280\u028f\u0299\u029c\u029f\u24b6-\u24e9\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff]|\\w[\u0305\u0332-\u0338]"
)
"""Letters in another form than the one of plain text."""
_MOST_STYLED = 8
_SMALL_CAPITALS = str.maketrans("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz")
_ENTITY = re.compile(r"&(?:#\d{2,3}|#x[0-9a-fA-F]{2}|nbsp);")
_MOST_ENTITIES = 3
_SYLLABLE_END = re.compile(r"(?<=[a-z])-(?=[a-z])")
_MOST_SYLLABLES = 3
_ROT13_WORDS = re.compile(r"\b(?:gur|naq|nyy|lbh|vtaber|cnffjbeq|svyr|frperg|hfre)\b", re.IGNORECASE)
_LEET_WORD = re.compile(r"\b(?=\w*[a-z])(?=\w*[013457@$])[\w@$]{3,}\b", re.IGNORECASE)
_CONFUSABLES = str.maketrans(
    dict(zip("аеорсухкмтнвѕіјԁԛԝһցӏүԍп", "aeopcyxkmthbsijdqwhglygn", strict=True))
    | dict(zip("АВЕКМНОРСТУХІЈЅԌ", "ABEKMHOPCTYXIJSG", strict=True))
    | dict(zip("οαεικνρτυχωγη", "oaeikvptuxwyn", strict=True))
    | dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX", strict=True))
)
"""Cyrillic and Greek letters that look like Latin ones."""
_WORD = re.compile(r"\w+")
_IDENTIFIER = re.compile(r"(?<![\w-])[A-Za-z][\w-]{4,}(?![\w-])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One reason to look at a definition before trusting it."""

    kind: FlagKind
    server: str
    tool: str | None
    """None for the server's instructions and for a prompt."""
    where: str
    """The part of the definition, such as `description` or `inputSchema.properties.note.description`."""
    words: str
    """What the definition says there, escaped and cut to 120 characters."""


@dataclass(frozen=True, slots=True)
class _Text:
    """A string of a definition and its place."""

    where: str
    text: str


@dataclass(frozen=True, slots=True)
class _Hit:
    weight: float
    kind: FlagKind
    where: str
    words: str
    name: str
    sentence: int | None = None
    """Its number in the text; None for a hit that counts together with every other."""


def find_flags(
    server: str,
    tools: Sequence[Tool],
    *,
    instructions: str | None = None,
    prompts: Sequence[JsonObject] = (),
    others: Mapping[str, Sequence[Tool]] | None = None,
) -> tuple[Flag, ...]:
    """Flags for one server, in the order of its tools, then instructions and prompts.

    Args:
        server: The name in the settings.
        tools: The definitions as the server sent them, invisible characters included.
        instructions: What the server wants the model to know.
        prompts: Definitions of prompts, as the protocol writes them.
        others: The tools of the other servers, which this one may shadow.
    """
    own = {tool.name for tool in tools}
    foreign = {
        tool.name: _Foreign(name, tool)
        for name, offered in (others or {}).items()
        if name != server
        for tool in offered
    }
    look_alikes = {_skeleton(name): name for name in foreign}
    servers = [name for name in (others or {}) if name != server]
    # Names that can only mean a tool; those that may be ordinary words are left out.
    names = foreign.keys() - own
    mentions = frozenset(name for name in names if len(name) >= 5 and re.search(r"[a-z](?:_|(?=[A-Z]))\w", name))
    flags: list[Flag] = []
    for tool in tools:
        texts = list(_texts_of_tool(tool))
        hits = [
            *_hits(texts),
            *_parameter_hits(tool),
            *_name_hits(server, tool, foreign, look_alikes),
            *_foreign_hits(texts, mentions, servers),
        ]
        flags += _flags_of(hits, server, tool.name)
    if instructions:
        texts = [_Text("instructions", instructions)]
        flags += _flags_of([*_hits(texts), *_foreign_hits(texts, mentions, servers)], server, None)
    for prompt in prompts:
        texts = list(_walk(cast("Json", prompt), f"prompt `{str(prompt.get('name'))[:60]}`"))
        flags += _flags_of([*_hits(texts), *_foreign_hits(texts, mentions, servers)], server, None)

    def is_part(one: Flag, other: Flag) -> bool:
        same = (one.kind, one.server, one.tool) == (other.kind, other.server, other.tool)
        return same and one is not other and one.words in other.words and one.words != other.words

    return tuple(one for one in flags if not any(is_part(one, other) for other in flags))


def flag_line(flag: Flag) -> str:
    """One line for a person: `instruction: "do not tell the user" (tool `add`, description)`."""
    place = flag.where if flag.tool is None else f"tool `{escape_invisible(flag.tool)[:60]}`, {flag.where}"
    return f'{_TITLES[flag.kind]}: "{flag.words}" ({place})'


def flag_json(flag: Flag) -> dict[str, Json]:
    tool = None if flag.tool is None else escape_invisible(flag.tool)
    return {"kind": flag.kind, "server": flag.server, "tool": tool, "where": flag.where, "words": flag.words}


_TITLES: Mapping[FlagKind, str] = {
    "instruction": "instruction to the model",
    "concealment": "something to hide from the user",
    "shadowing": "interferes with another server's tools",
    "secret_request": "asks for secrets",
    "hidden_text": "hidden text",
    "encoded_text": "encoded text",
}


def _flags_of(hits: Iterable[_Hit], server: str, tool: str | None) -> list[Flag]:
    """The heaviest hits of the passage that weighs most, where that is enough.

    A passage is a few sentences in a row. A long honest description has many a weak signal, but far apart; an attack
    has them side by side. The same signal counts once in a passage.
    """
    everywhere: list[_Hit] = []
    by_text: dict[str, list[_Hit]] = {}
    for hit in hits:
        (everywhere if hit.sentence is None else by_text.setdefault(hit.where, [])).append(hit)
    best = _distinct(everywhere)
    for found in by_text.values():
        for first in {hit.sentence or 0 for hit in found}:
            near = [hit for hit in found if first <= (hit.sentence or 0) < first + _PASSAGE]
            best = max(best, _distinct([*everywhere, *near]), key=_weigh)
    if _weigh(best) < _THRESHOLD:
        return []
    return [
        Flag(kind=hit.kind, server=server, tool=tool, where=_quote(hit.where), words=_quote(hit.words))
        for hit in best[:_MOST_QUOTES]
    ]


def _distinct(hits: Iterable[_Hit]) -> list[_Hit]:
    """The heaviest hit of each signal, heaviest first."""
    best: dict[str, _Hit] = {}
    for hit in hits:
        if hit.name not in best or best[hit.name].weight < hit.weight:
            best[hit.name] = hit
    return sorted(best.values(), key=lambda hit: -hit.weight)


def _weigh(hits: Iterable[_Hit]) -> float:
    # Rounded: three times 0.3 is to reach 0.9.
    return round(sum(hit.weight for hit in hits), 6)


def _quote(words: str) -> str:
    flat = " ".join(escape_invisible(words).split())
    return flat if len(flat) <= _LONGEST_QUOTE else flat[: _LONGEST_QUOTE - 1] + "…"


# What is read


def _texts_of_tool(tool: Tool) -> Iterator[_Text]:
    left = _LONGEST
    parts: list[tuple[str, Json]] = [
        ("name", tool.name),
        ("title", tool.title),
        ("description", tool.description),
        ("inputSchema", cast("Json", tool.input_schema)),
        ("outputSchema", cast("Json", tool.output_schema)),
        ("annotations", cast("Json", tool.annotations)),
    ]
    for where, value in parts:
        spelled = re.sub(r"[_\-.]+|(?<=[a-z])(?=[A-Z])", " ", tool.name) if where == "name" else ""
        names = (_Text(where, spelled),) if spelled != tool.name and spelled else ()
        for text in (*_walk(value, where), *names):
            if left <= 0:
                return
            left -= len(text.text)
            yield text


def _walk(value: Json, where: str) -> Iterator[_Text]:
    """Every string in a value, and every key that is no word of the protocol, with its place; level by level."""
    level: list[tuple[str, Json]] = [(where, value)]
    while level:
        inner: list[tuple[str, Json]] = []
        for place, one in level:
            if isinstance(one, str):
                yield _Text(place, one)
            elif isinstance(one, Mapping):
                for key, member in one.items():
                    if place.endswith((".properties", ".$defs", ".definitions")):
                        # A name made of words reads as a sentence to a model.
                        yield _Text(place, re.sub(r"[_\-.]+|(?<=[a-z])(?=[A-Z])", " ", key))
                    inner.append((f"{place}.{key}", member))
            elif isinstance(one, list):
                inner += [(place, item) for item in one]
        level = inner


def _readings(text: str) -> Iterator[tuple[str, str]]:
    """The text as a model may read it: as written, and decoded where something in it is encoded."""
    written = remove_invisible(text)
    visible = unicodedata.normalize("NFKC", _OVERLAY.sub("", written).translate(_SMALL_CAPITALS))
    folded = _WORD.sub(_fold_mixed, visible)
    is_styled = len(_STYLED.findall(written)) >= _MOST_STYLED
    yield "", written if is_styled else folded
    if is_styled or folded != visible:
        yield "look-alike letters", folded
    yield from _rewritten(visible, folded)
    for payload in _payloads(visible):
        yield "encoded", payload
    if _REVERSED_WORDS.search(folded):
        yield "backwards", folded[::-1]
    if _ROT13_WORDS.search(folded):
        yield "ROT13", codecs.encode(folded, "rot13")
    if visible != text and (hidden := decode_hidden(text)):
        yield "hidden", hidden


def _rewritten(visible: str, folded: str) -> Iterator[tuple[str, str]]:
    """The readings of a text whose letters or words are written in another way."""
    if _ENCODED_LETTERS.search(visible):
        decoded = html.unescape(unquote(re.sub(r"\\u00([2-7][0-9a-fA-F])", lambda f: chr(int(f[1], 16)), visible)))
        yield "encoded letters", decoded
    if len(_ENTITY.findall(visible)) >= _MOST_ENTITIES:
        yield "entities", " ".join(html.unescape(visible).split("\xa0"))
    if len(_SYLLABLE_END.findall(folded)) >= _MOST_SYLLABLES:
        yield "syllables", _SYLLABLE_END.sub("", folded)
    # Letters with something between each two of them, as words; a wider gap ends a word.
    joined = _SPACED.sub(lambda found: re.sub(r" {2,}", " ", re.sub(r"(?<=\w)[ .\-_*](?=\w)", "", found[0])), folded)
    if joined != folded:
        yield "spaced letters", joined
    leet = _LEET_WORD.sub(lambda found: found[0].translate(_LEET), folded)
    if leet != folded:
        yield "digits as letters", leet


def _fold_mixed(word: re.Match[str]) -> str:
    """A word of Latin letters with Cyrillic or Greek look-alikes in it, in Latin; other words stay."""
    text = word[0]
    if text.isascii():
        return text
    folded = text.translate(_CONFUSABLES)
    return folded if folded.isascii() and any(letter.isascii() and letter.isalpha() for letter in text) else text


def _payloads(text: str) -> Iterator[str]:
    """Prose that is written in base64, base32, hexadecimal, or the numbers of its letters."""
    for found in _BASE64.finditer(text):
        token = found[0].replace("-", "+").replace("_", "/")
        try:
            raw = base64.b64decode(token.rstrip("=") + "=" * (-len(token.rstrip("=")) % 4), validate=True)
        except (ValueError, binascii.Error):
            continue
        yield from _prose(raw)
    for found in _BASE32.finditer(text):
        with contextlib.suppress(ValueError):
            yield from _prose(base64.b32decode(found[0].rstrip("=") + "=" * (-len(found[0].rstrip("=")) % 8)))
    for found in _CODES.finditer(text):
        digits = found[0].split()
        base = 2 if all(len(one) >= _BITS for one in digits) else 10
        yield from _prose(bytes(code for one in digits if (code := int(one, base)) < 256))
    for found in _HEX.finditer(text):
        yield from _prose(bytes.fromhex(found[0].replace("\\x", "").removeprefix("0x")))


def _prose(raw: bytes) -> Iterator[str]:
    """The text of decoded bytes, where they are sentences or a command."""
    text = raw.decode("utf-8", "replace")
    is_text = text.replace("\n", " ").isprintable() and "\ufffd" not in text
    if is_text and (len(re.findall(r"\b[A-Za-z]{2,}\b ", text)) >= 3 or _COMMAND.search(text)):
        yield text


# Signals


_INDEX = PatternIndex([signal.pattern for signal in SIGNALS])


@lru_cache(maxsize=20_000)
def _search(sentence: str) -> tuple[tuple[int, str, float], ...]:
    """The signals in one sentence: number, words, and the part of the weight that counts.

    Cached, because parameters are described by the same sentences again and again.
    """
    lowered = sentence.lower()
    is_aligned = len(lowered) == len(sentence)
    return tuple(
        (
            number,
            (sentence if is_aligned else lowered)[match.start() : match.end()],
            0.4 if _REPORTED.search(lowered[: match.start()]) else 1.0,
        )
        for number, match in _INDEX.search(lowered)
    )


def _hits(texts: Iterable[_Text]) -> Iterator[_Hit]:
    for one in texts:
        if has_invisible(one.text):
            # Invisible characters. A few zero-width spaces in prose are what copying from a web page
            # leaves behind.
            without = _STRAY.sub("", one.text)
            is_stray = (
                one.where.endswith("description") and len(one.text) - len(without) <= 3 and not has_invisible(without)
            )
            words = decode_hidden(one.text)
            if not words:
                escaped = escape_invisible(one.text)
                place = next(
                    (at for at, (old, new) in enumerate(zip(one.text, escaped, strict=False)) if old != new), 0
                )
                words = escaped[max(0, place - 40) : place + 80]
            hidden_hit = _Hit(0.6 if is_stray else 1.0, "hidden_text", one.where, words, "hidden")
            yield hidden_hit
        if len(one.text) < _SHORTEST:
            continue
        plain: set[int] = set()
        for reading, text in _readings(one.text):
            yield from _signal_hits(one.where, reading, text, plain)
            if reading in _ENCODINGS:
                is_order = _COMMAND.search(text) or len(text.split()) >= _ENCODED_SENTENCE
                weight = 1.0 if is_order else _ENCODINGS[reading]
                yield _Hit(weight, "encoded_text", one.where, text, reading)
        if _PRIVATE_USE.search(one.text):
            yield _Hit(0.9, "hidden_text", one.where, one.text.encode("unicode_escape").decode(), "private use")
        speakers = {speaker.lower() for speaker in _SPEAKER.findall(one.text)}
        if speakers & {"human", "user"} and speakers & {"assistant", "ai", "model"}:
            yield _Hit(0.8, "instruction", one.where, ", ".join(sorted(speakers)), "dialogue")


def _signal_hits(where: str, reading: str, text: str, plain: set[int]) -> Iterator[_Hit]:
    """Signals in one reading of a text; `plain` collects those that need no decoding."""
    is_value = where.endswith((".enum", ".default", ".const", ".examples"))
    for at, sentence in enumerate(_SENTENCE_END.split(text)):
        for number, words, part in _search(sentence):
            signal = SIGNALS[number]
            if is_value:
                yield _Hit(0.3, "instruction", where, words, "instruction as a value", at)
            if not reading:
                plain.add(number)
                yield _Hit(signal.weight * part, signal.kind, where, words, signal.name, at)
            elif number not in plain:
                # Text that appears only after decoding was meant to be hidden.
                weight = min(1.0, signal.weight + 0.3)
                yield _Hit(weight, "encoded_text", where, f"{words} ({reading})", f"{signal.name}:{reading}", at)


def _parameter_hits(tool: Tool) -> Iterator[_Hit]:
    """Parameters that ask for secrets or for what the model knows, where the tool's purpose needs neither."""
    purpose = " ".join(
        re.sub(r"[_\-.]+|(?<=[a-z])(?=[A-Z])", " ", part)
        for part in (tool.name, tool.title or "", tool.description or "")
    )
    for place, name, schema in _parameters(cast("Json", tool.input_schema)):
        spelled = re.sub(r"[\W_]+|(?<=[a-z])(?=[A-Z])", "_", remove_invisible(name)).strip("_").lower()
        where = f"{place}.{name}"
        described = schema.get("description") if isinstance(schema, dict) else None
        words = f"{name}: {described}" if isinstance(described, str) else name
        if SENTENCE_PARAMETER.search(spelled):
            yield _Hit(1.0, "secret_request", where, words, "sentence parameter")
        elif SECRET_PARAMETER.search(spelled) and not SECRET_PURPOSE.search(purpose):
            yield _Hit(1.0, "secret_request", where, words, "secret parameter")
        elif CONTEXT_PARAMETER.search(spelled) and not CONTEXT_PURPOSE.search(purpose):
            yield _Hit(1.0, "secret_request", where, words, "context parameter")
        elif not isinstance(described, str):
            continue
        elif CONTEXT_DESCRIBED.search(described) and not CONTEXT_PURPOSE.search(purpose):
            yield _Hit(0.9, "secret_request", where, words, "context described")
        elif SECRET_DESCRIBED.search(described) and not SECRET_PURPOSE.search(purpose):
            yield _Hit(0.9, "secret_request", where, words, "secret described")


def _parameters(schema: Json) -> Iterator[tuple[str, str, Json]]:
    """The place, name and schema of the parameters, and of those inside them where the schema has few: hundreds of
    nested names are the data model of a service, not requests to a caller."""
    level: list[tuple[str, Json]] = [("inputSchema", schema)]
    found: list[tuple[str, str, Json]] = []
    outermost = 0
    while level and len(found) - outermost <= _MOST_NESTED:
        inner: list[tuple[str, Json]] = []
        for place, one in level:
            if isinstance(one, list):
                inner += [(place, item) for item in one]
            elif isinstance(one, Mapping):
                if place.endswith(".properties"):
                    found += [(place, name, member) for name, member in one.items()]
                inner += [(f"{place}.{key}", member) for key, member in one.items() if isinstance(member, dict | list)]
        outermost = outermost or len(found)
        level = inner
    yield from found[: outermost if len(found) - outermost > _MOST_NESTED else None]


def _skeleton(name: str) -> str:
    """The name with letters that look alike made equal."""
    folded = unicodedata.normalize("NFKC", remove_invisible(name)).translate(_CONFUSABLES)
    return folded.replace("I", "l").replace("1", "l").replace("|", "l").replace("0", "o").lower().replace("rn", "m")


@dataclass(frozen=True, slots=True)
class _Foreign:
    server: str
    tool: Tool


def _name_hits(
    server: str, tool: Tool, foreign: Mapping[str, _Foreign], look_alikes: Mapping[str, str]
) -> Iterator[_Hit]:
    """Names that can be taken for a tool of another server."""
    scripts = {unicodedata.name(letter, "?").split()[0] for letter in tool.name if letter.isalpha()}
    if "LATIN" in scripts and scripts & {"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH", "MATHEMATICAL"}:
        yield _Hit(1.0, "shadowing", "name", tool.name, "mixed scripts")
    twin = foreign.get(tool.name)
    if twin is not None:
        one = tool.description or ""
        other = twin.tool.description or ""
        first, second = (set(_WORD.findall(text.lower())) for text in (one, other))
        alike = bool(first & second) and len(first & second) / len(first | second) >= _ALIKE
        # Two servers for the same product have a word of their names in common.
        mine, theirs = (
            {word for word in re.split(r"[\W_]+", said.lower()) if len(word) > 2} for said in (server, twin.server)
        )
        is_copy = alike and not (mine & theirs) - {"mcp", "server", "the", "tools"}
        weight, words = (1.0, f"{tool.name}, as of `{twin.server}`") if is_copy else (0.2, tool.name)
        yield _Hit(weight, "shadowing", "name", words, "same name")
        return
    name = look_alikes.get(_skeleton(tool.name))
    if name is not None and name.lower() != tool.name.lower():
        yield _Hit(1.0, "shadowing", "name", f"{tool.name} looks like {name}", "look-alike name")


def _foreign_hits(texts: Sequence[_Text], names: frozenset[str], servers: Sequence[str]) -> Iterator[_Hit]:
    """Descriptions that say how another server's tool is to be used."""
    named = [name for name in servers if len(name) >= 3]
    server = "|".join(map(re.escape, named))
    own = {one.text.replace(" ", "_") for one in texts} | {one.text for one in texts}
    telling = names - own
    whose = re.compile(rf"\b(?:{server})(?:'s)?(?: mcp)? (?:server|tools?)\b", re.IGNORECASE) if named else None
    for one in texts:
        text = remove_invisible(one.text)
        found = next((word for word in _IDENTIFIER.finditer(text) if word[0] in telling), None) if telling else None
        if found is None and whose is not None:
            found = whose.search(text)
        if found is None:
            continue
        around = text[max(0, found.start() - 100) : found.end() + 160]
        weight, words = (1.0, around) if FOREIGN_USE.search(around) else (0.3, found[0])
        yield _Hit(weight, "shadowing", one.where, words, "foreign tool")
