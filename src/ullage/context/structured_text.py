"""Reads structured text into values: JSON, Python literals, tables, elements, YAML, and outlines of named values.

A result is read by its form, never by the name of a tool. Forms are tried from the strictest to the loosest; prose and
code are none of them. What a form does not express (a greeting before a table, a footer that counts rows) is skipped if
it is little.

`kind_of` recognises the kind of a word (a path, a date, a code, a name) by its form alone. The order of its tests
matters: a path may contain digits, dots and dashes.
"""

import re
from _csv import Error as CSVError
from _csv import reader
from ast import literal_eval
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import lru_cache
from html import unescape
from itertools import pairwise
from json import JSONDecodeError, JSONDecoder, loads
from typing import cast

from ullage.tool import Json

from .outline_text import HEADING, read_outline

__all__ = ["Kind", "Line", "kind_of", "read_structure"]


class Kind(Enum):
    """Kind of a word, by its form."""

    LINK = auto()
    """A web address or a host name."""
    MAIL = auto()
    PATH = auto()
    FILE = auto()
    DATE = auto()
    NUMBER = auto()
    """A number, with a sign, a currency or a unit if any."""
    HASH = auto()
    CODED = auto()
    """Letters with digits, or names with values: `ZFA04Y`, `user_4421`, `app=web,version=blue`."""
    DOTTED = auto()
    """A name within a name: `session.state`, `node:fs`."""
    JOINED = auto()
    """Words joined by case or underscores: `readFile`, `flight_number`."""
    CAPITALS = auto()
    FLAG = auto()
    DASHED = auto()
    """Words joined by dashes or slashes: `follow-up`, `read/write`."""
    PHRASE = auto()
    """More than one word."""
    NAME = auto()
    """A capitalised word."""
    WORD = auto()


_NUMBER = re.compile(r"[#$€£¥+-]?\d[\d.,:+-]*(?:%|[a-zA-Z]{1,2})?$")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?|\d\d?[./]\d\d?[./]\d{2,4}$")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+$")
_HOST = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:com|org|net|io|dev|ai|app|co|edu|gov|info|cloud|local|internal|uk|de|fr|eu|us"
    r"|cn|jp|in|br|ch|nl|ru)(?::\d+)?$"
)
_PATH = re.compile(r"[A-Za-z]:\\|(?:~|\.{1,2})/\w|[~@]?\.{0,2}/[^/]*[/.]|.*/.*/|.*/[^/]*\.\w{1,5}$|@[\w-]+/")
_FILE = re.compile(
    r"[\w@+-][\w@.+-]*\.(?:[chrdm]|[ch]pp|cc|cs|css|csv|py[iwc]?|ipynb|[cm]?[jt]sx?|d\.ts|json[lc5]?|ya?ml|toml|ini|cfg|conf|env"
    r"|lock|mdx?|rst|txt|log|html?|xml|svg|scss|less|vue|svelte|rs|go|rb|php|java|kt|kts|swift|scala|lua|pl|sh|bash|zsh|ps1|bat"
    r"|sql|db|sqlite3?|parquet|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|webp|ico|mp[34]|wav|zip|gz|tgz|tar|whl|exe|dll|so|bin|proto"
    r"|tf|gradle|patch|diff|pem|key|crt|tex|bib|ics|eml)$",
    re.IGNORECASE,
)
_SHORTENED = re.compile(r"[a-zA-Z](?:\.[a-zA-Z])+$")
"""Abbreviations such as `e.g` and `p.m`."""
_HASH = re.compile(r"(?=.*\d)(?:[0-9a-f]{7,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$", re.IGNORECASE)
_CASED = re.compile(r"[a-z][A-Z]|[A-Z]{2,}[a-z]")


@lru_cache(maxsize=32_768)
def kind_of(word: str) -> Kind:
    if " " in word:
        return Kind.PHRASE
    if "://" in word:
        return Kind.LINK
    if "/" in word or "\\" in word:
        return Kind.DATE if _DATE.match(word) else Kind.PATH if _PATH.match(word) else Kind.DASHED
    if "=" in word and "," in word:
        return Kind.CODED
    return _of_digits(word) or _of_one_segment(word)


def _of_digits(word: str) -> Kind | None:
    if not any(map(str.isdigit, word)):
        return None
    if _DATE.match(word):
        return Kind.DATE
    if _NUMBER.match(word):
        return Kind.NUMBER
    return Kind.HASH if _HASH.match(word) else None


def _of_one_segment(word: str) -> Kind:
    if "@" in word and _MAIL.match(word):
        return Kind.MAIL
    if "." in word and _FILE.match(word):
        return Kind.FILE
    if "." in word and _HOST.match(word):
        return Kind.LINK
    if word.startswith("-"):
        return Kind.FLAG
    if "." in word or ":" in word:
        return Kind.WORD if _SHORTENED.match(word) else Kind.DOTTED
    return Kind.CODED if any(map(str.isdigit, word)) else _of_letters(word)


def _of_letters(word: str) -> Kind:
    if "_" in word or _CASED.search(word):
        return Kind.JOINED
    if "-" in word:
        return Kind.DASHED
    if word.isupper():
        return Kind.CAPITALS
    return Kind.NAME if word[:1].isupper() else Kind.WORD


_LONGEST = 200_000
"""Most characters of a text that is read. A longer text is data."""
_LONGEST_LITERAL = 50_000
"""Most characters of a Python literal, which takes longer to read."""
_DEPTH = 6
"""Most levels in which JSON within texts is read."""
_LONGEST_LINE = 1_000
"""Most characters of a line of a listing."""
_WRAPPED = re.compile(r"""\btext=(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", re.DOTALL)
"""Results that a program wrote in Python's notation: `[TextContent(type='text', text='…')]`."""
_OPENING = re.compile(r"[\[{]")
_LINE_OPENING = re.compile(r"^[ \t]*(?=[\[{])", re.MULTILINE)
_BETWEEN = re.compile(r"[\s,]*")
_AROUND = 100
"""Most characters before JSON, and between two values of it."""
_LABEL = "#*`:- \t\n"
"""Characters around a label between two values."""
_LINE = re.compile(
    r"^(?P<indent> *)(?P<item>- )?(?P<key>[A-Za-z_][\w./\[\]-]{0,60}(?: [\w-]{1,20})?):(?: +(?P<value>.*))?$"
)
_ITEM = re.compile(r"^(?P<indent> *)- (?P<value>\S.*)$")
_TITLE = re.compile(r"(?!# )[^:：=-][^:：=]*$|#{2,}|\*|[^\w\s\x00-\x7f]")
"""A line that may say what the lines below it are about. `# ` begins a comment in YAML."""
_BLOCKS = ("|", "|-", "|+", ">", ">-", ">+")
"""Marks with which YAML begins a text of several lines."""
_EMPTY = ("", "|", "|-", ">", ">-", "{}", "[]", "null")
_RULE = re.compile(r"[\s|+:=─│┼┌┐└┘├┤┬┴━┃╪═-]+")
"""A line under the head of a table, or around it."""
_LEAST_LINES = 2
_COLUMN = re.compile(r"[^\W\d][\w.\[\]()%#/-]*(?: [\w.()%#/-]+){0,3}")
"""The name of a column."""
_LEAST_COLUMNS = 3
"""Fewest columns of a table in comma-separated values. Sentences often have one comma."""
_BESIDE = 3
"""Most lines before the head of a table, and behind its last row."""
_WIDE_GAP = re.compile(r" {2,}|\t+")
"""White space between two columns."""
_XML = re.compile(
    r"<(?P<close>/?)(?P<name>[A-Za-z_][\w:.-]*)(?P<attributes>(?:\s+[\w:.-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*)\s*(?P<empty>/?)>"
    r"|<!--.{0,1000}?-->|<\?.{0,1000}?\?>|<!\[CDATA\[(?P<data>.{0,2000}?)\]\]>",
    re.DOTALL,
)
"""A tag, a comment or a text. Their length is bounded, so that many that do not close are read in linear time."""
_ATTRIBUTE = re.compile(r"([\w:.-]+)\s*=\s*(\"[^\"]*\"|'[^']*')")
_PAGE = re.compile(
    r"<(?:!doctype|html|div|span|ul|ol|table|tr|td|script|svg|br|h[1-6])\b|\A<(?:head|body|p|a|dl|section|article)\b",
    re.IGNORECASE,
)
"""Elements of a page. A field of other elements may be named `body` or `section` too."""
_HEADING = 2_000
"""Characters of a text in which elements of a page show what it is."""
_HIDDEN = re.compile(r"<(script|style|svg|head)\b.*?</\1\s*>|<!--.*?-->", re.DOTALL | re.IGNORECASE)
_TABLE = re.compile(r"<table\b.*?</table\s*>", re.DOTALL | re.IGNORECASE)
_ROW = re.compile(r"<tr\b[^>]*>(.*?)(?=</tr\s*>|<tr\b|</table)", re.DOTALL | re.IGNORECASE)
_CELL = re.compile(r"<t([hd])\b[^>]*>(.*?)(?=</t[hd]\s*>|<t[hd]\b|\Z)", re.DOTALL | re.IGNORECASE)
_BLOCK = re.compile(
    r"<(?P<close>/?)(?P<name>h[1-6]|li|dt|dd|p|div|br|tr|ul|ol|dl|section|article|hr|td|th)\b[^>]*>", re.IGNORECASE
)
_TERM = re.compile(r":?\s*</(?:dt|th)\s*>\s*<(?:dd|td)\b[^>]*>", re.IGNORECASE)
"""Between a term and what it means."""
_VALUE_BELOW = re.compile(r":\n\s*(?=[^\s#-])")
_TAG = re.compile(r"<[^>]*>")
_MOSTLY = 0.5
"""Share of a page's words that its tables must contain."""
_MARKED = re.compile(r"\s*(?:[-*]|[^\w\s\x00-\x7f]+|\(?\d{1,3}[.)]|\[\d{1,3}\])\s+\S")
"""The beginning of an item of a list: a bullet or another sign, or a number."""
_SENTENCE = re.compile(r"[^\W\d_][^\n]*[.!?)]$|[^\n]{0,120}:$")
"""A line of words that ends as a sentence, or that says what follows. Lines of a log begin with a time."""
_MOST_SENTENCES = 40
"""Most lines of a text whose sentences are items of a listing."""
_LINE_WORD = re.compile(r"[^\s,;|()\[\]{}<>\"'`]+")
_LISTED = frozenset({Kind.CODED, Kind.HASH, Kind.MAIL, Kind.DATE})
"""Kinds of words of which a line of a listing has at least one."""
_COLUMNS = ("columns", "fields", "headers", "header", "cols", "column_names", "columnNames")
_ROWS = ("rows", "data", "values", "records")
"""Keys of a table that is written as names and rows, and of its rows."""
_WRAPPERS = frozenset(
    {
        *("data", "result", "results", "response", "payload", "body", "items", "records", "rows", "hits", "edges"),
        *("nodes", "node", "objects", "entries", "list", "value", "values", "content", "output", "resource"),
    }
)
"""Keys around a value that say nothing about it."""


def read_structure(text: str) -> Json:
    """Read the value in a text, or a list of values if it contains several; None if it is prose or code.

    Nothing is cached: results are large, many, and rarely read more than twice.
    """
    if len(text) > _LONGEST or not (text := text.strip()):
        return None
    quoted = [found["quoted"] for found in _WRAPPED.finditer(text)] if "text=" in text[:400] else []
    if quoted:
        inner: list[Json] = [value for one in quoted if (value := read_structure(_unquoted(one))) is not None]
        return inner[0] if len(inner) == 1 else inner or None
    return _opened(
        _read_json(text)
        or _read_literal(text)
        or _read_csv(text)
        or _read_columns(text)
        or _read_xml(text)
        or _read_page(text)
        or _read_lines(text, is_whole=True)
        or read_outline(text)
        or _read_lines(text, is_whole=False)
        or _read_listing(text)
    )


def _unquoted(quoted: str) -> str:
    try:
        return str(literal_eval(quoted))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return quoted[1:-1]


def _read_json(text: str) -> Json:
    """Read JSON, alone or with a few words around it. Several values in a row, as in JSON lines, are a list; a label
    with a number or code before a value is part of it."""
    opening = _OPENING.search(text, 0, _AROUND)
    if opening is None:
        return None
    values, end, read, decoder = list[Json](), opening.start(), 0, JSONDecoder()
    label, is_several = text[:end], False
    while end < len(text):
        begun = end
        try:
            value, end = decoder.raw_decode(text, end)
        except (JSONDecodeError, RecursionError):
            break
        read += end - begun
        values += [_labelled(cast("Json", value), label if is_several else "")] if value else []
        between = _BETWEEN.match(text, end)
        end = between.end() if between else end
        following = _LINE_OPENING.search(text, end, end + _AROUND)
        if not _OPENING.match(text, end):
            if following is None:
                break
            if not is_several and len(values) == 1:
                values[0] = _labelled(values[0], label)
            is_several = True
        label, end = text[end : following.end()] if following else "", following.end() if following else end
    is_most = 2 * read > len(text) - opening.start()
    return (values[0] if len(values) == 1 else values or None) if is_most else None


def _labelled(value: Json, label: str) -> Json:
    """Return an object with the label before it, if that contains a number or a code."""
    text = " ".join(label.replace("```json", "").strip(_LABEL).split())
    if not isinstance(value, dict) or not any(map(str.isdigit, text)) or HEADING in value:
        return value
    return {HEADING: text, **value}


def _read_literal(text: str) -> Json:
    """Read a list or an object in Python's notation."""
    if text[0] not in "[{(" or len(text) > _LONGEST_LITERAL:
        return None
    try:
        return _plain_json(literal_eval(text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _plain_json(value: object) -> Json:
    if isinstance(value, dict):
        return {str(key): _plain_json(inner) for key, inner in cast("dict[object, object]", value).items()}
    if isinstance(value, list | tuple | set):
        return [_plain_json(inner) for inner in cast("list[object]", value)]
    return value if isinstance(value, str | int | float) or value is None else str(value)


def _read_csv(text: str) -> Json:
    """Read comma-separated values with a head of names, as a list of objects."""
    lines = text.splitlines(keepends=True)
    for start in range(min(_BESIDE + 1, len(lines) - 1)):
        delimiter = max(",;\t", key=lines[start].count)
        if lines[start].count(delimiter) + 1 < _LEAST_COLUMNS:
            continue
        try:
            head, *rows = reader(lines[start:], delimiter=delimiter, skipinitialspace=delimiter != "\t")
        except CSVError:
            return None
        rows = _without_footer(rows)
        whole = [row for row in rows if len(row) == len(head)]
        if len(set(head)) == len(head) and all(map(_COLUMN.fullmatch, head)):
            return _as_objects(head, whole) if whole and 5 * len(whole) >= 4 * len(rows) else None
    return None


def _without_footer(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return the rows without empty ones and without a few lines of one cell at the end, such as `(5 rows)`."""
    left = [row for row in rows if any(cell.strip() for cell in row)]
    for _ in range(_BESIDE):
        if left and len(left[-1]) == 1:
            left.pop()
    return left


def _as_objects(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Json:
    return [dict[str, Json](zip(head, row, strict=True)) for row in rows]


def _read_columns(text: str) -> Json:
    """Read a printed table, with columns separated by `|` or at least two spaces, as a list of objects. A row with
    empty cells is read by the positions of the head's columns."""
    lines = [
        line.replace("│", "|").replace("┃", "|")
        for line in text.split("\n")
        if line.strip() and not _RULE.fullmatch(line)
    ]
    for start in range(min(_BESIDE + 1, len(lines) - 1)):
        is_barred = lines[start].count("|") > 1
        cells = [_cells(line, is_barred=is_barred) for line in lines[start:]]
        head, rows = cells[0], _without_footer(cells[1:])
        if len(head) < _LEAST_LINES:
            continue
        if len(set(head)) < len(head) or not all(head):
            return None
        if not is_barred:
            positions = [lines[start].expandtabs().index(head[0])]
            for name in head[1:]:
                positions.append(lines[start].expandtabs().index(name, positions[-1] + 1))
            rows = [
                row if len(row) == len(head) else _cut_at(line.expandtabs(), positions) or row
                for row, line in zip(rows, lines[start + 1 :], strict=False)
            ]
        whole = [row for row in rows if len(row) == len(head)]
        return _as_objects(head, whole) if whole and 5 * len(whole) >= 4 * len(rows) else None
    return None


def _cells(line: str, *, is_barred: bool) -> list[str]:
    if is_barred:
        bare = line.strip()
        return [cell.strip() for cell in bare.removeprefix("|").removesuffix("|").split("|")]
    return [cell.strip() for cell in _WIDE_GAP.split(line.strip())]


def _cut_at(line: str, positions: Sequence[int]) -> list[str] | None:
    """Return the cells of a row whose columns begin at these positions; None if a word crosses one."""
    if any(place < len(line) and place and not line[place - 1].isspace() for place in positions):
        return None
    return [line[start:end].strip() for start, end in pairwise((*positions, len(line)))]


def _read_xml(text: str) -> Json:
    """Read elements with their attributes, as an object; None if they are a page or do not close."""
    start = text.find("<", 0, _AROUND)
    if start < 0 or not text.endswith(">") or _PAGE.search(text[start : start + _HEADING]):
        return None
    top: dict[str, Json] = {}
    open_ones: list[tuple[str, dict[str, Json], list[str]]] = [("", top, [])]
    end = start
    for tag in _XML.finditer(text, start):
        open_ones[-1][2].append(text[end : tag.start()])
        end = tag.end()
        if tag["data"] is not None:
            open_ones[-1][2].append(tag["data"])
        if tag["name"] is None:
            continue
        if not tag["close"]:
            held: dict[str, Json] = {key: value[1:-1] for key, value in _ATTRIBUTE.findall(tag["attributes"])}
            open_ones.append((tag["name"], held, []))
        if tag["close"] or tag["empty"]:
            name, inner, said = open_ones.pop()
            if name != tag["name"] or not open_ones:
                return None
            words = " ".join("".join(said).split())
            _add(open_ones[-1][1], name, ({**inner, "text": words} if words else inner) if inner else words)
    return top if len(open_ones) == 1 and end == len(text) and top else None


def _add(held: dict[str, Json], key: str, value: Json) -> None:
    """Set the value of a key; the values of a repeated key are a list."""
    known = held.get(key)
    if key not in held:
        held[key] = value
    elif isinstance(known, _Repeated):
        known.append(value)
    else:
        held[key] = _Repeated([known, value])


class _Repeated(list["Json"]):
    """The values of a repeated key."""


def _read_page(text: str) -> Json:
    """Read the tables of a page, or its lists and headings of named values; None if it is mostly prose."""
    start = text.find("<", 0, _AROUND)
    if start < 0 or not _PAGE.search(text[start : start + _HEADING]):
        return None
    shown = _HIDDEN.sub("", text)
    tables: list[Json] = [rows for found in _TABLE.finditer(shown) if (rows := _read_table(found[0]))]
    words = len("".join(_bare(shown).split()))
    told = sum(len("".join(_bare(found[0]).split())) for found in _TABLE.finditer(shown))
    if tables and told >= _MOSTLY * words:
        return tables[0] if len(tables) == 1 else list(tables)
    return read_outline(_page_lines(shown))


def _read_table(table: str) -> Json:
    """Return the rows of a page's table as objects, or one object if its rows are names with their values."""
    rows = [[(kind, _bare(cell)) for kind, cell in _CELL.findall(row)] for row in _ROW.findall(table)]
    rows = [row for row in rows if any(cell for _, cell in row)]
    if not rows:
        return None
    head = [cell for _, cell in rows[0]]
    is_named = all(len(row) == _LEAST_LINES and row[0][0] in "hH" and row[1][0] in "dD" for row in rows)
    if is_named or (len(head) == _LEAST_LINES and not any(kind in "hH" for kind, _ in rows[0])):
        return {row[0][1]: row[1][1] for row in rows if len(row) == _LEAST_LINES}
    whole = [[cell for _, cell in row] for row in rows[1:] if len(row) == len(head)]
    return _as_objects([name or f"column {place}" for place, name in enumerate(head, 1)], whole) if whole else None


def _bare(element: str) -> str:
    return " ".join(unescape(_TAG.sub(" ", element)).split())


def _page_lines(page: str) -> str:
    """Return the text of a page with its headings, list items and terms as lines of an outline."""
    depth = 0

    def mark(tag: re.Match[str]) -> str:
        nonlocal depth
        name = tag["name"].lower()
        if name in ("ul", "ol", "dl"):
            depth = max(0, depth - 1 if tag["close"] else depth + 1)
        elif name == "li" and not tag["close"]:
            return f"\n{'  ' * depth}- "
        elif name[1:].isdigit() and not tag["close"]:
            return f"\n{'#' * int(name[1])} "
        return "\n"

    marked = _BLOCK.sub(mark, _TERM.sub(": ", " ".join(page.split())))
    lines = (unescape(_TAG.sub("", line)).rstrip() for line in marked.split("\n"))
    return _VALUE_BELOW.sub(": ", "\n".join(line for line in lines if line.strip(" -#")))


class Line(str):
    """A line that relates values in words: `1. Grand Hotel, room R214, 129.00 EUR`. It is one item of a listing."""

    __slots__ = ()

    @property
    def words(self) -> list[str]:
        return [one for found in _LINE_WORD.findall(self) if (one := found.rstrip(".,:;!?"))]


def _read_listing(text: str) -> Json:
    """Read the items of a list in words, or a short text that relates at least two values; None for other prose and
    for code."""
    lines = [line for line in text.split("\n") if line.strip()]
    marked = [line for line in lines if _MARKED.match(line)]
    is_list = len(lines) == 1 or 2 * len(marked) >= len(lines)
    if not is_list and (len(lines) > _MOST_SENTENCES or not all(map(_SENTENCE.match, lines))):
        return None
    items = [Line(" ".join(line.split())) for line in (marked if is_list and marked else lines)]
    told = [item for item in items if len(item) <= _LONGEST_LINE and _tells(item)]
    return cast("Json", told) if told and 2 * len(told) >= len(items) else None


def _tells(line: Line) -> bool:
    """Return whether a line relates a code with at least one other value."""
    kinds = [kind_of(word) for word in set(line.words)]
    codes = sum(kind in _LISTED for kind in kinds)
    return bool(codes) and codes + kinds.count(Kind.NUMBER) > 1


def _read_lines(text: str, *, is_whole: bool) -> Json:
    """Read lines of the form `key: value`, nested by indentation as in YAML; None if they are few, or if the text must
    be YAML as a whole and other lines may be titles.

    A repeated key begins another object, as in a list of records with empty lines between them.
    """
    lines = list(_folded([line.rstrip() for line in text.split("\n") if line.strip()]))
    keyed = sum(_LINE.match(line) is not None for line in lines)
    others = sum(
        _LINE.match(line) is None and _ITEM.match(line) is None and _TITLE.match(line) is not None for line in lines
    )
    if keyed < _LEAST_LINES or 2 * keyed < len(lines) or (others and is_whole):
        return None
    top = list[Json]()
    open_ones: list[tuple[int, dict[str, Json] | list[Json]]] = [(-1, top)]
    for line in lines:
        match = _LINE.match(line)
        if match is not None:
            indent = len(match["indent"]) + (2 if match["item"] else 0)
            _put(
                open_ones, indent, match["key"], (match["value"] or "").strip().strip("\"'"), begins=bool(match["item"])
            )
        elif (item := _ITEM.match(line)) is not None:
            _put(open_ones, len(item["indent"]) + 2, None, item["value"].strip("\"'"), begins=True)
    return top[0] if len(top) == 1 else top


def _folded(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines, joining a value that continues over several of them, as YAML wraps long texts."""
    place = 0
    while place < len(lines):
        line, place = lines[place], place + 1
        match = _LINE.match(line)
        value = (match["value"] or "").strip() if match is not None else ""
        if match is None or not value:
            yield line
            continue
        indent, more = len(match["indent"]), list[str]()
        quote = value[0] if value[0] in "\"'" else ""
        while place < len(lines) and len(lines[place]) - len(lines[place].lstrip()) > indent:
            following = lines[place].strip()
            if quote and _is_closed(" ".join((value, *more)), quote):
                break
            is_begun = bool(quote or more or value in _BLOCKS)
            if not is_begun and (_LINE.match(lines[place]) or _ITEM.match(lines[place])):
                break
            more.append(following)
            place += 1
        yield " ".join((line.rstrip("|>-+ ") if value in _BLOCKS else line, *more))


def _is_closed(text: str, quote: str) -> bool:
    """Return whether a quoted text ends with an unescaped quote."""
    within = text[1:-1]
    is_escaped = quote == '"' and (len(within) - len(within.rstrip("\\"))) % 2 == 1
    return len(text) > 1 and text.endswith(quote) and not is_escaped


def _put(
    open_ones: list[tuple[int, dict[str, Json] | list[Json]]], indent: int, key: str | None, value: str, *, begins: bool
) -> None:
    """Add the value of a line to its object. The last object of each indentation level is open."""
    while open_ones[-1][0] > indent or (begins and open_ones[-1][0] == indent):
        open_ones.pop()
    level, holder = open_ones[-1]
    if isinstance(holder, dict) and level < indent:
        # Lines indented under a key are its value: an object, or a list if a dash begins it.
        last = next(reversed(holder), None)
        inner: dict[str, Json] | list[Json] = list[Json]() if begins else dict[str, Json]()
        if last is not None and isinstance(known := holder[last], list) and begins:
            inner = known
        if last is not None:
            holder[last] = inner
        holder = inner
        open_ones.append((indent - 1 if begins else indent, inner))
    if key is None:
        if isinstance(holder, list):
            holder.append(value)
        return
    if isinstance(holder, dict) and key in holder:
        open_ones.pop()
        holder = open_ones[-1][1]
    if isinstance(holder, list):
        made = dict[str, Json]()
        holder.append(made)
        open_ones.append((indent, made))
        holder = made
    holder[key] = None if value in _EMPTY else value


def _opened(value: Json, depth: int = _DEPTH) -> Json:
    """Return the value with JSON within its texts read too, tables as lists of objects, and without envelopes: MCP's
    around a text, GraphQL's around a node."""
    if isinstance(value, dict) and depth:
        content = value.get("content")
        texts = [one.get("text") for one in content if isinstance(one, dict)] if isinstance(content, list) else []
        if texts and all(isinstance(one, str) for one in texts):
            inner = [read_structure(cast("str", one)) or one for one in texts]
            return inner[0] if len(inner) == 1 else inner
        if (rows := _rows_of(value)) is not None:
            return rows
        (key, only), *others = value.items() if value else ((("", None)),)
        if isinstance(value.get("edges"), list):
            return _opened(value["edges"], depth)
        if not others and key in _WRAPPERS and isinstance(only, dict | list):
            return _opened(only, depth)
        return {key: _opened(inner, depth - 1) for key, inner in value.items()}
    if isinstance(value, list) and depth:
        nodes = [one["node"] for one in value if isinstance(one, dict) and isinstance(one.get("node"), dict)]
        return [_opened(inner, depth - 1) for inner in (nodes if len(nodes) == len(value) else value)]
    if isinstance(value, str) and value[:1] in "[{" and value[-1:] in "]}" and depth:
        try:
            return _opened(cast("Json", loads(value)), depth - 1)
        except (ValueError, RecursionError):
            return value
    return value


def _rows_of(value: Mapping[str, Json]) -> Json:
    """Return the rows of a table as objects: of names with rows beside them, or of a list for each column; None if the
    value is no such table."""
    named = next((value[key] for key in _COLUMNS if isinstance(value.get(key), list)), None)
    rows = next((value[key] for key in _ROWS if isinstance(value.get(key), list)), None)
    if isinstance(named, list) and isinstance(rows, list) and named and rows:
        names = [one.get("name") if isinstance(one, dict) else one for one in named]
        if all(isinstance(one, str) for one in names) and all(
            isinstance(row, list) and len(row) == len(names) for row in rows
        ):
            return [
                dict[str, Json](zip(cast("list[str]", names), cast("list[Json]", row), strict=True)) for row in rows
            ]
    columns = list(value.values())
    is_columnar = len(columns) >= _LEAST_COLUMNS and all(
        isinstance(one, list) and len(one) > 1 and not any(isinstance(inner, dict | list) for inner in one)
        for one in columns
    )
    sizes = {len(one) for one in columns if isinstance(one, list)}
    if not is_columnar or len(sizes) != 1:
        return None
    return [
        dict[str, Json](zip(value, row, strict=True)) for row in zip(*cast("list[list[Json]]", columns), strict=True)
    ]
