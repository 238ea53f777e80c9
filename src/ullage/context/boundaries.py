"""Finds where a history can be cut: the tail that stays, and requests that are carried along.

The tail is the newest part of a history and stays unchanged. Some messages of the head before it stay verbatim: the
leading and the latest system message, pinned messages, the user's first request and last words (unless the summary
carries them), and open calls. They stay in whole groups, so that the remaining history is valid. `compaction` decides
about the rest.

The user's first request and latest instructions survive every compaction inside the summary message. A request longer
than its share is carried as an excerpt: its beginning, its end and the sentences in between that set a constraint, with
a query that finds the whole text if an archive can be searched.

`assembled` puts a compacted history together in this order: the leading system messages, the summary, what stays of the
head, the tail. Two turns of one side must not be adjacent, and the user must speak first: where the messages between
two such turns were dropped, a bridge message is inserted. Turns that were adjacent in the original stay so. Remaining
entries are the same objects.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, chain
from typing import Literal

from ullage.messages import Media, Message, Text, Thinking, ToolResult, assistant_message, join_texts, user_message
from ullage.tokens import drain

from .summary_text import beginning, ending, read_carried
from .text_protocol import text_results
from .token_weights import Entry, Remake
from .tool_pairs import (
    Answered,
    Pairing,
    gap,
    groups,
    is_instruction,
    is_picture,
    leading,
    lost_in,
    pair,
    said_in,
    speaks,
    spoken_in,
)

__all__ = [
    "Bridge",
    "Parting",
    "Reading",
    "Requests",
    "Side",
    "assembled",
    "bridges",
    "caption_of",
    "excerpt",
    "read_history",
    "requests_of",
    "tail_weights",
    "words_of",
]

_TAG = re.compile(r"<([A-Za-z][\w-]*)[^<>]*>")
_FIRM = re.compile(
    r"\b(?:must|never|always|only|solely|exclusively|strictly|don['’]?t|do not|cannot|can['’]?t|may not|shall|without"
    r"|except|unless|until|avoid|refrain|ensure|make sure|(?:has|have|had) to|at (?:most|least)|no (?:more|less"
    r"|fewer|later)"
    r"|nothing|nobody|none of|exactly|forbidden|prohibited|not (?:allowed|permitted)|disallowed|banned|off[- ]limits"
    r"|hands off|mandatory|obligatory|compulsory|deadline|beware|under no circumstances|by no means|(?:stay"
    r"|keep|stick) "
    r"(?:away|below|under|within|to|out)|limit (?:yourself|it|them|the)|(?:max|min)imum|(?:won|isn|aren|mustn"
    r"|shouldn)['’]?t"
    r"|nicht|nie|niemals|immer|nur|muss|musst|müssen|darf|darfst|dürfen|ohne|höchstens|mindestens|maximal|spätestens"
    r"|verboten|untersagt|vermeide|vermeiden|ausschließlich|unbedingt|kein|keine|keinen|keinem|keiner"
    r"|não|nunca|sempre|apenas|somente|deve|devem|sem|proibid[oa]|no máximo|pelo menos|evite|obrigatóri[oa]"
    r"|siempre|debe|debes|deben|solo|sólo|sin|no (?:puede|puedes|pueden|se|debe|debes|deben|hay que)|ningún|ninguna"
    r"|prohibid[oa]|obligatori[oa]|como máximo|al menos|jamais|toujours|seulement|uniquement|doit|doivent|dois"
    r"|devez|sans"
    r"|interdit|interdite|évite|évitez|obligatoire|au plus|au moins|il faut|pas de|ne [^.!?\n]{1,40}? pas"
    r"|n['’][^.!?\n]{1,40}? pas"
    r"|non (?:deve|devi|può|puoi|si)|mai|sempre|soltanto|vietato|devi|senza|al massimo|almeno|niet|nooit|altijd"
    r"|moet|alleen"
    r"|zonder|nie wolno|nigdy|zawsze|musi|musisz|tylko|bez)\b"
    r"|必须|必須|不要|不得|不能|不可|不许|禁止|务必|只能|仅限|最多|至少|切勿|请勿|してはいけない|しないで|しないこと|必ず|以内|以下|未満|のみ|だけ|てはならない|超過|仅可|只可"
    r"|하지 ?마|반드시|금지|절대|нельзя|никогда|всегда|только|долж(?:ен|на|но|ны)|запрещ|обязательно|не более|не менее",
    re.IGNORECASE,
)
"""Words with which people set limits, in common languages."""
_SOFT = re.compile(
    r"\b(?:should|needs? to|required?|requires|requirements?|limit(?:s|ed)?|important|before|after|instead of"
    r"|rather than"
    r"|keep|leave|stop|stay|below|above|within|under|over|up to|max|min|budget|not|no|prefer|use|please|allowed|careful"
    r"|soll|sollte|sollen|bitte|bis|debería|por favor|deveria|devrait|devraient|dovrebbe)\b",
    re.IGNORECASE,
)
"""Words that often set limits. Their sentences are carried if there is room."""
_WRAPPED = r"\n(?=[ \t]*[^\W\d_A-ZÀ-ÖØ-Þ\u3040-\u9fff])"
"""A line break within a sentence: the next line begins with a small letter."""
_SENTENCE = re.compile(rf"(?:[^\n]|{_WRAPPED})+?(?:[.!?](?=\s)|[。！？]|(?!{_WRAPPED})(?=\n)|\Z)")
_ASKED = re.compile(
    r"[?？]\W*$|\b(?:please|pls|(?:can|could|would|will) you|help me|tell me|show me|let me know|let['’]s"
    r"|I(?:['’]d like| want| need| think)|we (?:want|need)|your (?:task|job|goal)|why (?:is|does|do|did|are)|bitte"
    r"|por favor|s['’]il (?:te|vous) pla[iî]t)\b|请|お願い|ください|해 ?주세요|пожалуйста",
    re.IGNORECASE,
)
"""Words with which people ask for something."""
_TOLD = re.compile(
    r"^\W*(?:(?:also|and|then|next|finally|first|afterwards|instead|otherwise|if \w+ing)\b,? )?"
    r"(?:add|answer|ask|assume|begin|build|call|change|check|commit|convert|copy|create|cut|delete|deploy|describe|document|drop|end|exclude|explain|fix"
    r"|follow|format|give|handle|hide|ignore|implement|include|install|keep|leave|link|list|log|make|mark|measure|merge|move"
    r"|name|note|open|pick|print|publish|push|put|quote|read|remember|remove|rename|replace|reply|report|return|reuse|review"
    r"|rewrite|round|run|save|say|send|set|show|skip|sort|split|start|stay|store|summari[sz]e|switch|tag|take|target|test"
    r"|translate|treat|trim|try|turn|update|use|validate|verify|wait|wrap|write"
    r"|antworte|benenne|beginne|behalte|benutze|erstelle|frag|frage|füge|gib|lass|lasse|lösche|mach|mache|nenne|nimm|nutze"
    r"|prüfe|schreib|schreibe|setze|speichere|teste|verwende|zeig|zeige"
    r"|añade|agrega|borra|cambia|crea|deja|elimina|escribe|guarda|haz|muestra|pregunta|prueba|responde|usa|utiliza"
    r"|adicione|altere|apague|crie|deixe|escreva|faça|mantenha|mostre|pergunte|responda|teste|use"
    r"|ajoute|change|crée|demande|écris|fais|garde|laisse|montre|réponds|supprime|teste|utilise|vérifie)\b",
    re.IGNORECASE,
)
"""Sentences that tell what to do."""
_BLOCK = re.compile(r"^(```+|~~~+).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
"""A fenced block, in which people quote what is not their own."""
_RANK_BESIDE = 5
"""Rank of a sentence that sets no limit itself and is beside one that does."""
_REPEATED, _ALIKE = 6, 3
"""How many sentences are the same, or begin with the same so many words, if a program or a document has them."""
_OTHERS = 10
"""Rank added to such sentences."""
_PARAGRAPH = re.compile(r"[^\n]*\S[^\n]*(?:\n[ \t]*\S[^\n]*)*")
_PROSE = 0.3
"""Share of a text's lines that are sentences. Below it the text is data, and its sentences are a person's own."""
_OWN, _OWN_LINES, _FEW = 1_200, 8, 12
"""Most characters and lines of a paragraph between data that may be a person's own, and most such paragraphs: more of
them are part of a document."""
_CODE = re.compile(r"[ \t]*(?:#|//|/\*|\*|--|>|<|\||[-+]{3})")
"""Beginnings of lines that are comments, quotations or markup."""
_LONGEST = 400
"""Most characters of a sentence that is carried. A longer one is data."""
_WORD = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile(r"\d+")
_GIVEN = re.compile(r"[\"'`(\[{][^\"'`)\]}]*[\"'`)\]}]|\S*[/\\.:_=]\S+|\S*\d\S*")
_LETTERS = 0.65
"""Share of letters and spaces in a sentence. A line with less is from a log."""
_BRIEFEST = 8
"""Fewest characters of a meaningful sentence."""
_BULLETS = "-*•0123456789.) \t\n"
_WORDS, _WIDE_WORDS, _SENTENCE_LETTERS = 4, 8, 0.8
"""Fewest words of a line that is a sentence, fewest letters in a script without spaces, and its share of letters and
spaces."""
_REMINDED = 3
"""Number of times that the same words occur beside results before they count as a program's reminder."""
_OWN_SHARE = 0.8
"""Largest share of an excerpt for the sentences before and behind pasted data."""
_DATA, _LONG_LINE = 2, 2_000
"""Lines that are no sentences, one after the other, with which data begin, and characters of a line that is data by
itself."""
_FULL, _GROWTH = 0.85, 3.0
"""Share of its room that an excerpt fills if possible, and the largest factor by which it grows at once."""
_LIMITS = 0.5
"""Largest share of an excerpt for constraints."""
_TRIES = 8


@dataclass(frozen=True, slots=True)
class Requests:
    """Places of the user's requests in a history."""

    first: tuple[int, ...]
    """The first words from the user's side, and the first that a person certainly typed, if those are others."""
    later: tuple[int, ...]
    """What a person typed after that, in order, and the last words from the user's side."""
    last: frozenset[int]
    """The last words from the user's side, and the last that a person certainly typed, if those are others."""


@dataclass(frozen=True, slots=True)
class _Limit:
    """A sentence of a longer text that is kept when the text is cut."""

    start: int
    text: str
    rank: int
    """0 for the sentence that is kept first."""
    far: int
    """Characters between it and the end of the text at which a person speaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The analysis of a history. It is computed once, since a compaction uses it many times."""

    messages: tuple[Message, ...]
    pairing: Pairing
    """Calls and their results."""
    text_results: tuple[Answered, ...]
    """Results that arrive as text."""
    requests: Requests

    @property
    def answered(self) -> list[Answered]:
        """Return results of both kinds, in order."""
        return sorted((*self.pairing.answered, *self.text_results), key=lambda one: one.place)


def read_history(entries: Sequence[Entry]) -> Reading:
    messages = tuple(entry.message for entry in entries)
    results = text_results(messages)
    return Reading(
        messages=messages,
        pairing=pair(messages),
        text_results=results,
        requests=_requests(entries, {one.place for one in results}),
    )


def requests_of(entries: Sequence[Entry]) -> Requests:
    """Return the requests of a history. For histories that are read for nothing else."""
    return _requests(entries, {one.place for one in text_results([entry.message for entry in entries])})


def _requests(entries: Sequence[Entry], results: Set[int]) -> Requests:
    """Return the requests of a history, excluding tool output in the user's role.

    Programs speak in the user's turn too: they put reminders beside results, images behind them, and their own words in
    tags. Of these only the first and the last count. After a summary there is no first request, since the summary has
    it, unless it stayed beside the summary because text cannot carry it.
    """
    said = [place for place, entry in enumerate(entries) if _has_words(entry) and place not in results]
    before = [None, *(entry.message for entry in entries)]
    beside = {place: shape for place in said if (shape := _beside_results(entries[place].message))}
    often = Counter(beside.values())
    typed = [
        place
        for place in said
        if _is_typed(entries[place].message, before[place])
        or (place in beside and often[beside[place]] < _REMINDED)
        or _spoken_by(entries[place].message)
    ]
    first = {*said[:1], *typed[:1]}
    earlier = [read_carried(join_texts(entry.message.parts)) for entry in entries if entry.kind == "summary"]
    if any(one is not None and one.request for one in earlier):
        first = set[int]()
    elif earlier:
        first = {place for place in first if words_of(entries[place].message) is None}
    later = {*typed, *said[-1:]} - first
    return Requests(tuple(sorted(first)), tuple(sorted(later)), frozenset((*said[-1:], *typed[-1:])))


def _beside_results(message: Message) -> str:
    """Return the shape of the text beside results if there are words outside of tags; otherwise an empty string."""
    if not _brings_results(message):
        return ""
    texts = [part.text.strip() for part in message.parts if isinstance(part, Text)]
    return _DIGITS.sub("0", "\n".join(text for text in texts if not _is_tagged(text))).casefold()


def _spoken_by(message: Message) -> str:
    """Return what the user says within the results that a message contains."""
    results = (part for part in message.parts if isinstance(part, ToolResult))
    return "\n\n".join(filter(None, (spoken_in(join_texts(one.parts)) for one in results)))


def words_of(message: Message) -> str | None:
    """Return the text of a message; None if it contains anything that text cannot carry."""
    parts = [part for part in message.parts if not isinstance(part, ToolResult)]
    if not all(isinstance(part, Text) for part in parts):
        return None
    text = join_texts(parts)
    return "\n\n".join(filter(None, (spoken_in(text) or text, _spoken_by(message))))


def caption_of(message: Message) -> str | None:
    """Return the text of a message with media, with the kind of each medium in its place: `[image]`. None if it has no
    text, or anything else that text cannot carry."""
    parts = [part for part in message.parts if not isinstance(part, ToolResult)]
    if not all(isinstance(part, Text | Media) for part in parts) or not join_texts(parts).strip():
        return None
    return "\n".join(f"[{part.kind}]" if isinstance(part, Media) else join_texts((part,)) for part in parts)


def excerpt(text: str, room: int, count: Callable[[str], int], *, recalls: bool) -> str:
    """Return at most `room` tokens of a text: all of it, or its beginning, its end and its constraints, with a gap that
    says how much is left out and how to find it."""
    tokens = count(text)
    if tokens <= room:
        return text
    query = said_in(text) if recalls else None
    limits = list(_limits(text))
    own = _own_ends(text, int(_OWN_SHARE * room), count)
    share, best = 1.0, ""
    for _ in range(_TRIES):
        half = int(len(text) * min(0.98, share * room / tokens) / 2)
        between = int(min(1.0, share) * _LIMITS * room)
        made = _cut(text, half, own, limits, between, (count, tokens, query))
        size = count(made)
        if size > room:
            share *= 0.95 * room / size
        else:
            best = max(best, made, key=len)
            if size >= _FULL * room:
                break
            # The ends of a text may have far fewer tokens than its middle, such as words around encoded data.
            share *= min(_GROWTH, 0.98 * room / size)
    return best


def _cut(  # noqa: PLR0913, PLR0917
    text: str,
    half: int,
    own: tuple[int, int],
    limits: Sequence[_Limit],
    room: int,
    counted: tuple[Callable[[str], int], int, str | None],
) -> str:
    """Return about `half` characters of either side of a text, at least its `own` ends, and the constraints in between
    that fit `room` tokens."""
    count, tokens, query = counted
    half = max(1, half)
    least, given = max(1, half // 5), half
    while True:
        head, tail = _whole_lines(text, max(given, own[0]), max(given, own[1]))
        end = len(text) - len(tail)
        inner = [limit for limit in limits if limit.start + len(limit.text) > len(head) and limit.start < end]
        kept, used = set[_Limit](), 0
        for limit in sorted(inner, key=lambda one: (one.rank, one.far)):
            size = count(limit.text) + 3
            if used + size <= room:
                used += size
                kept.add(limit)
        # The constraints take their room from the beginning and the end, which then leave more in between.
        left = max(least, half - sum(len(limit.text) for limit in kept) // 2)
        if left >= given:
            break
        given = left
    between = "".join(f"- {limit.text}\n" for limit in inner if limit in kept)
    lost = tokens - count(head) - count(tail) + lost_in(text[len(head) : end])
    return f"{head.rstrip()}\n{gap(lost, (), query)}\n{between}{tail.lstrip()}"


def _whole_lines(text: str, first: int, last: int) -> tuple[str, str]:
    """Return so many characters of either side of a text, less if a line or a word would be a stump."""
    head, tail = text[:first], text[max(first, len(text) - last) :]
    line = head.rfind("\n") + 1
    head = head[:line] if line > first // 2 else beginning(text, first)
    line = tail.find("\n") + 1
    return head, tail[line:] if 0 < line < len(tail) // 2 else ending(text, len(tail))


def _own_ends(text: str, room: int, count: Callable[[str], int]) -> tuple[int, int]:
    """Return how many characters at the beginning and at the end of a text are sentences before data begin: what a
    person wrote around what was pasted. 0 where they do not fit the room, or where all of the text is sentences."""
    lines = text.split("\n")
    first = _sentences_before_data(lines)
    last = _sentences_before_data(lines[::-1])
    if max(first, last) > len(text) // 2:
        return 0, 0
    head, tail = count(text[:first]) if first else 0, count(text[len(text) - last :]) if last else 0
    if head + tail <= room:
        # The line before the first of the last sentences ends outside.
        return first, last + 1 if last else 0
    return (first, 0) if head <= room and (head <= tail or tail > room) else (0, last + 1 if tail <= room else 0)


def _sentences_before_data(lines: Iterable[str]) -> int:
    """Return the characters of the leading lines up to the last sentence before several lines that are data."""
    size, told, data = 0, 0, 0
    for line in lines:
        size += len(line) + 1
        if _is_sentence(line):
            told, data = size, 0
        elif line.strip():
            data += 1
            if data >= _DATA or len(line) > _LONG_LINE:
                break
    return told


def _limits(text: str) -> Iterator[_Limit]:
    """Yield what a person asks for or forbids, in order, each once. Of sentences that differ only in numbers, the
    first.

    A sentence that occurs several times, begins like several others or is quoted in a block is a program's or a
    document's. Such sentences are carried only after all others.
    """
    own = own if len(own := list(_own_paragraphs(text))) <= _FEW else []
    quoted = [found.span() for found in _BLOCK.finditer(text)]
    sentences = [one for found in _SENTENCE.finditer(text) for one in _lines_of(found)]
    ranked = [(start, sentence, rank) for start, sentence in sentences if (rank := _rank(sentence)) is not None]
    beside = list(_beside_limits(text, sentences, ranked))
    shapes, beginnings = Counter[str](), Counter[str]()
    for _, sentence, _ in ranked:
        shape = _shape(sentence)
        shapes[shape] += 1
        beginnings[_beginning(sentence)] += shapes[shape] == 1
    lines = text.split("\n")
    begins, ends = _sentences_before_data(lines) > 0, _sentences_before_data(lines[::-1]) > 0
    seen = set[str]()
    for start, sentence, rank in sorted((*((*one, 0) for one in own), *ranked, *beside)):
        shape = _shape(sentence)
        if shape in seen:
            continue
        seen.add(shape)
        is_alike = shapes[shape] >= _REPEATED or beginnings[_beginning(sentence)] >= _REPEATED
        is_quoted = any(first < start < last for first, last in quoted)
        far = [start] * (begins or not ends) + [len(text) - start] * (ends or not begins)
        yield _Limit(start, sentence, rank + _OTHERS if is_alike or is_quoted else rank, min(far))


def _beside_limits(
    text: str, sentences: Sequence[tuple[int, str]], ranked: Sequence[tuple[int, str, int]]
) -> Iterator[tuple[int, str, int]]:
    """Yield other sentences of short paragraphs in which a person sets limits: `The exit code is 3` between two lines
    that say what must not be."""
    firm = [start for start, _, rank in ranked if rank < _RANK_BESIDE - 1]
    known = {start for start, _, _ in ranked}
    starts = [start for start, _ in sentences]
    for found in _PARAGRAPH.finditer(text):
        first, last = found.span()
        if last - first > _OWN or bisect_left(firm, first) == bisect_left(firm, last):
            continue
        for start, sentence in sentences[bisect_left(starts, first) : bisect_left(starts, last)]:
            if start not in known and _BRIEFEST <= len(sentence) <= _LONGEST:
                yield start, sentence, _RANK_BESIDE


def _shape(sentence: str) -> str:
    return _DIGITS.sub("0", sentence.casefold())


def _beginning(sentence: str) -> str:
    """Return the first words of a sentence without what differs between sentences of a program (quotations, paths,
    numbers), or its first characters in a script without spaces."""
    words = _GIVEN.sub("_", sentence.casefold()).split(maxsplit=_ALIKE)
    return " ".join(words[:_ALIKE]) if len(words) > _ALIKE else sentence[: 2 * _ALIKE]


def _rank(sentence: str) -> int | None:
    """Return how likely it is that a person meant something by a sentence, from 1 on; None if it is never carried."""
    if not _BRIEFEST <= len(sentence) <= _LONGEST:
        return None
    letters = sum(map(len, _WORD.findall(sentence))) + sum(map(str.isspace, sentence))
    if letters < _LETTERS * len(sentence):
        return None
    kinds = (_FIRM, _ASKED, _TOLD, _SOFT)
    return next((rank for rank, kind in enumerate(kinds, 1) if kind.search(sentence)), None)


def _lines_of(found: re.Match[str]) -> Iterator[tuple[int, str]]:
    """Yield a sentence and its position, or the lines of a text that is too long to be one sentence."""
    whole = found[0]
    start = found.start()
    for line in whole.split("\n") if len(whole) > _LONGEST else [whole]:
        bare = line.lstrip(_BULLETS)
        yield start + len(line) - len(bare), bare.rstrip()
        start += len(line) + 1


def _own_paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield paragraphs of sentences between lines that are data: what a person wrote beside what was pasted."""
    lines = [line for line in text.split("\n") if line.strip()]
    if sum(map(_is_sentence, lines)) >= _PROSE * len(lines):
        return
    for found in _PARAGRAPH.finditer(text):
        said = found[0].strip()
        rows = said.split("\n")
        is_brief = _BRIEFEST <= len(said) <= _OWN and len(rows) <= _OWN_LINES
        if is_brief and not any(map(_CODE.match, rows)) and 2 * sum(map(_is_sentence, rows)) >= len(rows):
            yield found.start() + found[0].index(said), said


def _is_sentence(line: str) -> bool:
    words = _WORD.findall(line)
    letters = sum(map(len, words))
    is_long = len(words) >= _WORDS or (letters >= _WIDE_WORDS and not line.isascii())
    if line.isascii() and _WORDS * line.count(" ") < len(words):
        return False
    return is_long and letters + line.count(" ") > _SENTENCE_LETTERS * len(line.strip())


def _has_words(entry: Entry) -> bool:
    if entry.kind != "message" or entry.message.role not in ("user", "tool"):
        return False
    is_spoken = entry.message.role == "user" and any(
        isinstance(part, Media) or (isinstance(part, Text) and part.text.strip()) for part in entry.message.parts
    )
    return is_spoken or bool(_spoken_by(entry.message))


def _is_typed(message: Message, before: Message | None) -> bool:
    if not speaks(message):
        return False
    if is_picture(message):
        return before is None or not _brings_results(before)
    return not all(_is_tagged(part.text.strip()) for part in message.parts if isinstance(part, Text))


def _brings_results(message: Message) -> bool:
    return message.role == "tool" or any(isinstance(part, ToolResult) for part in message.parts)


def _is_tagged(text: str) -> bool:
    """Return whether a text is one element from its first to its last character."""
    opening = _TAG.match(text)
    return not text or (opening is not None and text.endswith(f"</{opening[1]}>"))


Side = Literal["user", "assistant"]
"""The side of a turn. Results are in the user's turn (Anthropic, Gemini) or count as such."""
Bridge = Callable[[Side], Entry]
"""Makes a short message of that side."""
_ACROSS: dict[Side, Side] = {"user": "assistant", "assistant": "user"}
_ASSISTANTS = "Understood. I go on from there."
_USERS = "[Messages were removed here to make room. Go on.]"


def bridges(scale: Remake) -> Bridge:
    """Return a function that makes bridges in the format of a history, each side's once."""

    @cache
    def bridge(side: Side) -> Entry:
        native = user_message(scale.format, _USERS) if side == "user" else assistant_message(scale.format, _ASSISTANTS)
        (entry,) = drain(scale.entries((native,)))
        return replace(entry, kind="bridge")

    return bridge


def assembled(
    summary: Entry | None, entries: Sequence[Entry], places: Sequence[int], bridge: Bridge
) -> tuple[Entry, ...]:
    """Return the entries at these places in order, with a summary of the others."""
    return tuple(_laid(summary, entries, places, bridge))


def _laid(summary: Entry | None, entries: Sequence[Entry], places: Sequence[int], bridge: Bridge) -> Iterator[Entry]:
    opening = leading([entry.message for entry in entries])
    yield from (entries[place] for place in places if place < opening)
    behind: Side | None = None
    since = after = opening
    is_parted = summary is not None
    if summary is not None:
        yield summary
        behind = "user"
    for place in (place for place in places if place >= opening):
        side, is_parted = _side(entries[place].message), is_parted or place > after
        after = place + 1
        if side is not None:
            if is_parted and side == (behind or "assistant"):
                across = _ACROSS[side]
                dropped = (entry for entry in entries[since:place] if entry.kind == "bridge")
                # An earlier bridge is used again.
                yield next((entry for entry in dropped if _side(entry.message) == across), None) or bridge(across)
            behind, since, is_parted = side, after, False
        yield entries[place]


def _side(message: Message) -> Side | None:
    """Return the side of a message; None for system messages, which are no turn."""
    if is_instruction(message):
        return None
    return "assistant" if message.role == "assistant" else "user"


class Parting:
    """A history that is analysed once and can be cut at several places."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.reading = read_history(entries)
        self._messages = self.reading.messages
        self._groups = groups(self._messages, self.reading.pairing, self.reading.text_results)
        self._weights = tail_weights(entries)
        self._group_at = [group for group in self._groups for _ in group]
        # The places of single messages that stay wherever the history is cut.
        pairing = self.reading.pairing
        messages = [entry.message for entry in entries]
        pinned = (place for place, entry in enumerate(entries) if entry.pinned)
        spoken = range(leading(messages))
        latest = [place for place, one in enumerate(messages) if is_instruction(one)][-1:]
        self._bound = frozenset((*pinned, *spoken, *latest, *_open(messages, pairing)))
        self._turn = max((place for place, one in enumerate(self._messages) if speaks(one)), default=-1)

    @property
    def requests(self) -> Requests:
        return self.reading.requests

    @property
    def places(self) -> list[int]:
        """Places at which a tail may begin."""
        return [group.start for group in self._groups]

    def cut(self, room: int) -> int:
        """Return the place at which the tail begins: as early as the tail weighs at most `room`, and not behind the
        last group, however large that is."""
        places = self.places
        if not places:
            return 0
        first = bisect_left(places, True, key=lambda place: self._weights[place] <= room)
        return places[min(first, len(places) - 1)]

    def stays(self, cut: int, carried: Collection[int] = ()) -> tuple[int, ...]:
        """Return the places before the cut that must stay. `carried` are requests whose words are in the summary."""
        bound = self._bound.union({*self.requests.first, *self.requests.last}.difference(carried))
        staying = sorted({place for one in bound for place in self._group_at[one] if place < cut})
        return tuple(sorted({*staying, *self._thought(staying, cut)}))

    def _thought(self, staying: Sequence[int], cut: int) -> range:
        """Return the thinking with which an unfinished turn of calls began.

        Anthropic and other providers that require thinking to be sent back accept an unfinished turn only if it begins
        with thinking. A remainder that begins with calls alone is therefore preceded by the latest earlier step with
        thinking.
        """
        nothing = range(0)
        if cut <= self._turn:
            return nothing
        left = chain((place for place in staying if place > self._turn), range(cut, len(self._messages)))
        first = next((place for place in left if self._messages[place].role == "assistant"), None)
        if first is None or _thinks(self._messages[first]):
            return nothing
        thoughts = (place for place in range(first - 1, self._turn, -1) if _thinks(self._messages[place]))
        latest = next(thoughts, None)
        return nothing if latest is None else self._group_at[latest]


def tail_weights(entries: Sequence[Entry]) -> list[int]:
    """Return the weight from each place to the end; one more element than there are entries."""
    backwards = accumulate((entry.weight.tokens for entry in reversed(entries)), initial=0)
    return list(backwards)[::-1]


def _open(messages: Sequence[Message], pairing: Pairing) -> Iterator[int]:
    """Yield calls of the assistant's last turn without a result, which may still arrive."""
    last = max((place for place, one in enumerate(messages) if one.role == "assistant"), default=-1)
    while last > 0 and messages[last - 1].role == "assistant":
        last -= 1
    yield from (call.place for call in pairing.unanswered if call.place >= last)


def _thinks(message: Message) -> bool:
    return message.role == "assistant" and any(isinstance(part, Thinking) for part in message.parts)
