import json

import pytest

from ullage.wire.json_lines import DEEPEST, TooDeep, read_line


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def test_an_ordinary_line_is_read_as_it_is():
    assert read_line(b'\xef\xbb\xbf{"id":1,"result":{"a":[1,"\\u00e9\\ud83d\\ude00"]}}') == {
        "id": 1,
        "result": {"a": [1, "é😀"]},
    }


@pytest.mark.parametrize("half", ["\\ud800", "\\uDFFF", "a\\udc00b"])
def test_half_a_character_is_replaced_so_that_the_rest_can_be_written(half: str):
    read = read_line(f'{{"id":1,"result":{{"{half}":["{half}"]}}}}'.encode())
    assert json.dumps(read, ensure_ascii=False).encode().count("\ufffd".encode()) == 2


@pytest.mark.parametrize("levels", [DEEPEST + 1, 5_000, 200_000])
def test_what_is_nested_too_deeply_costs_its_own_request_only(levels: int):
    for line in (f'{{"id":7,"result":{nested(levels)}}}', f'{{"result":{nested(levels)},"id":"x\\"y"}}'):
        with pytest.raises(TooDeep) as raised:
            read_line(line.encode())
        assert raised.value.number in (7, 'x"y')


def test_brackets_in_texts_are_not_nesting():
    text = json.dumps({"id": 1, "result": {"text": nested(3_000) + '\\"', "many": [[]] * 500}})
    assert read_line(text.encode())["result"]["text"].startswith("[[[")


def test_what_is_no_json_is_said_to_be_none():
    with pytest.raises(ValueError, match="Expecting"):
        read_line(b"{no")
