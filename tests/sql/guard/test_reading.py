"""How the guard cuts a text into words, and that the parser must agree."""

import pytest

from ullage.errors import Refused
from ullage.sql import Dialect
from ullage.sql.guard import judge
from ullage.sql.guard.lexer import Token, read
from ullage.sql.guard.parse_query import Passage, parse

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
