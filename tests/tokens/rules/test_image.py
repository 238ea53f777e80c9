from base64 import b64encode
from json import dumps
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage import count_request
from ullage.tokens.count import Method
from ullage.tokens.rules.images import (
    Size,
    anthropic_image,
    gemini_image,
    image_size,
    openai_image,
    split_files,
)
from ullage.tool import Json


def png(width: int, height: int) -> str:
    return b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + pack(">II", width, height) + b"\x08\x06\0\0\0").decode()


def jpeg(width: int, height: int, metadata: int = 0) -> str:
    note = b"\xff\xe1" + pack(">H", metadata + 2) + b"x" * metadata
    frame = b"\xff\xc0" + pack(">HBHH", 17, 8, height, width) + b"\x03" * 10
    return b64encode(b"\xff\xd8" + note + frame).decode()


def webp(kind: bytes, body: bytes) -> str:
    return b64encode(b"RIFF\0\0\0\0WEBP" + kind + b"\0\0\0\0" + body).decode()


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize(
    "data",
    [
        png(640, 480),
        jpeg(640, 480),
        jpeg(640, 480, metadata=60_000),
        b64encode(b"GIF89a" + pack("<HH", 640, 480) + b"\0\0\0").decode(),
        webp(b"VP8X", b"\0\0\0\0" + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")),
        webp(b"VP8L", b"\x2f" + (639 | 479 << 14).to_bytes(4, "little")),
        webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + pack("<HH", 640, 480)),
        "\n".join((png(640, 480)[:20], png(640, 480)[20:])),
    ],
)
def test_the_size_is_read_from_the_head_of_each_format(data: str) -> None:
    assert image_size(data) == (640, 480)


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize("data", ["", "not base64 at all", "AAAA", "é", "\ud800", png(0, 0), webp(b"VP9 ", b"")])
def test_bytes_that_tell_no_size_give_none(data: str) -> None:
    assert image_size(data) is None


@pytest.mark.requirement("S3:overheads")
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda content: b64encode(b"\xff\xd8" + content).decode()))
def test_no_data_makes_the_reader_fail(data: str) -> None:
    image_size(data)


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize(
    ("model", "size", "detail", "tokens"),
    [
        ("gpt-4o", (1024, 1024), "high", 765),
        ("gpt-4o", (2048, 4096), "high", 1105),
        ("gpt-4o", (4096, 8192), "low", 85),
        ("gpt-4o-mini", (1, 1), None, 8500),
        ("gpt-4.1", (1, 1), None, 255),
        ("gpt-5", (640, 480), None, 350),
        ("o3", (512, 512), None, 225),
        ("o4-mini", (640, 480), None, 517),
        ("gpt-5-mini", (640, 480), None, 361),
        ("gpt-5-nano", (640, 480), None, 451),
        ("gpt-4.1-mini", (1800, 2400), None, 1452 * 1.62 + 1),
    ],
)
def test_openai_images_weigh_what_the_published_rule_says(
    model: str, size: Size, detail: str | None, tokens: float
) -> None:
    assert openai_image(model, size, detail).tokens == round(tokens)


@pytest.mark.requirement("S3:overheads")
def test_an_image_behind_an_address_is_an_estimate_in_a_wide_band() -> None:
    for count in (openai_image("gpt-4o", None, None), anthropic_image(None), gemini_image("gemini-2.0", None)):
        assert count.method is Method.ESTIMATED
        assert count.high > 1.5 * count.tokens


@pytest.mark.requirement("S3:overheads")
def test_low_detail_needs_no_size_where_images_have_one_price() -> None:
    assert openai_image("gpt-4o", None, "low").tokens == 85


@pytest.mark.requirement("S3:overheads")
def test_anthropic_images_weigh_their_area_up_to_a_limit() -> None:
    assert anthropic_image((750, 750)).tokens == 750
    assert anthropic_image((8000, 8000)).tokens == 1600


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize(
    ("family", "size", "tokens"),
    [
        ("gemini-2.0", (300, 300), 258),
        ("gemini-2.0", (960, 540), 6 * 258),
        ("gemini-2.5", (4000, 3000), 258),
        ("gemini-3", (300, 300), 1095),
    ],
)
def test_gemini_images_weigh_tiles_or_a_fixed_sum(family: str, size: Size, tokens: int) -> None:
    assert gemini_image(family, size).tokens == tokens


@pytest.mark.requirement("S3:overheads")
@given(st.tuples(st.integers(1, 20_000), st.integers(1, 20_000)), st.sampled_from(["gpt-4o", "gpt-5-mini", "gpt-9"]))
def test_every_size_has_a_weight(size: Size, model: str) -> None:
    assert 0 < openai_image(model, size, None).tokens < 50_000


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"type": "image_generation_call", "result": png(1024, 1024) + "A" * 100}, "image"),
        ({"outputs": [{"url": "data:image/png;base64," + png(8, 8) + "A" * 100}]}, "image"),
        ({"result": webp(b"VP8X", b"\0\0\0\0" + bytes(60))}, "image"),
        ({"audio": {"data": b64encode(b"RIFF" + bytes(200)).decode()}}, "audio"),
        ({"source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}}, "document"),
    ],
)
def test_files_in_a_part_of_unknown_kind_are_weighed_as_files(value: Json, kind: str) -> None:
    rest, files = split_files(value)
    assert [file.kind for file in files] == [kind]
    assert "AAAA" not in dumps(rest)
    for model in ("gpt-5", "claude-sonnet-4-5", "gemini-2.5-pro", "qwen3-32b"):
        part: Json = {"type": "unheard-of", **value} if isinstance(value, dict) else value
        body = {"model": model, "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}, part]}]}
        assert count_request(body).total.tokens < 3_000


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize(
    "value",
    [
        {"encrypted_content": "gAAAAABo" * 40},
        {"source": {"type": "text", "media_type": "text/plain", "data": "A note. " * 40}},
        {"text": "data:image/png;base64, is how such an address begins, and this is only a sentence about it."},
        {"result": png(8, 8)[:20]},
    ],
)
def test_texts_are_not_taken_for_files(value: Json) -> None:
    assert split_files(value) == (value, [])
