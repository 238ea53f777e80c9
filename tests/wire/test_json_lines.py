import json
import math
from typing import Any

import anyio
import pytest

from ullage.wire.jsonrpc import (
    DEEPEST,
    LineReader,
    LineSplitter,
    TooDeep,
    TooLong,
    encode_line,
    encode_long_line,
    encode_pieces,
    is_large,
    read_line,
)

pytestmark = pytest.mark.requirement("U:bounded")


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


LARGE = [
    {"text": 'h\u00e9"llo\\ ' * 200_000},
    {"rows": [{"a": number, "b": None, "c": [1, 2.5, "x"]} for number in range(20_000)]},
    {"rows": [[0] * 30_000, 1, ["y" * 900_000], {"deep": {"er": list(range(50_000))}}]},
    {f"key {number}": {"nan": float("nan"), "tuple": (1, 2)} for number in range(30_000)},
]


@pytest.mark.parametrize("value", LARGE, ids=["text", "table", "uneven", "object"])
def test_what_is_large_is_written_in_pieces_and_reads_the_same(value: dict[str, object]):
    assert is_large(value)
    assert encode_long_line(value) == encode_line(value)


def test_what_is_small_is_not_large():
    assert not is_large({"content": [{"type": "text", "text": "x" * 10_000}] * 20})


def test_what_json_cannot_say_is_written_as_near_as_it_can():
    assert json.loads(encode_line({"a": [float("inf"), "\ud800", (1, 2)]})) == {"a": [None, "\ufffd", [1, 2]]}
    with pytest.raises(TypeError):
        encode_line({"a": {1, 2}})


@pytest.mark.requirement("U:bounded")
def test_no_piece_of_what_is_large_is_long():
    value = {"k" * 300_000: ["x" * 3_000_000, [[1] * 100] * 3_000]}
    pieces = encode_pieces(value)
    assert max(map(len, pieces)) < 500_000
    assert b"".join(pieces) + b"\n" == encode_line(value)


def test_pieces_can_be_ascii_and_what_json_cannot_say_is_refused():
    assert b"".join(encode_pieces({"a": "\u00e9" * 500_000}, is_ascii=True)).isascii()
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode_pieces({"a": float("nan")})


@pytest.mark.parametrize("chunk", [7, 65_536, 10_000_000])
def test_lines_are_split_wherever_chunks_end(chunk: int):
    lines = [b"a", b"", b"b" * 500_000, b"c" * 300_000, b"d"]
    stream = b"\n".join(lines) + b"\nrest"
    chunks = [stream[at : at + chunk] for at in range(0, len(stream), chunk)] if chunk > 7 else [stream[:7], stream[7:]]
    splitter = LineSplitter(10_000_000)
    assert [line for part in chunks for line in splitter.split(part)] == lines
    assert splitter.rest() == b"rest"
    assert splitter.rest() == b""


def test_a_line_longer_than_the_longest_is_refused_and_forgotten():
    splitter = LineSplitter(400_000)
    assert list(splitter.split(b"x" * 300_000)) == []
    with pytest.raises(TooLong):
        list(splitter.split(b"x" * 200_000))
    assert list(splitter.split(b"y\n")) == [b"y"]


@pytest.mark.anyio
async def test_a_long_batch_is_taken_some_messages_at_a_time_and_before_the_next_line():
    taken = list[Any]()
    reader = LineReader(lambda line, read: read(line), lambda _, value: taken.append(value), longest=math.inf)
    batch = [{"jsonrpc": "2.0", "method": "notifications/message", "params": {"n": n}} for n in range(5_000)]
    done = anyio.Event()
    reader.feed(json.dumps(batch).encode() + b"\n" + b'{"last": 1}\n')
    reader.finish(done.set)
    with anyio.fail_after(20):
        await done.wait()
    assert taken.pop() == {"last": 1}
    assert max(map(len, taken)) <= 200
    assert [one for portion in taken for one in portion] == batch


@pytest.mark.parametrize("line", [b' {"a": 1}', b'{"a": 1} \r', b'\t{"a": 1}\n', b'\xef\xbb\xbf{"a": 1}'])
def test_white_space_around_a_message_does_not_matter(line: bytes):
    assert read_line(line) == {"a": 1}


@pytest.mark.parametrize("line", [b"", b" ", b'{"a": 1} x', b'{"a": 1}{', b"{", b'{"a": 1,}', b"nul"])
def test_what_is_around_or_missing_from_a_message_is_an_error(line: bytes):
    with pytest.raises(ValueError, match=r"JSON|Expecting|Extra|Illegal|double"):
        read_line(line)


def test_a_value_that_contains_itself_is_refused():
    value: dict[str, object] = {}
    value["again"] = value
    with pytest.raises(RecursionError):
        encode_line(value)
