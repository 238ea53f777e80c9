from zlib import crc32

import numpy as np
import pytest

from ullage.search import packed, unpacked

pytestmark = pytest.mark.requirement("S1:hybrid")

EDITION = "table-1-0123456789abcdef"


def vector(numbers: int = 256) -> np.ndarray:
    drawn = np.random.default_rng(7).standard_normal(numbers).astype(np.float32)
    return drawn / np.linalg.norm(drawn)


@pytest.mark.parametrize("numbers", [256, 384])
def test_a_vector_comes_back_as_it_was_kept(numbers: int):
    made = vector(numbers)
    found = unpacked(packed(made, EDITION), EDITION)
    assert found is not None
    assert found.dtype == np.float32
    assert float(np.abs(found - made).max()) < 2**-12
    assert abs(float(found @ made) - 1) < 0.001


def test_it_takes_two_bytes_a_number_and_a_few_more():
    assert len(packed(vector(), EDITION)) == 2 * 256 + 12


def test_zeros_come_back_as_zeros():
    found = unpacked(packed(np.zeros(256, dtype=np.float32), EDITION), EDITION)
    assert found is not None
    assert not found.any()


def test_a_vector_of_another_edition_is_none():
    assert unpacked(packed(vector(), EDITION), "table-2-0123456789abcdef") is None


def test_damaged_bytes_are_none():
    whole = packed(vector(), EDITION)
    for cut in (0, 1, 7, 8, 12, 100, len(whole) - 1):
        assert unpacked(whole[:cut], EDITION) is None
    for place in (0, 9, 300, len(whole) - 1):
        damaged = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        assert unpacked(damaged, EDITION) is None
    assert unpacked(whole + b"\0\0", EDITION) is None


def test_bytes_that_are_no_whole_numbers_are_none_though_their_sum_is_right():
    body = packed(vector(), EDITION)[:-4] + b"\0"
    assert unpacked(body + crc32(body).to_bytes(4, "little"), EDITION) is None
