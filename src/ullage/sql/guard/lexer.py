"""Lexer of SQL statements for every dialect.

The guard needs a second reader besides the parser, because a parser is deceived by text that it takes for code and the
engine for a string. Whatever is ambiguous is refused; nothing else is judged here.

The lexical rules of the engines are from their manuals and were tried on the engines. They assume the engines' default
settings: `standard_conforming_strings` on, `sql_mode` without ANSI_QUOTES and NO_BACKSLASH_ESCAPES, `QUOTED_IDENTIFIER`
on.

`refusal` names the refused construct in backticks and cuts it short, so that it never repeats a whole literal; the
suggestion says what to write instead.

`Statement` is the result of the guard, which an engine runs.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ullage.errors import Refused

from ..database import Dialect, Stability

__all__ = [
    "ALWAYS_GRAMMAR",
    "BEFORE_PARENTHESIS",
    "LEXICONS",
    "TYPES",
    "Kind",
    "Lexicon",
    "Statement",
    "Terms",
    "Token",
    "read",
    "refusal",
    "words",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """The lexical rules of one dialect."""

    strings: str = "'"
    """Characters that open a string, which is closed by the same character and contains it doubled."""
    names: Mapping[str, str] = field(default_factory=lambda: {'"': '"'})
    """Opening to closing character of quoted names."""
    backslash: bool = False
    """Whether a backslash escapes in every string."""
    escaping: frozenset[str] = frozenset()
    """Prefixes of strings in which a backslash escapes."""
    prefixes: frozenset[str] = frozenset()
    """Other prefixes that belong to a string if no space separates them."""
    dollars: bool = False
    """Whether `$tag$ … $tag$` is a string."""
    alternative: bool = False
    """Whether `q'[ … ]'` is a string."""
    nested: bool = False
    """Whether comments nest."""
    hashes: bool = False
    """Whether `#` opens a comment."""
    dashes_need_space: bool = False
    """Whether `--x` is two minus signs."""
    initials: str = "_"
    """Characters that may begin a word, besides letters."""
    inner: str = "_"
    """Characters that may continue a word, besides letters and digits."""


_BRACKETS = {'"': '"', "[": "]"}

LEXICONS: Mapping[Dialect, Lexicon] = {
    "postgres": Lexicon(
        escaping=frozenset({"e"}), prefixes=frozenset({"b", "x", "n"}), dollars=True, nested=True, inner="_$"
    ),
    "duckdb": Lexicon(escaping=frozenset({"e"}), prefixes=frozenset({"b", "x"}), dollars=True, nested=True, inner="_$"),
    "mysql": Lexicon(
        strings="'\"",
        names={"`": "`"},
        backslash=True,
        prefixes=frozenset({"b", "x", "n"}),
        hashes=True,
        dashes_need_space=True,
        initials="_$",
        inner="_$",
    ),
    "sqlite": Lexicon(names={**_BRACKETS, "`": "`"}, prefixes=frozenset({"x"}), inner="_$"),
    "tsql": Lexicon(names=_BRACKETS, prefixes=frozenset({"n"}), nested=True, initials="_@#", inner="_@#$"),
    "oracle": Lexicon(prefixes=frozenset({"n"}), alternative=True, inner="_$#"),
}

_SHOWN = 60


def refusal(construct: str, reason: str, suggestion: str, options: tuple[str, ...] = ()) -> Refused:
    """Return the error for a construct that is not allowed."""
    plain = " ".join("".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in construct).split())
    plain = plain.replace("`", "'")
    shown = plain if len(plain) <= _SHOWN else plain[: _SHOWN - 1] + "…"
    return Refused(f"`{shown}` {reason}", suggestion=suggestion, options=options)


def words(text: str) -> frozenset[str]:
    """Return the words of a text, separated by white space."""
    return frozenset(text.split())


Kind = Literal["select", "explain", "show", "describe", "pragma"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement that only reads."""

    kind: Kind
    sql: str
    """The statement as written, without anything before its first and after its last word."""
    tables: tuple[str, ...] = ()
    """Names of the tables it reads, sorted, in lower case and without quotes, excluding those of its own WITH
    clauses."""
    runs: str = ""
    """The text to run, if a name had to be made unambiguous; empty if it is `sql`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The conditions under which one statement is judged, and the changes to its text."""

    dialect: Dialect
    functions: Mapping[str, Stability] = field(default_factory=dict[str, Stability])
    """Stability of the engine's functions; empty if it lists none."""
    allowed: frozenset[str] = frozenset()
    """Functions and types that the user allows, in lower case, with or without their schema."""
    edits: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Text to insert before the statement runs, with its position; collected while the statement is judged."""
    cuts: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Ranges of text to remove before the statement runs."""


_LONGEST = 100_000
"""Maximum characters of a statement."""
_MOST = 20_000
"""Maximum tokens of a statement."""

_SPACES = " \t\n\r\f\v"
_MARKS = "()[]{},;."
_OPERATORS = "+-*/<>=~!@#%^&|?:"
_UNARY_BEFORE = "~!@#%^&|?"
"""PostgreSQL: only an operator that contains one of these may end in a plus or a minus."""
_NUMBER = re.compile(r"0[xX][0-9a-fA-F_]+|0[bB][01]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?", re.ASCII)
_DOLLAR = re.compile(r"\$(?:[^\W\d]\w*)?\$")
_HINTED = re.compile(r"\b(set_var|max_execution_time|resource_group|set)\s*\(([^()]*)\)?", re.IGNORECASE)
"""Hints of MySQL, and of a PostgreSQL extension, that change a setting for one statement."""
_PLANNING = {
    "set_var": re.compile(r"\s*optimizer_\w+\s*=\s*(?:'[\w=,]*'|\w+)\s*", re.IGNORECASE),
    "max_execution_time": re.compile(r"\s*0*[1-9]\d{0,4}\s*"),
    "set": re.compile(
        r"\s*(?:enable_\w+|\w+_cost|geqo\w*|(?:join|from)_collapse_limit|constraint_exclusion|cursor_tuple_fraction)"
        r"\s+'?[\w.]+'?\s*",
        re.IGNORECASE,
    ),
}
"""Settings allowed in such hints: how the planner chooses, and a time limit below two minutes, which the caller's
own limit bounds."""
_HINTING = frozenset({"mysql", "postgres", "oracle"})
"""Dialects in which `/*+ … */` is more than a comment."""
_MODIFYING = re.compile(
    r"/\*M?!(?:\d{5,6}\s)?\s*(?:straight_join|high_priority|sql_(?:no_cache|cache|small_result|big_result|buffer_result"
    r"|calc_found_rows))\s*\*/",
    re.IGNORECASE,
)
"""Executable comments of MySQL that contain only a modifier of SELECT. Anywhere but directly after SELECT, such a
word joins tables."""
_INDEXING = re.compile(
    r"/\*M?!(?:\d{5,6}\s)?\s*(?:use|force|ignore)\s+(?:index|key)\s*\([\w\s,]*\)\s*\*/", re.IGNORECASE
)
_CLOSERS = {"[": "]", "{": "}", "(": ")", "<": ">"}

TokenKind = Literal["word", "quoted", "string", "number", "operator", "mark"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token of a statement, with its position."""

    kind: TokenKind
    text: str
    name: str
    """Word or quoted name in lower case without quotes; the text of any other token."""
    start: int
    end: int
    spaced: bool
    """Whether a space or a comment precedes it."""

    def is_word(self, *words: str) -> bool:
        """Return whether the token is one of these unquoted words."""
        return self.kind == "word" and self.name in words

    def is_mark(self, mark: str) -> bool:
        """Return whether the token is this mark."""
        return self.kind == "mark" and self.text == mark

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "quoted")


def read(sql: str, dialect: Dialect) -> tuple[Token, ...]:
    """Return the tokens of a statement; raise `Refused` for ambiguous text."""
    if len(sql) > _LONGEST:
        raise refusal(
            f"{len(sql)} characters", f"is more than a statement may have ({_LONGEST})", "Ask a smaller question."
        )
    tokens = _Reader(sql, dialect).tokens()
    if len(tokens) > _MOST:
        raise refusal(
            f"{len(tokens)} words", f"are more than a statement may have ({_MOST})", "Ask a smaller question."
        )
    return tuple(tokens)


class _Reader:
    """A position in a text, and the methods that advance it."""

    def __init__(self, sql: str, dialect: Dialect) -> None:
        self._sql = sql
        self._at = 0
        self._before = ""
        """The name of the last token."""
        self._kind: TokenKind | None = None
        """The kind of the last token."""
        self._dialect: Dialect = dialect
        self._rules: Lexicon = LEXICONS[dialect]

    def tokens(self) -> list[Token]:
        found: list[Token] = []
        while True:
            before = self._at
            self._skip()
            if self._at >= len(self._sql):
                return found
            start = self._at
            one = self._peek()
            readers: tuple[tuple[bool, Callable[[], tuple[TokenKind, str]]], ...] = (
                (one in self._rules.strings, self._string),
                (one in self._rules.names, self._scan_quoted_name),
                (one in self._rules.initials or _is_letter(one), self._word),
                (one.isdigit() or (one == "." and self._peek(1, 1).isdigit()), self._number),
                (one == "$" and self._rules.dollars, self._dollar_string),
                (one == "$" and self._dialect == "tsql", self._money),
                (one in _MARKS, self._mark),
                (one in _OPERATORS, self._operator),
            )
            for fits, reader in readers:
                if fits:
                    kind, name = reader()
                    break
            else:
                raise refusal(
                    one, "has no meaning in this place", "Write plain SQL, with such characters only within quotes."
                )
            text = self._sql[start : self._at]
            spaced = start > before
            found.append(Token(kind=kind, text=text, name=name or text, start=start, end=self._at, spaced=spaced))
            self._before, self._kind = found[-1].name, kind

    def _peek(self, length: int = 1, ahead: int = 0) -> str:
        return self._sql[self._at + ahead : self._at + ahead + length]

    def _skip(self) -> None:
        """Skip white space and comments."""
        while self._at < len(self._sql):
            if self._peek() in _SPACES:
                self._at += 1
            elif self._opens_line():
                end = self._sql.find("\n", self._at)
                end = len(self._sql) if end < 0 else end
                self._check_comment(self._sql[self._at : end].removesuffix("\r"))
                self._at = end
            elif self._peek(2) == "/*":
                start, depth = self._at, 0
                while True:
                    opens, closes = (
                        self._sql.find("/*", self._at),
                        self._sql.find("*/", self._at + (2 if not depth else 0)),
                    )
                    if closes < 0:
                        raise refusal(
                            "/*", "opens a comment that is not closed", "Close the comment with */ or leave it out."
                        )
                    if (depth == 0 or self._rules.nested) and 0 <= opens < closes:
                        depth, self._at = depth + 1, opens + 2
                        continue
                    depth, self._at = depth - 1, closes + 2
                    if depth == 0:
                        break
                self._check_comment(self._sql[start : self._at])
            else:
                return

    def _opens_line(self) -> bool:
        if self._peek() == "#":
            return self._rules.hashes
        if self._peek(2) != "--":
            return False
        return not self._rules.dashes_need_space or self._peek(1, 2) in ("", *_SPACES)

    def _check_comment(self, comment: str) -> None:
        is_run = self._dialect == "mysql" and comment.startswith(("/*!", "/*M!", "/*m!"))
        behind_select = self._before == "select" and self._kind == "word"
        is_harmless = _INDEXING.fullmatch(comment) or (behind_select and _MODIFYING.fullmatch(comment))
        if is_run and not is_harmless:
            raise refusal(
                comment[:4].strip(), "opens a comment that this database runs", "Write what you mean without it."
            )
        if comment.startswith(("/*+", "--+")) and self._dialect in _HINTING:
            for name, given in _HINTED.findall(comment):
                allowed = _PLANNING.get(name.lower())
                if allowed is None or not allowed.fullmatch(given):
                    raise refusal(comment, "is a hint that changes settings", "Leave the hint out.")
        inner = comment.replace("\r\n", "\n") if comment.startswith("/*") else comment
        for one in inner:
            if one not in "\t\n\f\v" and unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp"):
                raise refusal(one, "in a comment may end it or not", "Leave the comment out.")

    def _continues_word(self, one: str) -> bool:
        return one != "" and (one in self._rules.inner or one in "0123456789" or _is_letter(one))

    def _word(self) -> tuple[TokenKind, str]:
        start = self._at
        while self._continues_word(self._peek()):
            self._at += 1
        word = self._sql[start : self._at].lower()
        if self._peek() == "'":
            if word in self._rules.escaping:
                return self._string(backslash=True)
            if word in self._rules.prefixes:
                return self._string()
            if self._rules.alternative and word in ("q", "nq"):
                start, opener = self._at, self._peek(1, 1)
                closer = _CLOSERS.get(opener, opener) + "'"
                end = self._sql.find(closer, self._at + 2) if opener.strip() else -1
                if end < 0:
                    raise refusal("q'", "opens a text that is not closed", "Write a plain '…' string.")
                self._at = end + len(closer)
                self._check_text(start)
                return "string", ""
        if word == "u" and self._peek(2) == "&'" and self._dialect == "postgres":
            self._at += 1
            return self._string()
        if word == "u" and self._peek(2) in ("&'", '&"') and self._dialect != "mysql":
            raise refusal("U&", "opens a name or text with Unicode escapes", "Write the characters themselves.")
        return "word", word

    def _string(self, *, backslash: bool = False) -> tuple[TokenKind, str]:
        quote = self._peek()
        start = self._at
        self._at = self._closing(quote, backslash=backslash or self._rules.backslash)
        text = self._sql[start : self._at]
        is_escape = text == "'\\'" and self._before == "escape"
        if not backslash and self._dialect == "postgres" and "\\'" in text and not is_escape:
            # The quote may be escaped: by a setting, or because it continues an E'…' string on the line above.
            raise refusal(
                "\\'", "may end a string or not, depending on what precedes it", "Write it as E'…' with \\\\ or \\'."
            )
        self._check_text(start)
        return "string", ""

    def _closing(self, quote: str, *, backslash: bool = False) -> int:
        at = self._at + 1
        while at < len(self._sql):
            if backslash and self._sql[at] == "\\":
                at += 2
            elif self._sql[at] != quote:
                at += 1
            elif self._sql[at + 1 : at + 2] == quote:
                at += 2
            else:
                return at + 1
        raise refusal(quote, "opens a text that is not closed", f"Close it with {quote}, and double that within.")

    def _scan_quoted_name(self) -> tuple[TokenKind, str]:
        start, opener = self._at, self._peek()
        closer = self._rules.names[opener]
        self._at = self._closing(closer)
        if closer == "]" and self._dialect == "sqlite":
            self._at = self._sql.index("]", start) + 1
        self._check_text(start)
        if any(unicodedata.category(one) == "Cc" for one in self._sql[start : self._at]):
            raise refusal(self._sql[start : self._at], "is a name with control characters", "Leave them out.")
        return "quoted", self._sql[start + 1 : self._at - 1].replace(closer * 2, closer).lower()

    def _check_text(self, start: int) -> None:
        if any(one == "\0" or "\ud800" <= one <= "\udfff" for one in self._sql[start : self._at]):
            raise refusal("\0", "is no character of a text", "Leave it out.")

    def _dollar_string(self) -> tuple[TokenKind, str]:
        tag = _DOLLAR.match(self._sql, self._at)
        if tag is None:
            raise refusal("$", "is a placeholder for a value that is not given", "Write the value itself.")
        start, end = self._at, self._sql.find(tag[0], tag.end())
        if end < 0:
            raise refusal(tag[0], "opens a text that is not closed", "Write a plain '…' string.")
        self._at = end + len(tag[0])
        self._check_text(start)
        return "string", ""

    def _money(self) -> tuple[TokenKind, str]:
        self._at += 1
        if not self._peek().isdigit():
            raise refusal("$", "has no meaning in this place", "Leave it out.")
        return self._number()

    def _number(self) -> tuple[TokenKind, str]:
        found = _NUMBER.match(self._sql, self._at)
        if found is None:
            raise refusal(self._peek(), "is no number that every reader knows", "Write digits from 0 to 9.")
        start, self._at = self._at, found.end()
        if self._dialect == "oracle" and self._peek() in tuple("dDfF"):
            self._at += 1
        if self._continues_word(self._peek()):
            raise refusal(
                self._sql[start : self._at + 1], "is a number that runs into a word", "Put a space between them."
            )
        return "number", ""

    def _mark(self) -> tuple[TokenKind, str]:
        self._at += 1
        return "mark", ""

    def _operator(self) -> tuple[TokenKind, str]:
        start = self._at
        while self._peek() and self._peek() in _OPERATORS and not self._interrupts(start):
            self._at += 1
        if self._dialect == "postgres":
            while self._at - start > 1 and self._sql[self._at - 1] in "+-":
                if any(one in _UNARY_BEFORE for one in self._sql[start : self._at - 1]):
                    break
                self._at -= 1
        return "operator", ""

    def _interrupts(self, start: int) -> bool:
        """Return whether a comment, or the colon of another operator, begins here."""
        if self._peek(2) == "/*" or self._opens_line():
            return True
        written = self._sql[start : self._at]
        if written in ("::", ":="):
            return True
        return bool(written) and (":" in (self._peek(), written[-1])) and written + self._peek() not in ("::", ":=")


def _is_letter(one: str) -> bool:
    if one.isascii():
        return one.isalpha()
    return unicodedata.category(one)[0] in "LM" or unicodedata.category(one) in ("Nd", "Nl", "Pc")


ALWAYS_GRAMMAR = words(
    """
all and any array as between by case columns cross cube distinct else escape except exclude exists filter for from
full group groups having ilike in inner intersect is join lateral like limit materialized not null nulls of offset on
only operator or order outer over overlaps partition passing recursive repeatable returning rollup row rows select
sets similar some table tablesample then union using values when where window with within without
"""
)
"""Words that PostgreSQL or MySQL itself puts before a parenthesis, whatever functions exist."""

BEFORE_PARENTHESIS = ALWAYS_GRAMMAR | words(
    """
against anti apply asof at before bernoulli day force hour index interval keep key match match_recognize measures
minus minute month nearest nested option overflow path pattern percent pivot positional prior qualify range regexp
rename reservoir rlike root sample second seed semi separator subpartition system top unpivot use xor year
"""
)
"""Grammar words before a parenthesis; a function of the same name is still found in the tree."""

TYPES = words(
    """
_bool _int4 _int8 _numeric _text _uuid _varchar aclitem anyarray array bfile bigint bignum bigserial binary bit blob
bool boolean box box2d box3d bpchar bytea char character cid cidr circle citext clob cstring cube date
datemultirange daterange datetime datetime2 datetime64 datetimeoffset dec decimal double enum fixed float float4
float8 geography geometry geometrycollection halfvec hierarchyid hstore hugeint image inet int int1 int128 int16
int2 int256 int2vector int32 int4 int4multirange int4range int64 int8 int8multirange int8range integer interval json
jsonb jsonpath line linestring list long longblob longtext lquery lseg ltree ltxtquery macaddr macaddr8 map
mediumblob mediumint mediumtext money multilinestring multipoint multipolygon name national nchar nclob ntext null
number numeric nummultirange numrange nvarchar nvarchar2 object oid oidvector path pg_lsn pg_node_tree pg_snapshot
point polygon precision raster raw real refcursor regclass regcollation regconfig regdictionary regnamespace regoper
regoperator regproc regprocedure regrole regtype row rowid rowversion serial set signed smalldatetime smallfloat
smallint smallmoney smallserial sparsevec sql_variant string struct sysname text tid time time_ns timestamp
timestamp_ms timestamp_ns timestamp_s timestamp_us timestampltz timestampntz timestamptz timetz tinyblob tinyint
tinytext tsmultirange tsquery tsrange tstzmultirange tstzrange tsvector txid_snapshot ubigint uhugeint uint uint16
uint32 uint64 uint8 uinteger union uniqueidentifier unknown unsigned urowid usmallint utinyint uuid varbinary varbit
varchar varchar2 variant varint varying vector xid xid8 xml year
"""
)
