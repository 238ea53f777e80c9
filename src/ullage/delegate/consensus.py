"""Asks several models the same question and compares the answers.

`consensus` asks the models in parallel, each once and without fallbacks, since a substitute would count one model
twice. All of it is one call for the budget. A model that fails is named and left out. A judge, if requested, combines
the answers into one.

`agreement` and `groups` compare answers as sets of content words, so that word order and function words do not matter.
Two answers that differ in a number, a name or a negation, or that reverse a relation, disagree whatever else they
share. Only words are compared: two sentences with the same meaning in quite different words count as different, never
the other way round.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, cached_property
from itertools import combinations

import anyio

from ullage.errors import InvalidArguments, UllageError
from ullage.models import Cost

from .attempt import Hear
from .checked_answers import as_one_call, asked, system
from .delegation import Ask, Delegate
from .model_call import Outcome

__all__ = ["Consensus", "agreement", "consensus", "groups"]

_SAME = 0.75
"""Minimum agreement of two answers in one group."""
_SHORT = 4
"""Maximum shared content words for an answer that is part of a longer one to agree with it."""
_BRIEF = 6
"""Maximum content words of two answers for one different word in each to make them disagree."""
_NEARBY = 200
"""Characters around a word that are looked at."""
_LONG = 40
"""Minimum content words for an additional negation to count as a remark instead of a contradiction."""

_ENDS = frozenset(".!?:;\n-*#>")
"""Characters after which a sentence or an item of a list begins."""
_CJK = "\u3040-\u30ff\u3400-\u9fff"
"""Scripts without spaces between words, which are compared by character."""
_COMPARED = r"(?<=[\w)]\s)(?:[<>]=?|[≤≥≠]|[!=]=)(?=\s)"
"""A comparison operator between two things, as opposed to a quotation mark or a tag."""
_COMPUTED = (
    r"(?<=[\w)]\s)[-−+*/×÷^](?=\s(?:[\d(]|[^\W\d_]\b))|(?<=[^\W\d_])[-−+*^](?=[\d(])|(?<=\d)[+*^×÷](?=[\d(]|[^\W\d_]\b)"
)
"""An arithmetic operator between two operands, as opposed to a dash, a list's mark or a hyphen within a word."""
_TOKEN = re.compile(
    rf"{_COMPARED}|&&|\|\||(?<!\w)!(?=\w)|{_COMPUTED}|[$€£¥₹%°]|\d+(?:[/:]\d+)+|(?<!\w)[^\W\d_](?:/[^\W\d_])+(?!\w)|(?<![\w.)])[-−]\d+(?:[.,]\d+)*|[{_CJK}]|[^\W\d_{_CJK}]+(?:\+\+|#)(?!\w)|[^\W\d_{_CJK}]+(?:['’][^\W\d_]+)?|\d+(?:[.,]\d+)*|[^\W]+"
)

_SMALL_TEXT = """
a an the this that these those it its he she they them we you i my your his her our their is are was were be been
being am do does did has have had will would shall should can could may might must of in on at to for from with as
and or but so if then there here which who what where when why how just also very really only about into than by not
no answer answers equals equal namely called named simply indeed certainly course well o os um uma uns umas
de da dos das em na nos nas ao à e é são foi ser está que se por para com como mais el la los las lo un una unos
unas del al en y es son fue con su sus le les l d une des du et est sont au aux dans pour qui ce cette il elle sur
der die ein eine einer eines einem einen den dem und ist sind war zu im von mit auf für er sie gli di della dei
delle è sono che per uno het een zijn van op te voor met dat haben gibt há tem têm tiene tienen heeft
"""
_SMALL = frozenset(_SMALL_TEXT.split())
_LETTERS = frozenset(word for word in _SMALL if len(word) == 1 and word.isascii())
_NEGATIONS_TEXT = """
not no never none neither nor nothing nobody nowhere without cannot n't hardly scarcely barely false incorrect wrong
não nunca jamais nenhum nem sem ni sin ningún nada ne pas aucun sans nicht kein keine keinen nie niemals ohne non mai
nessun senza niet geen nooit zonder 不 没 沒 无 無 ! не нет ни никто ничего никогда нельзя без ingen inte ikke aldrig
"""
_NEGATIONS = frozenset(_NEGATIONS_TEXT.split())
_NEGATED = re.compile("ない|ません|않|아니|없")
"""Negations that are parts of words."""
_RELATIONS_TEXT = """
than before after above below over under around against beats exceeds inside outside from to into towards more less
causes precedes follows implies entails requires contains includes extends inherits imports calls
then on in sur auf sobre que als dan plus moins mehr weniger luego después puis ensuite dann danach depois poi
чем 比 より から 到
"""
_RELATIONS = frozenset(_RELATIONS_TEXT.split()) | _NEGATIONS
"""Words whose two sides are not interchangeable."""
_PLACING_TEXT = "in on at during im am um auf bei seit an en à au aux dans em no na nos nas nel nella durante"
_PLACING = frozenset(_PLACING_TEXT.split())
"""Prepositions of time and place, whose noun may stand anywhere in a sentence."""
_ARTICLES = frozenset("the a an der die das den dem la le les el los las o os il lo".split())  # noqa: SIM905
_RELATIONS_OF_TEXT = """
north south east west northeast northwest southeast southwest left right ahead parent child father mother ancestor
descendant subset superset part
"""
_RELATIONS_OF = frozenset(_RELATIONS_OF_TEXT.split())
"""Further ones where `of` follows."""
_ALTERNATIVES_TEXT = """
on off; up down; before after; above below; over under; inside outside; all some; always sometimes; and or
am pm; in out; only everyone everybody; may must; can must; optional mandatory; optional required
mais menos; more less fewer; && ||
january february march april may june july august september october november december
"""
_ALTERNATIVES = tuple(frozenset(line.split()) for line in re.split(r"[;\n]", _ALTERNATIVES_TEXT.strip()))
"""Groups of words that contradict each other if one answer has one and the other has another."""
_OPPOSED = ("un", "in", "im", "ir", "il", "dis", "non")
"""Prefixes that reverse the meaning of a word."""
_COPULAS_TEXT = "is are was were be equals é es est ist è são son sont sind sono"
_COPULAS = frozenset(_COPULAS_TEXT.split())
_DIGITS_TEXT = """
zero one two three four five six seven eight nine ten eleven twelve
- eins zwei drei vier fünf sechs sieben acht neun zehn
zéro - deux trois quatre cinq - sept huit - dix
cero - - tres cuatro cinco seis siete ocho nueve diez
- - dois três quatro - - sete oito nove dez
- - - tre quattro cinque - sette - - dieci
- - twee drie - vijf zes zeven - negen tien
"""
"""Number words by their number; `-` marks those that are also other words."""
_DIGITS = {
    word: str(number) for line in _DIGITS_TEXT.splitlines() for number, word in enumerate(line.split()) if word != "-"
}
_UNIT_WORDS: Sequence[str] = "one two three four five six seven eight nine".split()  # noqa: SIM905
_TEEN_WORDS: Sequence[str] = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()  # noqa: SIM905
_TEN_WORDS: Sequence[str] = "twenty thirty forty fifty sixty seventy eighty ninety".split()  # noqa: SIM905
_TENS = re.compile(rf"\b({'|'.join(_TEN_WORDS)})(?:[-\s]({'|'.join(_UNIT_WORDS)}))?\b", re.IGNORECASE)
_TEENS = re.compile(rf"\b({'|'.join(_TEEN_WORDS[3:])})\b", re.IGNORECASE)
_AMOUNT = rf"an?|{'|'.join((*_UNIT_WORDS, *_TEEN_WORDS))}|(?<![\d.,])(?>\d+(?:[.,]\d+)*)"
_HUNDREDS = re.compile(rf"\b({_AMOUNT})\s+hundred(?:\s+(?:and\s+)?({_AMOUNT}))?\b", re.IGNORECASE)
_SCALED = re.compile(
    rf"\b({_AMOUNT})[-\s]+(thousand|million|billion|trillion)\b(?:\s+(?:and\s+)?(\d{{1,12}})\b)?", re.IGNORECASE
)
_SCALED_BRIEFLY = re.compile(r"(?<![\w.,])((?>\d+(?:\.\d+)?))(k|M|bn|B)\b")
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12, "k": 3, "M": 6, "bn": 9, "B": 9}
"""Powers of ten by their words and abbreviations."""
_IRREGULAR_TEXT = """
wrote write written write won win made make built build began begin begun begin became become took take taken take
gave give given give went go gone go came come saw see seen see said say told tell found find got get held hold
used use uses use using use
kept keep led lead left leave lost lose met meet paid pay ran run sold sell bought buy spoke speak spoken speak
taught teach thought think knew know known know grew grow grown grow fell fall fallen fall broke break broken break
chose choose chosen choose drew draw drawn draw rose rise risen rise sent send spent spend stood stand bit bite
https https
dozen 12 children child people person men man women woman feet foot cities city countries country
"""
_IRREGULAR: dict[str, str] = dict(zip(_IRREGULAR_TEXT.split()[::2], _IRREGULAR_TEXT.split()[1::2], strict=True))
_SYNONYMS_TEXT = """
begin start commence; end finish conclude; buy purchase; price cost; large big huge; small little tiny
quick fast rapid; allow permit; forbid prohibit ban; locate situate; occur happen; show display; help assist
fix repair; delete remove erase; select choose pick; answer reply respond; contain include; author write
height high tall; length long; width wide; depth deep; weight weigh heavy; age old; car automobile; doctor physician
"""
_SYMBOLS = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "₹": "rupee", "%": "percent", "°": "degree"}
_UNITS_TEXT = """
km kilometer cm centimeter mm millimeter m meter kilometre kilometer centimetre centimeter metre meter mi mile ft foot
kg kilogram g gram mg milligram lb pound lbs pound t ton l liter ml milliliter litre liter ms millisecond s second
sec second secs second min minute mins minute h hour hr hour hrs hour kb kilobyte mb megabyte gb gigabyte tb terabyte
usd dollar eur euro gbp pound c celsius f fahrenheit mph mile kph kilometer kw kilowatt w watt v volt hz hertz
"""
_UNITS: dict[str, str] = dict(zip(_UNITS_TEXT.split()[::2], _UNITS_TEXT.split()[1::2], strict=True))
"""Units by their abbreviations and other spellings, which count as such after a number."""
_UNIT_NAMES = frozenset({*_UNITS.values(), *_SYMBOLS.values()})
_MONTHS = next(line for line in _ALTERNATIVES_TEXT.split("\n") if "january" in line).split()
_ISO_DATE = re.compile(r"(?<![\w-])(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?![\w-])")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b")
_HOUR = re.compile(r"(?<![\d:.,])(\d{1,2})(?::([0-5]\d))?\s?([ap])\.?m\b", re.IGNORECASE)
_PERCENTAGE = re.compile(r"(?<![\d.,])((?>\d+(?:[.,]\d+)*))\s?(?:%|percent\b|per cent\b)", re.IGNORECASE)
_COUNT = re.compile(r"(?<![$€£¥₹\w.,])((?>\d+(?:[.,]\d+)*))\s+(?!percent\b|per cent\b)[^\W\d_]{2,}", re.IGNORECASE)
"""A number of things, such as `50 users`."""
_CHANGE = re.compile(r"\b(by|to)\s+[$€£]?(\d+(?:[.,]\d+)*)", re.IGNORECASE)
"""What tells `by 2` from `to 2`."""
_RATE = re.compile(r"(?<=[^\W\d_])/(h|hr|s|sec|min)\b")
_RATE_UNITS = {"h": "hour", "hr": "hour", "s": "second", "sec": "second", "min": "minute"}
_PROPORTION = re.compile(r"(?<=\d) to (?=\d)")
_GROWTH = re.compile(r"\b[OΘΩ]\(((?:[^()]|\([^()]*\))*)\)")
"""The order of growth of a function, such as `O(n log n)`."""
_POWERS = str.maketrans({"²": "^2", "³": "^3", "’": "'"})
_SPACING = str.maketrans(dict.fromkeys(" *·"))
_CODE = re.compile(
    r"#[0-9a-fA-F]{3,8}\b|\b(?!\d+[^\W\d_]+\b)(?=\w*\d)(?=\w*[A-Za-z])\w{4,}|\b[A-Za-z_]\w+(?:(?:\.|::|->)[A-Za-z_]\w+)+"
)
"""A code of letters and digits, a colour, or a dotted name such as `foo.bar`."""
_COMPOUND = re.compile("(?<![\u3400-\u9fff])[\u3400-\u9fff]{2,3}(?![\u3400-\u9fff])|[\u30a1-\u30fa\u30fc]{2,}")
"""A word between characters of another script, such as `京都` in `京都は日本の首都です`."""
_MINUS = re.compile(r"(?<![\w)] )\b(?:minus|negative|moins|menos)\s+(?=\d)", re.IGNORECASE)
_RATIO = re.compile(r"(?<![\w.,])((?>\d+(?:[.,]\d+)*))\s+(?:out\s+)?of\s+(\d+(?:[.,]\d+)*)")
_INITIALS = re.compile(r"((?:\b[A-Z]\.\s?)+)([A-Z]\w+)")
_NUMERAL = re.compile(r"\b([A-Z]\w+) (I{1,3}|I?V|VI{1,3}|I?X|XI{1,3}|XI?V|XVI{0,3})\b(?!\.\w)")
"""A Roman numeral after a name, as in `World War I` or `Henry VIII`."""
_LISTING = frozenset("and or & y e o u et ou und oder en of".split())  # noqa: SIM905
_CONTRASTS = frozenset("but though although however mas pero mais aber ma maar".split())  # noqa: SIM905
_SPELLINGS = (
    (re.compile(r"(?<=\w{2})our(?=s?$|ed$|ing$|ful$|ite$|able$)"), "or"),
    (re.compile(r"(?<=\w{3})is(?=e[ds]?$|ing$|ation$)"), "iz"),
    (re.compile(r"(?<=\w{2})tre(?=s?$)"), "ter"),
    (re.compile(r"^grey"), "gray"),
)
"""British spellings and the American ones."""
_VERSIONED = re.compile(r"\b(?:version|release|v)\s?\d", re.IGNORECASE)
_ENDINGS = ("ations", "ation", "ings", "ing", "edly", "ies", "ied", "ers", "est", "es", "ed", "er", "ly", "s")


@dataclass(frozen=True)
class _Answer:
    text: str

    @cached_property
    def tokens(self) -> list[str]:
        # `isn't` becomes `is` and `n't`, `A` in `choose A` becomes `A_`, `None` as a value `None_`, and units and their
        # symbols are spelt out.
        tokens: list[str] = []
        # Dates, rates, ordinals, times of day (`15:00` for `3 pm`) and negative numbers are written in one way.
        text = _ISO_DATE.sub(
            lambda found: f"{int(found[3])} {_MONTHS[int(found[2]) - 1].title()} {found[1]}",
            _RATE.sub(lambda found: f" per {_RATE_UNITS[found[1]]}", self.text.translate(_POWERS)),
        )
        text = _PROPORTION.sub(":", text) if "ratio" in text.lower() else text
        text = _HOUR.sub(
            lambda found: f"{int(found[1]) % 12 + 12 * (found[3] in 'pP')}:{found[2] or '00'}",
            _write_number_words(_ORDINAL.sub("", text)),
        )
        text = _MINUS.sub("-", text)
        last = ""
        for found in _TOKEN.finditer(text):
            word, before, ahead = found[0], last, text[max(0, found.start() - _NEARBY) : found.start()]
            last = word
            if word in _SYMBOLS:
                tokens.append(_SYMBOLS[word])
            elif (before[-1:].isdigit() or before == "°") and (unit := _unit(word.lower())) is not None:
                tokens.append(unit)
            elif word == "None" and ahead.rstrip(" `*_\"'")[-1:] not in _ENDS | {""}:
                tokens.append("None_")
            elif word.lower() in _LETTERS and _is_label(word, ahead, text[found.end() : found.end() + _NEARBY]):
                tokens.append(f"{word}_")
            elif word.lower().endswith("n't"):
                tokens.extend((word[:-3], "n't"))
            elif "'" in word:
                head, _, tail = word.partition("'")
                tokens.extend((head,) if tail.lower() in ("s", "re", "ll", "ve", "m", "d") else (head, tail))
            else:
                tokens.append(word)
        return tokens

    @cached_property
    def numbers(self) -> list[str]:
        found = (_DIGITS.get(word.lower(), word) for word in self.tokens)
        return [_number(word) for word in found if word[0].isdigit() or (word[0] in "-−" and len(word) > 1)]

    @cached_property
    def versions(self) -> list[str]:
        """Numbers as they are written, since `2.10` is another version than `2.1`."""
        return [word for word in self.tokens if word[0].isdigit()]

    @cached_property
    def is_versioned(self) -> bool:
        return _VERSIONED.search(self.text) is not None

    @cached_property
    def is_negative(self) -> bool:
        """Whether the answer contains a negation; two negations do not cancel out, since both may be intended."""
        return any(word.lower() in _NEGATIONS for word in self.tokens) or _NEGATED.search(self.text) is not None

    @cached_property
    def content(self) -> frozenset[str]:
        return frozenset(_stem(word) for word in self.tokens if self._has_content(word))

    @cached_property
    def names(self) -> list[str]:
        """Capitalised words in order, except function words, negations and numerals."""
        capitals = [word for word in self.tokens if word[:1].isupper() and self._has_content(word)]
        return [_stem(word) for word in capitals if word.lower() not in _DIGITS]

    def _has_content(self, word: str) -> bool:
        """Return whether a word is neither a function word nor a negation; `MIT` is a name, `mit` is not."""
        if word.lower() in _NEGATIONS:
            return False
        is_acronym = len(word) > 1 and word.isupper() and word != "AM" and not self.text.isupper()
        return is_acronym or word.lower() not in _SMALL

    @cached_property
    def is_list(self) -> bool:
        """Whether the answer only lists things, in an order that means nothing."""
        has_mark = "," in self.text or any(word.lower() in _LISTING for word in self.tokens)
        return has_mark and all(word.lower() in _LISTING or _stem(word) in self.content for word in self.tokens)

    @cached_property
    def is_unspaced(self) -> bool:
        return re.search(f"[{_CJK}]", self.text) is not None

    @cached_property
    def actors(self) -> list[str]:
        """Names in order, except those of times and places, such as `Jahr` in `im Jahr 1989`."""
        found, last, before = list[list[str]](), "", ""
        for word in self.tokens:
            small = word.lower()
            if word[:1].isupper() and _stem(word) in self.names and last not in _PLACING:
                # The order of names in `Phobos and Deimos` means nothing.
                if found and last in _LISTING and before in found[-1]:
                    found[-1].append(_stem(word))
                else:
                    found.append([_stem(word)])
            if small not in _ARTICLES and not word[0].isdigit():
                last, before = small, _stem(last) if last else ""
        return [name for group in found for name in sorted(group)]

    @cached_property
    def sides(self) -> dict[str, frozenset[str]]:
        """The words after each word whose two sides are not interchangeable, or before it if none follows."""
        found, waiting, last = dict[str, frozenset[str]](), list[str](), ""
        often = Counter(_stem(word) for word in self.tokens)
        for word, after in zip(self.tokens, [*self.tokens[1:], ""], strict=False):
            small, stem = word.lower(), _stem(word)
            if small in _RELATIONS or (small in _RELATIONS_OF and after == "of"):
                waiting.append(small)
            elif stem in self.content and often[stem] == 1:  # `option` is on both sides of `option A … option B`
                is_date = stem[0].isdigit() or stem in _MONTHS
                meant = [one for one in waiting if not (is_date and one in _PLACING)]
                found |= {one: found.get(one, frozenset[str]()) | {stem} for one in meant}
                waiting.clear()
                last = stem
        return found | {one: frozenset({last}) for one in waiting if one in _NEGATIONS and last}

    @cached_property
    def beside_numbers(self) -> list[dict[str, list[str]]]:
        """The word before, the word after, the two before and the two after each number that occurs once."""
        order = _order(self)
        found: list[dict[str, list[str]]] = [{}, {}, {}, {}]
        for at, number in enumerate(order):
            if number not in self.numbers or order.count(number) > 1:
                continue
            before, after = ([word for word in part if word not in self.numbers] for part in (order[:at], order[at:]))
            for place, words in enumerate((before[-1:], after[:1], before[-2:], after[:2])):
                found[place][number] = words
        return found

    @cached_property
    def ratios(self) -> list[tuple[str, str]]:
        return [(_number(part), _number(whole)) for part, whole in _RATIO.findall(self.text)]

    @cached_property
    def percentages(self) -> frozenset[str]:
        return frozenset(map(_number, _PERCENTAGE.findall(self.text)))

    @cached_property
    def counts(self) -> frozenset[str]:
        """Numbers of things, which are not percentages."""
        return frozenset(map(_number, _COUNT.findall(self.text)))

    @cached_property
    def changes(self) -> frozenset[tuple[str, str]]:
        """Numbers with the word `by` or `to` before them."""
        return frozenset((word.lower(), _number(number)) for word, number in _CHANGE.findall(self.text))

    @cached_property
    def growths(self) -> list[str]:
        return [said.translate(_POWERS).translate(_SPACING).lower() for said in _GROWTH.findall(self.text)]

    @cached_property
    def codes(self) -> list[str]:
        return [said.lower() for said in _CODE.findall(self.text)]

    @cached_property
    def compounds(self) -> list[str]:
        return _COMPOUND.findall(self.text)

    @cached_property
    def initials(self) -> dict[str, str]:
        """The initials before each family name."""
        return {name: "".join(letters.split()) for letters, name in _INITIALS.findall(self.text)}

    @cached_property
    def numerals(self) -> dict[str, str]:
        """The Roman numeral after each name."""
        return dict(_NUMERAL.findall(self.text))

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(word.lower() for word in self.tokens)


def agreement(answers: Sequence[str]) -> float | None:
    """Return the mean agreement of all pairs, from 0 to 1; None for fewer than two answers."""
    pairs = list(combinations([_Answer(answer) for answer in answers], 2))
    return sum(_compare_answers(*pair) for pair in pairs) / len(pairs) if pairs else None


def groups(answers: Sequence[str]) -> list[list[int]]:
    """Return the indexes of answers that all agree with each other, the largest group first."""
    read = [_Answer(answer) for answer in answers]
    found = list[list[int]]()
    for place, answer in enumerate(read):
        same = next(
            (group for group in found if all(_compare_answers(read[one], answer) >= _SAME for one in group)), None
        )
        if same is None:
            found.append([place])
        else:
            same.append(place)
    return sorted(found, key=len, reverse=True)


def _compare_answers(one: _Answer, other: _Answer) -> float:
    if one.text.split() == other.text.split():
        return 1.0
    # A word that the other answer writes in lower case is not a name, and initials are expanded to the words they
    # abbreviate.
    left = [name for name in one.names if name not in other.content or name in other.names]
    right = [name for name in other.names if name not in one.content or name in one.names]
    named, other_named = _expand_initials(left, right), _expand_initials(right, left)
    if _each_has_extra(named, other_named) or _has_other_names(one, other):
        return 0.0
    if _has_other_numbers(one, other) or _is_turned_round(one, other) or _names_others_first(one, other):
        return 0.0
    if _is_opposed(one, other):
        return 0.0
    left = one.content - set(one.names) | set(named) | (set(one.names) & other.content)
    right = other.content - set(other.names) | set(other_named) | (set(other.names) & one.content)
    if not left or not right:
        is_part = one.words <= other.words or other.words <= one.words
        return float(
            left == right and is_part and one.is_negative == other.is_negative and bool(one.words & other.words)
        )
    if one.is_negative != other.is_negative and min(len(left), len(right)) < _LONG:
        return 0.0
    shared = len(left & right)
    alike = 2 * shared / (len(left) + len(right))
    if shared < min(len(left), len(right)):
        # Each has a word that the other lacks; in a short answer, that word is the point.
        is_short = max(len(left), len(right)) <= (_LONG if one.is_unspaced or other.is_unspaced else _BRIEF)
        return 0.0 if is_short else alike
    is_part = shared <= _SHORT and max(len(left), len(right)) <= _LONG
    return 0.8 + 0.2 * alike if is_part else alike


def _is_opposed(one: _Answer, other: _Answer) -> bool:
    """Return whether one answer has the opposite of a word in the other."""
    left, right = one.words - other.words, other.words - one.words
    if any(group & left and group & right for group in _ALTERNATIVES):
        return True
    negated = {f"{beginning}{word}" for beginning in _OPPOSED for word in left | right}
    return bool(negated & (left | right))


def _has_other_numbers(one: _Answer, other: _Answer) -> bool:
    """Return whether the answers differ in a number, or in what a number says."""
    if _each_has_extra(one.numbers, other.numbers) or _each_has_extra(one.growths, other.growths):
        return True
    if (one.is_versioned or other.is_versioned) and _each_has_extra(one.versions, other.versions):
        return True
    if one.percentages & (other.counts - other.percentages) or other.percentages & (one.counts - one.percentages):
        return True
    if {("to" if word == "by" else "by", number) for word, number in one.changes - other.changes} & other.changes:
        return True
    # Two numbers may have changed places, as in a list whose items are swapped.
    for left, right in zip(one.beside_numbers, other.beside_numbers, strict=True):
        for number, another in combinations(left.keys() & right.keys(), 2):
            words = left[number], left[another]
            if words == (right[another], right[number]) and words[0] != words[1] and all(words):
                return True
    return _each_has_extra(one.ratios, other.ratios)


def _names_others_first(one: _Answer, other: _Answer) -> bool:
    """Return whether both set the same names against each other and prefer different ones."""
    if not one.words & other.words & _CONTRASTS or one.is_negative or other.is_negative:
        return False
    return len(set(one.names)) > 1 and sorted(one.names) == sorted(other.names) and one.names != other.names


def _has_other_names(one: _Answer, other: _Answer) -> bool:
    """Return whether a family name has different initials, a name another Roman numeral, or each answer a code or a
    word of an unspaced script that the other does not have."""
    for left, right in ((one.initials, other.initials), (one.numerals, other.numerals)):
        if any(left[name] != right[name] for name in left.keys() & right.keys()):
            return True
    if _each_has_extra(one.codes, other.codes):
        return True
    is_absent = [any(word not in b.text for word in a.compounds) for a, b in ((one, other), (other, one))]
    return all(is_absent)


def _each_has_extra(one: Sequence[object], other: Sequence[object]) -> bool:
    """Return whether each has something the other lacks. What only one of them mentions is a detail."""
    return bool(set(one) - set(other)) and bool(set(other) - set(one))


def _expand_initials(names: list[str], others: list[str]) -> list[str]:
    initials = "".join(name[0] for name in others)
    found = list[str]()
    for name in names:
        at = initials.find(name) if 2 <= len(name) <= 5 and name not in others else -1
        found += others[at : at + len(name)] if at >= 0 else [name]
    return found


def _is_turned_round(one: _Answer, other: _Answer) -> bool:
    """Return whether both answers use the same words for the same things in another order, where the order matters."""
    if one.words & {"by"} != other.words & {"by"}:
        return False
    if one.content != other.content:
        return _has_exchanged_sides(one, other)
    sides, other_sides = one.sides, other.sides
    if any(sides[word] != other_sides[word] for word in sides.keys() & other_sides.keys()):
        return True
    if _has_copula(one) or _has_copula(other):
        return False
    if one.is_list and other.is_list:
        return False
    if len(one.names) > 1 and sorted(one.names) == sorted(other.names):
        return sorted(one.actors) == sorted(other.actors) and one.actors != other.actors
    return len(one.content) >= 3 and _order(one) == _order(other)[::-1]


def _has_exchanged_sides(one: _Answer, other: _Answer) -> bool:
    """Return whether what follows a word such as `before` in each answer precedes that word in the other, where
    one answer has all words of the other and more."""
    if not (one.content <= other.content or other.content <= one.content):
        return False
    for word in (one.sides.keys() & other.sides.keys()) - _NEGATIONS:
        left, right = one.sides[word], other.sides[word]
        if left & right or not (left <= other.content and right <= one.content):
            continue
        if right <= _stems_before(one, word) and left <= _stems_before(other, word):
            return True
    return False


def _stems_before(answer: _Answer, word: str) -> frozenset[str]:
    small = [token.lower() for token in answer.tokens]
    return frozenset(map(_stem, small[: small.index(word)]))


def _has_copula(answer: _Answer) -> bool:
    return bool(answer.words & _COPULAS)


def _order(answer: _Answer) -> list[str]:
    return [stem for word in answer.tokens if (stem := _stem(word)) in answer.content]


def _is_label(letter: str, before: str, after: str) -> bool:
    """Return whether a letter that is also a word is a label, as in `choose A` or `x is less than y`."""
    if letter == "I":
        return False
    if not re.match(r"\s*\w", after):
        return True
    if letter == "a" and re.match(r"\s+(?:from|into|to|than|and|or)\b", after):
        # That is not an article.
        return True
    is_subject = re.match(rf"\s+(?:{'|'.join(_COPULAS_TEXT.split())}|and|or|has|does)\b", after) is not None
    if not before.strip():
        return is_subject or re.search(r"(?<![\w.'])(?:[B-HJ-Z]|[b-cf-hjkmnp-xz])(?![\w']|\.\s?\w)", after) is not None
    return letter.isupper() and (is_subject or before.rstrip()[-1:] not in _ENDS)


def _unit(word: str) -> str | None:
    """Return a unit's name in the singular; None for any other word."""
    for form in (word, word.removesuffix("s")):
        if form in _UNITS or form in _UNIT_NAMES:
            return _UNITS.get(form, form)
    return None


def _write_number_words(text: str) -> str:
    """Return a text with numbers above twelve in digits: `350` for `three hundred and fifty`."""

    def value(word: str) -> Decimal:
        small = word.lower()
        if small[0].isdigit():
            return Decimal(_number(small))
        return Decimal(1 if small in ("a", "an") else _DIGITS.get(small, 0))

    def scaled(found: re.Match[str]) -> str:
        scale, rest = _SCALES.get(found[2], 0) or _SCALES[found[2].lower()], found[3] if found.re is _SCALED else None
        return f"{value(found[1]).scaleb(scale) + int(rest or 0):f}"

    def tens(found: re.Match[str]) -> str:
        return str(20 + 10 * _TEN_WORDS.index(found[1].lower()) + int(_DIGITS.get((found[2] or "zero").lower(), 0)))

    text = _TENS.sub(tens, _TEENS.sub(lambda found: str(10 + _TEEN_WORDS.index(found[1].lower())), text))
    text = _HUNDREDS.sub(lambda found: f"{100 * value(found[1]) + value(found[2] or '0'):f}", text)
    return _SCALED_BRIEFLY.sub(scaled, _SCALED.sub(scaled, text))


def _number(word: str) -> str:
    """Return a normalised number, equal for `1,000.50` and `1000.5`.

    A comma that is not followed by exactly three digits is a decimal one.
    """
    plain = re.sub(r",(?=\d{3}(?:\D|$))", "", word.replace("−", "-")).replace(",", ".")
    if plain.count(".") > 1:
        return plain.replace(".", "")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain.lstrip("0") or "0"


def _stem(word: str) -> str:
    """Return a word without accents, case and an English ending: `capitals` becomes `capital`."""
    folded = unicodedata.normalize("NFKD", _DIGITS.get(word.lower(), word.lower()))
    plain = "".join(letter for letter in folded if not unicodedata.combining(letter))
    if plain.lstrip("-−")[:1].isdigit():
        return _number(plain)
    if plain in _IRREGULAR:
        return _synonyms().get(_IRREGULAR[plain], _IRREGULAR[plain])
    for british, american in _SPELLINGS:
        if len(plain) > 3:
            plain = british.sub(american, plain)
    stem = _strip_ending(plain)
    if word[0].islower() and len(stem) > 4:
        # `cause` and `causes`, but `Simon` and `Simone` are different names.
        stem = stem.removesuffix("e")
    return _synonyms().get(stem, stem)


def _strip_ending(plain: str) -> str:
    for ending in _ENDINGS:
        if plain.endswith(ending) and len(plain) - len(ending) >= 4:
            stem = f"{plain[: -len(ending)]}{'y' if ending in ('ies', 'ied') else ''}"
            is_doubled = ending in ("ing", "ed", "er", "est") and stem[-1] == stem[-2] and stem[-1] not in "lszfe"
            return stem[:-1] if is_doubled else stem
    return plain


@cache
def _synonyms() -> dict[str, str]:
    """Return the stem of the first word of each group by those of the others."""
    groups = [line.split() for line in re.split(r"[;\n]", _SYNONYMS_TEXT.strip())]
    stems = [[_strip_ending(word) for word in group] for group in groups]
    return {form: group[0] for group in stems for stem in group for form in (stem, stem.removesuffix("e"))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Consensus:
    """The answers of several models to one question, and how far they agree."""

    answers: dict[str, Outcome]
    """Outcomes by the name under which each model was asked, in that order."""
    failed: dict[str, str]
    """Errors by the same names, and by `judge`."""
    agreement: float | None
    """Agreement of the words, 0 to 1; None if fewer than two models answered."""
    judged: Outcome | None
    cost: Cost | None
    """Cost of all attempts, failed ones included; None if one has no known price."""


async def consensus(
    delegate: Delegate, ask: Ask, models: tuple[str, ...], judge: str | None, hear: Hear = lambda _: None
) -> Consensus:
    """Ask several models the same question, and optionally a judge to combine the answers.

    Args:
        delegate: runs the requests.
        ask: the question.
        models: aliases or ids of at least two different models; empty for all aliases of the policy.
        judge: alias or id of the model that combines the answers; None for no judge.
        hear: called with each piece of any answer as it arrives.

    Raises:
        InvalidArguments: fewer than two different models, or an unknown judge.
        UllageError: no model answered; the error is that of the last one and lists all.
    """
    requested = models or tuple(delegate.policy.aliases)
    # The first name of each different model.
    by_model = {delegate.policy.aliases.get(name, name): name for name in reversed(requested)}
    names = tuple(name for name in dict.fromkeys(requested) if name in by_model.values())
    if len(names) < 2:
        raise InvalidArguments(
            "a consensus needs two different models",
            suggestion="name two aliases of different models under `models`",
            options=tuple(delegate.policy.aliases),
        )
    delegate, call = as_one_call(delegate)
    if judge is not None:
        # Check that the judge exists before paying for answers.
        await delegate.plan(replace(ask, force_model=judge))
    outcomes, errors = dict[str, Outcome](), dict[str, UllageError]()

    async def one(name: str) -> None:
        try:
            outcomes[name] = await delegate.run(replace(ask, force_model=name, alone=True), hear)
        except UllageError as error:
            errors[name] = error

    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(one, name)
    if not outcomes:
        last = list(errors.values())[-1]
        last.message = "\n  ".join(("no model answered:", *(f"{name}: {one.message}" for name, one in errors.items())))
        last.args = (last.message,)
        last.suggestion = "; ".join(dict.fromkeys(one.suggestion for one in errors.values() if one.suggestion))
        raise last
    ordered = {name: outcomes[name] for name in names if name in outcomes}
    judged = None
    if judge is not None:
        try:
            said = "\n".join(
                f'<answer model="{name}">\n{one.completion.text}\n</answer>' for name, one in ordered.items()
            )
            question = [message for message in ask.messages if message.role not in ("system", "developer")]
            messages = (*system(delegate.policy.prompts, "judge"), *question, asked(said))
            judged = await delegate.run(replace(ask, force_model=judge, messages=messages, prompt_tokens=None), hear)
        except UllageError as error:
            errors["judge"] = error
    return Consensus(
        answers=ordered,
        failed={name: error.message for name, error in errors.items()},
        agreement=agreement([outcome.completion.text for outcome in ordered.values()]),
        judged=judged,
        cost=call.cost,
    )
