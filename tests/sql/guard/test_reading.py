"""How the guard cuts a text into words, and that the parser must agree."""

import pytest

from ullage.errors import Refused
from ullage.sql import Dialect
from ullage.sql.guard import Passage, judge, read
from ullage.sql.guard.lexer import Token, refusal
from ullage.sql.guard.parse_query import parse

pytestmark = pytest.mark.requirement("S0:sql:read-only")


def texts(sql: str, dialect: Dialect = "postgres") -> list[str]:
    return [token.text for token in read(sql, dialect)]


@pytest.mark.parametrize(
    ("sql", "dialect", "expected"),
    [
        ("a+-1", "postgres", ["a", "+", "-", "1"]),
        ("a@-1", "postgres", ["a", "@-", "1"]),
        ("a*/*c*/b--d", "postgres", ["a", "*", "b"]),
        ("a--1", "mysql", ["a", "--", "1"]),
        ("a -- 1\n# 2\n", "mysql", ["a"]),
        ("@a:=-1", "mysql", ["@", "a", ":=", "-", "1"]),
        ("x[1:-1]::int", "duckdb", ["x", "[", "1", ":", "-", "1", "]", "::", "int"]),
        ("E'a\\'b' 'c''d' $t$;$t$", "postgres", ["E'a\\'b'", "'c''d'", "$t$;$t$"]),
        ("q'[it's]' nq'!a!' n'b' 1.5d", "oracle", ["q'[it's]'", "nq'!a!'", "n'b'", "1.5d"]),
        ("[a]]b] @@x #t $5", "tsql", ["[a]]b]", "@@x", "#t", "$5"]),
        ('[a] `b` "c"', "sqlite", ["[a]", "`b`", '"c"']),
        (".5 1. 1e-3 0xFF 1_000 0b01", "duckdb", [".5", "1.", "1e-3", "0xFF", "1_000", "0b01"]),
        ("a /* b /* c */ d */ e", "tsql", ["a", "e"]),
        ("a /* b /* c */ d", "oracle", ["a", "d"]),
        ("a\r\n-- b\r\nc", "postgres", ["a", "c"]),
    ],
)
def test_a_text_is_cut_as_its_engine_cuts_it(sql: str, dialect: Dialect, expected: list[str]):
    assert texts(sql, dialect) == expected


@pytest.mark.parametrize(
    ("sql", "dialect"),
    [
        ("'a", "postgres"),
        ('"a', "postgres"),
        ("'a\\'", "mysql"),
        ("`a", "mysql"),
        ("[a", "tsql"),
        ("/* a", "sqlite"),
        ("/*/", "sqlite"),
        ("/* /* */", "postgres"),
        ("$a$ b", "postgres"),
        ("$1", "postgres"),
        ("q'[a", "oracle"),
        ("q' a '", "oracle"),
        ("$x", "tsql"),
        ("$x", "sqlite"),
        ("1abc", "postgres"),
        ("²", "postgres"),
        ("`a`", "duckdb"),
        ("\\", "postgres"),
        ("'a\0b'", "postgres"),
        ("'a\ud800b'", "postgres"),
        ('"a\x08b"', "duckdb"),
        ("a\u00a0b", "postgres"),
        ("a -- \x85", "postgres"),
        ("/* \r */", "mysql"),
        ("U&'a'", "duckdb"),
        ("U&'a\\'", "postgres"),
        ('U&"a"', "postgres"),
        ("'a\\'b'", "postgres"),
    ],
)
def test_what_can_be_read_in_two_ways_or_none_is_refused(sql: str, dialect: Dialect):
    with pytest.raises(Refused):
        read(sql, dialect)


def test_a_name_is_known_without_its_quotes_and_its_case():
    quoted, word = read('"A""B" Cd', "postgres")
    assert (quoted.name, word.name) == ('a"b', "cd")
    assert quoted.is_name
    assert word.is_word("ab", "cd")
    assert not quoted.is_word('a"b')


def test_the_parser_sees_no_comment_and_one_kind_of_space():
    text, places = Passage(read("SELECT/**/1\n+ -- x\n2", "postgres")).plain("postgres")
    assert text == "SELECT 1 + 2"
    assert places == {0: 0, 7: 1, 9: 2, 11: 3}


def test_what_the_parser_does_not_know_is_shown_to_it_as_something_that_it_does():
    assert Passage(read("a <<= @ b", "postgres")).plain("postgres")[0] == "a = - b"
    assert Passage(read("VALUES (1)", "mysql")).plain("mysql")[0] == "SELECT * FROM (VALUES (1)) AS shown"
    assert Passage(read("a ( + )", "oracle")).plain("oracle")[0] == "a (+)"


def test_a_text_that_the_parser_cuts_differently_is_refused():
    whole = Token(kind="string", text="'a' 'b'", name="", start=7, end=14, spaced=True)
    passage = Passage((*read("SELECT", "postgres"), whole))
    with pytest.raises(Refused, match="two ways"):
        parse(passage, "postgres")


def test_a_text_of_two_queries_is_refused_by_the_parser_as_well():
    with pytest.raises(Refused, match="not one query"):
        parse(Passage(read("SELECT 1; SELECT 2", "postgres")), "postgres")


def test_unicode_in_texts_names_and_comments_is_nothing_special():
    assert judge("SELECT 'zero\u200bwidth', \"ação\", 名 FROM t -- emoji 👩‍💻", "postgres")


@pytest.mark.parametrize(
    ("sql", "dialect", "expected"),
    [
        ("", "postgres", []),
        (" \t\n\r\f\v", "postgres", []),
        ("a b", "postgres", [("word", "a", False), ("word", "b", True)]),
        ("a/**/b", "postgres", [("word", "a", False), ("word", "b", True)]),
        ('A."B""c"', "postgres", [("word", "a", False), ("mark", ".", False), ("quoted", 'b"c', False)]),
        ("a$b _c é1", "postgres", [("word", "a$b", False), ("word", "_c", True), ("word", "é1", True)]),
        ("$a", "mysql", [("word", "$a", False)]),
        ("a#b", "oracle", [("word", "a#b", False)]),
        ("@a #b a@b$c", "tsql", [("word", "@a", False), ("word", "#b", True), ("word", "a@b$c", True)]),
        ("'a''b'", "sqlite", [("string", "'a''b'", False)]),
        ("'a\\\\' 'b\\'c'", "mysql", [("string", "'a\\\\'", False), ("string", "'b\\'c'", True)]),
        ('"a\\"b"', "mysql", [("string", '"a\\"b"', False)]),
        ("'a\\'", "sqlite", [("string", "'a\\'", False)]),
        ("e'\\''", "duckdb", [("string", "e'\\''", False)]),
        ("e'a'", "sqlite", [("word", "e", False), ("string", "'a'", False)]),
        ("b'1' x'f' n'a'", "postgres", [("string", "b'1'", False), ("string", "x'f'", True), ("string", "n'a'", True)]),
        ("x'f' b'1'", "sqlite", [("string", "x'f'", False), ("word", "b", True), ("string", "'1'", False)]),
        ("n'a'", "tsql", [("string", "n'a'", False)]),
        ("u&'a'", "postgres", [("string", "u&'a'", False)]),
        ("u&'a'", "mysql", [("word", "u", False), ("operator", "&", False), ("string", "'a'", False)]),
        ("u & 'a'", "duckdb", [("word", "u", False), ("operator", "&", True), ("string", "'a'", True)]),
        ("q'(a)' Q'<b>' q'{c}'", "oracle", [
            ("string", "q'(a)'", False), ("string", "Q'<b>'", True), ("string", "q'{c}'", True)]),
        ("q'a'", "postgres", [("word", "q", False), ("string", "'a'", False)]),
        ("$$a$b$$", "duckdb", [("string", "$$a$b$$", False)]),
        ("$é$x$é$", "postgres", [("string", "$é$x$é$", False)]),
        ("[a] [b", "postgres", [("mark", "[", False), ("word", "a", False), ("mark", "]", False), ("mark", "[", True),
                                ("word", "b", False)]),
        ("[a]] [b]", "sqlite", [("quoted", "a", False), ("mark", "]", False), ("quoted", "b", True)]),
        ("`a``b`", "mysql", [("quoted", "a`b", False)]),
        ("1..2", "postgres", [("number", "1.", False), ("number", ".2", False)]),
        ("1.e5 .5E+3", "postgres", [("number", "1.e5", False), ("number", ".5E+3", True)]),
        ("a.5", "postgres", [("word", "a", False), ("number", ".5", False)]),
        ("a.b", "postgres", [("word", "a", False), ("mark", ".", False), ("word", "b", False)]),
        ("0XfF 0B1", "postgres", [("number", "0XfF", False), ("number", "0B1", True)]),
        ("1f 1D", "oracle", [("number", "1f", False), ("number", "1D", True)]),
        ("$1.5", "tsql", [("number", "$1.5", False)]),
        ("a<>b", "postgres", [("word", "a", False), ("operator", "<>", False), ("word", "b", False)]),
        ("a::b", "postgres", [("word", "a", False), ("operator", "::", False), ("word", "b", False)]),
        ("a:::b", "postgres", [("word", "a", False), ("operator", "::", False), ("operator", ":", False),
                               ("word", "b", False)]),
        ("a:=b", "mysql", [("word", "a", False), ("operator", ":=", False), ("word", "b", False)]),
        ("a=:b", "duckdb", [("word", "a", False), ("operator", "=", False), ("operator", ":", False),
                            ("word", "b", False)]),
        ("a<-1", "postgres", [("word", "a", False), ("operator", "<", False), ("operator", "-", False),
                              ("number", "1", False)]),
        ("a<-1", "mysql", [("word", "a", False), ("operator", "<-", False), ("number", "1", False)]),
        ("a->>-1", "postgres", [("word", "a", False), ("operator", "->>", False), ("operator", "-", False),
                                ("number", "1", False)]),
        ("a|-1", "postgres", [("word", "a", False), ("operator", "|-", False), ("number", "1", False)]),
        ("-1", "postgres", [("operator", "-", False), ("number", "1", False)]),
        ("a*--b", "postgres", [("word", "a", False), ("operator", "*", False)]),
        ("a-- b\nc", "mysql", [("word", "a", False), ("word", "c", True)]),
        ("a--", "mysql", [("word", "a", False)]),
        ("a#b\nc", "mysql", [("word", "a", False), ("word", "c", True)]),
        ("a#b", "postgres", [("word", "a", False), ("operator", "#", False), ("word", "b", False)]),
        ("/*/ a */b", "sqlite", [("word", "b", True)]),
        ("/*/* a */*/b", "postgres", [("word", "b", True)]),
        ("/*/* a */b", "mysql", [("word", "b", True)]),
    ],
)  # fmt: skip
def test_each_token_has_its_kind_and_its_name(sql: str, dialect: Dialect, expected: list[tuple[str, str, bool]]):
    tokens = read(sql, dialect)
    found = [(one.kind, one.name, one.spaced) for one in tokens]
    assert found == expected
    assert [sql[one.start : one.end] for one in tokens] == [one.text for one in tokens]


@pytest.mark.parametrize(
    ("comment", "dialects"),
    [
        # The dialects that refuse it behind SELECT.
        ("/*! drop table t */", {"mysql"}),
        ("/*M! x */", {"mysql"}),
        ("/*m!x*/", {"mysql"}),
        ("/*!50000 straight_join */", set()),
        ("/*! SQL_NO_CACHE */", set()),
        ("/*!99999 sql_no_cache, x */", {"mysql"}),
        ("/*! use index (a, b) */", set()),
        ("/*!50001 FORCE KEY(a)*/", set()),
        ("/*! use index (a) , x */", {"mysql"}),
        ("/*+ max_execution_time(1000) */", set()),
        ("/*+ max_execution_time(99999) */", set()),
        ("/*+ max_execution_time(100000) */", {"mysql", "postgres", "oracle"}),
        ("/*+ max_execution_time(0) */", {"mysql", "postgres", "oracle"}),
        ("/*+ set_var(optimizer_switch='mrr=on') */", set()),
        ("/*+ set_var(sql_mode='') */", {"mysql", "postgres", "oracle"}),
        ("/*+ SET (enable_seqscan off) */", set()),
        ("/*+ set(work_mem '1GB') */", {"mysql", "postgres", "oracle"}),
        ("/*+ resource_group(x) */", {"mysql", "postgres", "oracle"}),
        ("/*+ set_var(sql_mode='' */", {"mysql", "postgres", "oracle"}),
        ("/*+ index(t i) */", set()),
        ("-- set_var(sql_mode='')\n", set()),
        ("/* set_var(sql_mode='') */", set()),
        ("/* \u2028 */", {"mysql", "postgres", "oracle", "sqlite", "duckdb", "tsql"}),
        ("-- \x0b\x0c\t\r\n", set()),
        ("/* a\r\nb\x0b */", set()),
        ("-- a\rb\n", {"mysql", "postgres", "oracle", "sqlite", "duckdb", "tsql"}),
    ],
)
def test_a_comment_that_a_database_runs_or_obeys_is_refused_there(comment: str, dialects: set[str]):
    refused = set[str]()
    every: tuple[Dialect, ...] = ("mysql", "postgres", "oracle", "sqlite", "duckdb", "tsql")
    for dialect in every:
        try:
            assert [token.text for token in read(f"SELECT {comment} 1", dialect)] == ["SELECT", "1"]
        except Refused:
            refused.add(dialect)
    assert refused == dialects


def test_a_line_that_is_a_hint_obeys_the_same_rule():
    assert texts("SELECT --+ index(t i)\n 1", "oracle") == ["SELECT", "1"]
    for dialect in ("oracle", "postgres"):
        with pytest.raises(Refused, match="is a hint that changes settings"):
            read("SELECT --+ set_var(sql_mode='')\n 1", dialect)


def test_a_modifier_of_select_in_a_comment_is_one_directly_behind_select():
    for sql in (
        "SELECT 1 /*! straight_join */",
        'SELECT "select" /*! straight_join */ 1',
        "/*! straight_join */ SELECT",
    ):
        with pytest.raises(Refused, match="opens a comment that this database runs"):
            read(sql, "mysql")
    assert texts("SELECT 1 FROM t /*! use index (a) */", "mysql") == ["SELECT", "1", "FROM", "t"]


def test_a_statement_has_at_most_100000_characters_and_20000_tokens():
    assert len(read("a" * 100_000, "postgres")) == 1
    with pytest.raises(Refused, match=r"100001 characters.* is more than a statement may have"):
        read("a" * 100_001, "postgres")
    assert len(read("," * 20_000, "postgres")) == 20_000
    with pytest.raises(Refused, match=r"20001 words.* are more than a statement may have"):
        read("," * 20_001, "postgres")


@pytest.mark.parametrize(
    ("construct", "shown"),
    [("a" * 60, "a" * 60), ("a" * 61, "a" * 59 + "…"), ("a`b", "a'b"), ("a  \n b", "a \\u000a b"), ("\x00", "\\u0000")],
)
def test_a_refused_construct_is_shown_in_one_short_line(construct: str, shown: str):
    assert refusal(construct, "is odd", "Leave it.").message == f"`{shown}` is odd"
