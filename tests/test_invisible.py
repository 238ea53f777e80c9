"""Invisible characters: which are found, how they are escaped, and which belong to ordinary writing."""

import json
import unicodedata

import pytest

from ullage.invisible_characters import (
    decode_hidden,
    escape_invisible,
    escape_json,
    has_invisible,
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
