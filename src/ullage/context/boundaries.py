"""Finds where a history can be cut: the tail that stays, and requests that are carried along.

Where the tail of a history begins, and which messages of the head before it stay.

The tail is the newest part of a history that is left as it is. Of the head before it stay word for word: the leading
and the latest system message, what is pinned, the user's first request and last words (unless the summary carries
them), and calls that are still open. All of these in whole groups, so that what remains is a valid history again. What
becomes of the rest, others decide.

What the user asked for, and how much of it is carried through a compaction to the letter.

The first request and the latest instructions outlive every compaction inside the summary message. What is longer than
its share is carried as an excerpt: its beginning, its end and the sentences between them that set a constraint, with a
query that finds the whole where an archive can be searched.

what the system says first · the summary · what stays of the head · the tail

Two turns of one side never come to stand side by side, and the user keeps the first word: where something was let go
between two such turns, a bridge takes its place. What stood side by side from the first is left so. Entries that remain
are the same objects.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, chain
from typing import Literal

from ullage.messages import Media, Message, Text, Thinking, ToolResult, assistant_message, join_texts, user_message
from ullage.tokens import drain

from .summary_text import beginning, ending
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
    r"|必须|必須|不要|不得|不能|不可|不许|禁止|务必|只能|仅限|最多|至少|切勿|请勿|してはいけない|しないで|しないこと|必ず|以内|以下に"
    r"|하지 ?마|반드시|금지|절대|нельзя|никогда|всегда|только|долж(?:ен|на|но|ны)|запрещ|обязательно|не более|не менее",
    re.IGNORECASE,
)
"""Words with which people set limits, in the languages that are often met."""
_SOFT = re.compile(
    r"\b(?:should|needs? to|required?|requires|requirements?|limit(?:s|ed)?|important|before|after|instead of"
    r"|rather than"
    r"|keep|leave|stop|stay|below|above|within|under|over|up to|max|min|budget|not|no|prefer|use|please|allowed|careful"
    r"|soll|sollte|sollen|bitte|bis|debería|por favor|deveria|devrait|devraient|dovrebbe)\b",
    re.IGNORECASE,
)
"""Words that often do, and are carried where there is room."""
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
_PARAGRAPH = re.compile(r"[^\n]*\S[^\n]*(?:\n[ \t]*\S[^\n]*)*")
_PROSE = 0.3
"""The share of a text's lines that are sentences under which the text is data, and what sentences there are in it, a
person's own."""
_OWN, _OWN_LINES, _FEW = 1_200, 8, 12
"""Characters and lines of a paragraph between data that may be a person's own, and how many of them there are at most:
more are part of a document."""
_CODE = re.compile(r"[ \t]*(?:#|//|/\*|\*|--|>|<|\||[-+]{3})")
"""How lines begin that are comments, quotations or markup."""
_LONGEST = 400
"""Characters of a sentence that is carried; a longer one is data."""
_WORD = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile(r"\d+")
_LETTERS = 0.65
"""The share of a sentence that is letters and spaces; what has less is a line of a log."""
_BRIEFEST = 8
"""Characters of a sentence that says something."""
_BULLETS = "-*•0123456789.) \t\n"
_WORDS, _WIDE_WORDS, _SENTENCE_LETTERS = 4, 8, 0.8
"""Words of a line that is a sentence, or letters where a script has no spaces, and the share of it that is letters and
spaces."""
_REMINDED = 3
"""How often the same words stand beside results before they are a program's reminder."""
_LIMITS = 0.5
"""The share of an excerpt that constraints may have."""
_TRIES = 8


@dataclass(frozen=True, slots=True)
class Requests:
    """The places of what the user asked for in a history."""

    first: tuple[int, ...]
    """The first words from the user's side, and the first that surely a person typed, where those are others."""
    later: tuple[int, ...]
    """What a person typed after that, in order, and the last words from the user's side."""
    last: frozenset[int]
    """The last words from the user's side, and the last that surely a person typed, where those are others."""


@dataclass(frozen=True, slots=True)
class _Limit:
    """A sentence of a longer text that outlives its being cut."""

    start: int
    text: str
    rank: int
    """0 for what is kept first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a history is made of, found once for all who ask: a compaction looks at the same history many times."""

    messages: tuple[Message, ...]
    pairing: Pairing
    """Calls and their results."""
    text_results: tuple[Answered, ...]
    """Results that arrive as text."""
    requests: Requests

    @property
    def answered(self) -> list[Answered]:
        """Results of both kinds, in order."""
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
    """The requests of a history that is not read for anything else."""
    return _requests(entries, {one.place for one in text_results([entry.message for entry in entries])})


def _requests(entries: Sequence[Entry], results: Set[int]) -> Requests:
    """Tool output in the user's role is no request. Programs speak in the user's turn too: they put reminders beside
    results, pictures behind them, and their own words into tags; of these only the first and the last count. Behind a
    summary there is no first request: the summary has it."""
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
    is_begun = any(entry.kind == "summary" for entry in entries)
    first = set[int]() if is_begun else {*said[:1], *typed[:1]}
    later = {*typed, *said[-1:]} - first
    return Requests(tuple(sorted(first)), tuple(sorted(later)), frozenset((*said[-1:], *typed[-1:])))


def _beside_results(message: Message) -> str:
    """The shape of what is said beside results, where words outside of tags are; empty where nothing is."""
    if not _brings_results(message):
        return ""
    texts = [part.text.strip() for part in message.parts if isinstance(part, Text)]
    return _DIGITS.sub("0", "\n".join(text for text in texts if not _is_tagged(text))).casefold()


def _spoken_by(message: Message) -> str:
    """What the user says within the results that a message brings."""
    results = (part for part in message.parts if isinstance(part, ToolResult))
    return "\n\n".join(filter(None, (spoken_in(join_texts(one.parts)) for one in results)))


def words_of(message: Message) -> str | None:
    """What a message says, where text alone says it; None where it shows something that a text cannot carry."""
    parts = [part for part in message.parts if not isinstance(part, ToolResult)]
    if not all(isinstance(part, Text) for part in parts):
        return None
    text = join_texts(parts)
    return "\n\n".join(filter(None, (spoken_in(text) or text, _spoken_by(message))))


def excerpt(text: str, room: int, count: Callable[[str], int], *, recalls: bool) -> str:
    """At most `room` tokens of a text: all of it, or its beginning, its end and its constraints, with a gap that says
    how much is left out and how to find it."""
    tokens = count(text)
    if tokens <= room:
        return text
    query = said_in(text) if recalls else None
    limits = list(_limits(text))
    share, made = 1.0, ""
    for _ in range(_TRIES):
        made = _cut(text, share * room / tokens, limits, int(share * _LIMITS * room), (count, tokens, query))
        size = count(made)
        if size <= room:
            return made
        share *= 0.95 * room / size
    return made if count(made) <= room else ""


def _cut(
    text: str,
    share: float,
    limits: Sequence[_Limit],
    room: int,
    counted: tuple[Callable[[str], int], int, str | None],
) -> str:
    count, tokens, query = counted
    half = max(1, int(len(text) * share / 2))
    least = max(1, int(0.1 * share * len(text)))
    while True:
        head, tail = _whole_lines(text, half)
        end = len(text) - len(tail)
        inner = [limit for limit in limits if limit.start + len(limit.text) > len(head) and limit.start < end]
        kept, used = set[_Limit](), 0
        for limit in sorted(inner, key=lambda one: (one.rank, len(one.text))):
            size = count(limit.text) + 3
            if used + size <= room:
                used += size
                kept.add(limit)
        # What the constraints take, the beginning and the end give: then more may lie between these.
        given = max(least, int((len(text) * share - sum(len(limit.text) for limit in kept)) / 2))
        if given >= half:
            break
        half = given
    between = "".join(f"- {limit.text}\n" for limit in inner if limit in kept)
    lost = tokens - count(head) - count(tail) + lost_in(text[len(head) : end])
    return f"{head.rstrip()}\n{gap(lost, (), query)}\n{between}{tail.lstrip()}"


def _whole_lines(text: str, half: int) -> tuple[str, str]:
    """So many characters of either side of a text, less where a line or a word would be a stump."""
    head, tail = text[:half], text[len(text) - half :]
    line = head.rfind("\n") + 1
    head = head[:line] if line > half // 2 else beginning(text, half)
    line = tail.find("\n") + 1
    return head, tail[line:] if 0 < line < half // 2 else ending(text, half)


def _limits(text: str) -> Iterator[_Limit]:
    """What a person asks for or forbids, in order, each once; of sentences that differ by numbers alone, the first."""
    seen = set[str]()
    own = own if len(own := list(_own_paragraphs(text))) <= _FEW else []
    sentences = (one for found in _SENTENCE.finditer(text) for one in _lines_of(found))
    for start, sentence in sorted((*own, *sentences)):
        shape = _DIGITS.sub("0", sentence.casefold())
        rank = 0 if (start, sentence) in own else _rank(sentence)
        if rank is not None and shape not in seen:
            seen.add(shape)
            yield _Limit(start, sentence, rank)


def _rank(sentence: str) -> int | None:
    """How likely it is that a person meant something by a sentence, from 1 on; None for one that is carried nowhere."""
    if not _BRIEFEST <= len(sentence) <= _LONGEST:
        return None
    letters = sum(map(len, _WORD.findall(sentence))) + sum(map(str.isspace, sentence))
    if letters < _LETTERS * len(sentence):
        return None
    return next((rank for rank, kind in enumerate((_FIRM, _ASKED, _SOFT), 1) if kind.search(sentence)), None)


def _lines_of(found: re.Match[str]) -> Iterator[tuple[int, str]]:
    """A sentence and where it begins; the lines of what is too long to be one."""
    whole = found[0]
    start = found.start()
    for line in whole.split("\n") if len(whole) > _LONGEST else [whole]:
        bare = line.lstrip(_BULLETS)
        yield start + len(line) - len(bare), bare.rstrip()
        start += len(line) + 1


def _own_paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs of sentences between lines that are data: what someone wrote beside what they pasted."""
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
    """Whether a text is one element from its first letter to its last."""
    opening = _TAG.match(text)
    return not text or (opening is not None and text.endswith(f"</{opening[1]}>"))


Side = Literal["user", "assistant"]
"""Results are brought in the user's turn (Anthropic, Gemini) or count as such."""
Bridge = Callable[[Side], Entry]
"""Makes a few words of that side."""
_ACROSS: dict[Side, Side] = {"user": "assistant", "assistant": "user"}
_ASSISTANTS = "Understood. I go on from there."
_USERS = "[Messages that stood here were let go to make room. Go on.]"


def bridges(scale: Remake) -> Bridge:
    """Bridges in the format of a history; each side's is made once."""

    @cache
    def bridge(side: Side) -> Entry:
        native = user_message(scale.format, _USERS) if side == "user" else assistant_message(scale.format, _ASSISTANTS)
        (entry,) = drain(scale.entries((native,)))
        return replace(entry, kind="bridge")

    return bridge


def assembled(
    summary: Entry | None, entries: Sequence[Entry], places: Sequence[int], bridge: Bridge
) -> tuple[Entry, ...]:
    """What is at these places of a history, in order, with a summary of what is not."""
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
                yield _found(entries[since:place], _ACROSS[side]) or bridge(_ACROSS[side])
            behind, since, is_parted = side, after, False
        yield entries[place]


def _side(message: Message) -> Side | None:
    """None for what the system says, which is no turn."""
    if is_instruction(message):
        return None
    return "assistant" if message.role == "assistant" else "user"


def _found(let_go: Sequence[Entry], side: Side) -> Entry | None:
    """A bridge of an earlier time that may as well stay."""
    return next((entry for entry in let_go if entry.kind == "bridge" and _side(entry.message) == side), None)


class Parting:
    """A history, looked at once, that may be parted at several places."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.reading = read_history(entries)
        self._messages = self.reading.messages
        self._groups = groups(self._messages, self.reading.pairing, self.reading.text_results)
        self._weights = tail_weights(entries)
        self._group_at = [group for group in self._groups for _ in group]
        # The places of single messages that stay wherever a history is cut.
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
        """At which a tail may begin."""
        return [group.start for group in self._groups]

    def cut(self, room: int) -> int:
        """The place at which the tail begins: as early as it weighs no more than `room`, and never behind the last
        group, however much that weighs."""
        places = self.places
        if not places:
            return 0
        first = bisect_left(places, True, key=lambda place: self._weights[place] <= room)
        return places[min(first, len(places) - 1)]

    def stays(self, cut: int, carried: Collection[int] = ()) -> tuple[int, ...]:
        """The places before the cut of what must remain; `carried` are requests whose words the summary has."""
        bound = self._bound.union({*self.requests.first, *self.requests.last}.difference(carried))
        staying = sorted({place for one in bound for place in self._group_at[one] if place < cut})
        return tuple(sorted({*staying, *self._thought(staying, cut)}))

    def _thought(self, staying: Sequence[int], cut: int) -> range:
        """The thinking under which a turn of calls was begun that still goes on.

        Anthropic, and others who want thinking back, take a turn that has not ended only if it begins with thinking;
        what remains of one and begins with calls alone is led by the latest step before it that has some.
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
    """By place: what weighs from there on to the end; one more than there are entries."""
    backwards = accumulate((entry.weight.tokens for entry in reversed(entries)), initial=0)
    return list(backwards)[::-1]


def _open(messages: Sequence[Message], pairing: Pairing) -> Iterator[int]:
    """Calls of the assistant's last turn that have no result yet; it may still come."""
    last = max((place for place, one in enumerate(messages) if one.role == "assistant"), default=-1)
    while last > 0 and messages[last - 1].role == "assistant":
        last -= 1
    yield from (call.place for call in pairing.unanswered if call.place >= last)


def _thinks(message: Message) -> bool:
    return message.role == "assistant" and any(isinstance(part, Thinking) for part in message.parts)
