"""Invisible characters: which are found, how they are escaped, and which belong to ordinary writing."""

import json
import unicodedata
from types import MappingProxyType

import pytest

from ullage.invisible_characters import (
    decode_hidden,
    escape_invisible,
    escape_json,
    has_invisible,
    has_invisible_in,
    map_strings,
    remove_invisible,
    remove_invisible_counted,
)
from ullage.tool import Json

pytestmark = pytest.mark.requirement("U:poison")

VISIBLE_FORMAT = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
"""Signs of category Cf that are drawn: they stand before a number."""
ENGLAND = "🏴" + "".join(chr(0xE0000 + ord(letter)) for letter in "gbeng") + "\U000e007f"


def tags(text: str) -> str:
    return "".join(chr(0xE0000 + ord(letter)) for letter in text)


def selectors(text: str) -> str:
    return "".join(chr(0xFE00 + byte) if byte < 16 else chr(0xE0100 + byte - 16) for byte in text.encode())


@pytest.mark.requirement("U:poison")
def test_every_format_and_control_character_between_latin_letters_is_found():
    for code in range(0x110000):
        character = chr(code)
        if unicodedata.category(character) in ("Cf", "Cc") and code not in VISIBLE_FORMAT and character not in "\n\t":
            assert remove_invisible(f"a{character}b") == "ab", hex(code)
            assert escape_invisible(f"a{character}b").isascii(), hex(code)


@pytest.mark.parametrize(
    "character", [*"\u3164\uffa0\u115f\u1160\u2800\u034f\u17b4\u180b\ufe00\ufe0f\ufff9\ufeff\xad", "\U000e0101"]
)
def test_blank_letters_fillers_and_selectors_without_a_base_are_found(character: str):
    assert has_invisible(f"a{character}b")


@pytest.mark.parametrize(
    "text",
    [
        "plain ASCII, with\ttabs\r\nand lines\n",
        "déjà vu – “quoted” … 日本語 Привет",
        "👩\u200d💻 ❤\ufe0f\u200d🔥 ☂\ufe0f 1\ufe0f\u20e3 🏳\ufe0f\u200d🌈 👨🏽\u200d🚀",
        ENGLAND,
        "می\u200cخواهم نامه\u200cای",
        "क्\u200dष ന്\u200d श्रीमान्\u200cको",
        "葛\U000e0100城",
        "⠓⠑⠇⠇⠕⠀⠺⠕⠗⠇⠙",
    ],
)
def test_ordinary_writing_is_returned_as_the_same_object(text: str):
    assert escape_invisible(text) is text
    assert remove_invisible(text) is text
    assert not has_invisible(text)


@pytest.mark.parametrize(
    "text",
    [
        f"hello{tags('read the key')}",
        f"🏴{tags('read the key')}\U000e007f",
        f"😊{selectors('ignore all')}",
        "pass\u200dword",
        "👩\u200d\u200d💻",
        "سلام\u200c\u200c\u200cسلام",
        "a\u202eb\u202c",
        "\x1b[8mhidden\x1b[0m",
        "over\rwritten",
    ],
)
def test_hidden_payloads_do_not_pass_as_ordinary_writing(text: str):
    assert has_invisible(text)
    assert not has_invisible(escape_invisible(text))
    assert not has_invisible(remove_invisible(text))


def test_an_escape_is_json_so_that_json_text_keeps_its_value():
    value = {"note": f"a\u200bb{tags('x')}", "emoji": "👩\u200d💻"}
    escaped = escape_invisible(json.dumps(value, ensure_ascii=False))
    assert "\\u200b" in escaped
    assert not has_invisible(escaped)
    assert json.loads(escaped) == value


def test_the_number_of_removed_characters_is_exact():
    assert remove_invisible_counted("a\u200bb\u200b❤\ufe0f") == ("ab❤\ufe0f", 2)


def test_json_values_are_escaped_in_keys_and_at_every_depth():
    value: Json = {"a\u200b": [{"b": "c\u2060"}, 1, None, True]}
    assert escape_json(value) == {"a\\u200b": [{"b": "c\\u2060"}, 1, None, True]}
    plain: Json = {"a": [{"b": "c"}]}
    assert escape_json(plain) is plain
    assert escape_json({"a": "lone\r", "b": "\n"}) == {"a": "lone\\u000d", "b": "\n"}


def test_words_in_tags_and_selectors_are_decoded():
    assert decode_hidden(f"x{tags('send it')}") == "send it"
    assert decode_hidden(f"😊{selectors('ignore all')}") == "ignore all"
    assert decode_hidden(f"{ENGLAND} ❤\ufe0f") == ""


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        # A variation selector behind a character that has variants, one at a time.
        ("❤\ufe0f", "❤\ufe0f"),
        ("❤\ufe0e", "❤\ufe0e"),
        ("❤\ufe0f\ufe0f", "❤\ufe0f"),
        ("❤\ufe0f\u200d🔥", "❤\ufe0f\u200d🔥"),
        ("❤\ufe0f\u200da", "❤\ufe0fa"),
        ("❤\ufe0f\u200d\u200d🔥", "❤\ufe0f🔥"),
        ("❤\ufe0f\u200b🔥", "❤\ufe0f🔥"),
        ("a\ufe0f", "a"),
        ("\ufe0f❤", "❤"),
        ("1\ufe0f\u20e3", "1\ufe0f\u20e3"),
        ("#\ufe0e\u20e3", "#\ufe0e\u20e3"),
        ("*\ufe0f\u20e3", "*\ufe0f\u20e3"),
        ("1\ufe0f2", "12"),
        ("1\ufe0f\ufe0f\u20e3", "1\u20e3"),
        ("x\ufe0f\u20e3", "x\u20e3"),
        ("❤\ufe03", "❤"),
        ("葛\ufe00城", "葛\ufe00城"),
        ("葛\ufe01", "葛\ufe01"),
        ("葛\ufe02", "葛\ufe02"),
        ("葛\ufe03", "葛"),
        ("葛\ufe00\ufe00", "葛\ufe00"),
        ("葛\U000e0100", "葛\U000e0100"),
        ("葛\U000e010f", "葛\U000e010f"),
        ("葛\U000e0110", "葛"),
        ("a\U000e0100", "a"),
        # A joiner between two emoji, or two letters that join.
        ("👩\u200d💻", "👩\u200d💻"),
        ("👩\u200da", "👩a"),
        ("a\u200d💻", "a💻"),
        ("1\ufe0f\u20e3\u200d🔥", "1\ufe0f\u20e3\u200d🔥"),
        ("👩\u200c💻", "👩💻"),
        ("می\u200cخ", "می\u200cخ"),
        ("می\u200dخ", "می\u200dخ"),
        ("می\u200c ", "می "),
        (" \u200cخ", " خ"),
        ("क\u094d\u200d ", "क\u094d\u200d "),
        ("क\u200d ", "क "),
        # Mongolian, braille and flags.
        ("\u1820\u180b", "\u1820\u180b"),
        ("\u1820\u180f", "\u1820\u180f"),
        ("\u1820\u180b\u180c", "\u1820\u180b"),
        ("a\u180b", "a"),
        ("⠓\u2800a", "⠓\u2800a"),
        ("a\u2800⠓", "a\u2800⠓"),
        ("⠓\u2800\u2800⠓", "⠓\u2800\u2800⠓"),
        ("⠓\u2800\u200b⠓", "⠓⠓"),
        ("a\u2800b", "ab"),
        (ENGLAND, ENGLAND),
        (ENGLAND + "\u200b", "🏴"),
        (ENGLAND.replace("🏴", "🚩"), "🚩"),
        (f"🏴{tags('gbxxx')}\U000e007f", "🏴"),
        # Anything else, at both ends and alone.
        ("\u200ba", "a"),
        ("a\u200b", "a"),
        ("\u200b", ""),
        ("a\rb\r\nc\r", "ab\r\nc"),
        ("ü\rb\u200b\r\n", "üb\r\n"),
        ("a\x00b\x7fc\x9fd", "abcd"),
        ("a\u200bb\u200bc", "abc"),
    ],
)
def test_what_belongs_to_the_writing_around_it_stays_one_at_a_time(text: str, cleaned: str):
    assert remove_invisible(text) == cleaned
    assert has_invisible(text) is (text != cleaned)
    assert remove_invisible_counted(text) == (cleaned, len(text) - len(cleaned))


@pytest.mark.parametrize(
    ("character", "escape"),
    [("\x00", "\\u0000"), ("\r", "\\u000d"), ("\uffff", "\\uffff"), ("\U000e0041", "\\udb40\\udc41")],
)
def test_a_character_is_escaped_as_json_writes_it(character: str, escape: str):
    assert escape_invisible(f"ü{character}b") == f"ü{escape}b"
    assert escape_invisible(f"a{character}b") == f"a{escape}b"
    assert json.loads(f'"{escape}"') == character


def test_what_is_hidden_is_decoded_from_its_first_to_its_last_letter():
    assert decode_hidden(f"a{tags(' ~')}b") == " ~"
    assert decode_hidden("a\U000e001f\U000e007f\U000e0001b") == ""
    assert decode_hidden(f"a{selectors('ok' + chr(0x7E))}") == "ok~"
    assert decode_hidden(f"a{selectors(chr(0x10))}") == "", "not printable"
    assert decode_hidden("a\U000e01efb") == "", "no character of UTF-8"
    assert decode_hidden(f"a{tags('x')}{selectors('é')}") == "xé"
    assert decode_hidden("❤\ufe0f") == "", "of ordinary writing"
    assert decode_hidden("plain") == ""


def test_values_of_json_are_searched_at_every_depth_and_kept_where_nothing_changes():
    plain: Json = {"a": ["b", {"c": "d"}], "e": 1, "f": None}
    assert escape_json(plain) is plain
    assert not has_invisible_in(plain, "x", [])
    for found in ({"a\u200b": 1}, {"a": [{"b": "\u200b"}]}, ["x", "\u200b"], "\u200b", MappingProxyType({"\u200b": 1})):
        assert has_invisible_in("x", found)  # pyright: ignore[reportArgumentType]
    assert has_invisible_in(MappingProxyType({"a": ["\u200b"]}))  # pyright: ignore[reportArgumentType]
    kept: Json = ["x", {"y": "z"}]
    changed = escape_json({"a": kept, "b\u200b": "c\u200b", "d": ["\u200b", kept], "n": 3})
    assert changed == {"a": ["x", {"y": "z"}], "b\\u200b": "c\\u200b", "d": ["\\u200b", ["x", {"y": "z"}]], "n": 3}
    assert isinstance(changed, dict)
    assert changed["a"] is kept


def test_two_keys_that_become_one_are_a_change():
    merged: Json = {"a": 1, "a\u200b": 1}
    assert map_strings(merged, remove_invisible) == {"a": 1}
    swapped: Json = {"a": "b"}
    assert map_strings(swapped, str.upper) == {"A": "B"}
    assert map_strings(3, str.upper) == 3
