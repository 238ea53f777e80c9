import logging
import threading

import pytest

from ullage.errors import BadConfiguration
from ullage.gateway.find.tool_index import Embedders
from ullage.options import IndexKind
from ullage.testing import FakeEmbedder

pytestmark = pytest.mark.requirement("S1:hybrid")


class Counting:
    """A loader that says how often it was asked."""

    def __init__(self, edition: str) -> None:
        self.edition = edition
        self.times = 0

    def __call__(self) -> FakeEmbedder:
        self.times += 1
        return FakeEmbedder(edition=self.edition)


def _missing() -> FakeEmbedder:
    raise BadConfiguration("`onnxruntime` is not installed", suggestion="pip install 'ullage[encoder]'")


def _damaged() -> FakeEmbedder:
    raise OSError("no space left on disk")


def _edition(embedders: Embedders, kind: IndexKind) -> str | None:
    embedder = embedders.of(kind)
    return None if embedder is None else embedder.edition


def test_each_is_loaded_when_first_wanted_and_then_kept():
    table, encoder = Counting("table"), Counting("encoder")
    embedders = Embedders({"static": table, "encoder": encoder})
    assert (table.times, encoder.times) == (0, 0)
    assert [_edition(embedders, "static") for _ in range(3)] == ["table"] * 3
    assert (table.times, encoder.times) == (1, 0)
    assert _edition(embedders, "encoder") == "encoder"


def test_words_alone_need_nobody():
    table = Counting("table")
    assert _edition(Embedders({"static": table}), "words") is None
    assert table.times == 0


def _said(embedders: Embedders, caplog: pytest.LogCaptureFixture, found: str | None) -> list[str]:
    """What the log says of wanting the encoder three times and getting `found`."""
    with caplog.at_level(logging.WARNING):
        assert [_edition(embedders, "encoder") for _ in range(3)] == [found] * 3
    return [record.getMessage() for record in caplog.records]


def test_the_table_stands_in_for_an_encoder_that_cannot_be_had_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
):
    (said,) = _said(Embedders({"static": Counting("table"), "encoder": _missing}), caplog, "table")
    assert said == (
        "search by meaning (`encoder`) cannot be loaded: `onnxruntime` is not installed (pip install 'ullage[encoder]')"
        "; tools are searched by the table that comes with the package"
    )


def test_words_stand_in_for_whatever_else_is_broken(caplog: pytest.LogCaptureFixture):
    _, said = _said(Embedders({"static": _damaged, "encoder": _missing}), caplog, None)
    assert said == (
        "search by meaning (`static`) cannot be loaded: no space left on disk; tools are searched by words alone"
    )


def test_many_threads_load_it_once():
    table = Counting("table")
    embedders = Embedders({"static": table})
    threads = [threading.Thread(target=embedders.of, args=("static",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert table.times == 1


def _give_up(embedders: Embedders, kind: IndexKind) -> None:
    failed = embedders.of(kind)
    assert failed is not None
    embedders.give_up(failed, OSError("no memory"))


def test_what_fails_later_is_done_without_one_after_the_other(caplog: pytest.LogCaptureFixture):
    embedders = Embedders({"static": Counting("table"), "encoder": Counting("encoder")})
    _give_up(embedders, "encoder")
    assert (_edition(embedders, "encoder"), _edition(embedders, "static")) == ("table", "table")
    _give_up(embedders, "encoder")
    assert (_edition(embedders, "encoder"), _edition(embedders, "static")) == (None, None)
    said = [record.getMessage() for record in caplog.records]
    assert ["by the table" in line for line in said] == [True, False]
    assert all("no memory" in line for line in said)


def test_what_was_given_up_before_takes_nothing_else_with_it(caplog: pytest.LogCaptureFixture):
    embedders = Embedders({"static": Counting("table"), "encoder": Counting("encoder")})
    failed = embedders.of("encoder")
    assert failed is not None
    for _ in range(3):
        embedders.give_up(failed, OSError("no memory"))
    assert (_edition(embedders, "encoder"), _edition(embedders, "static")) == ("table", "table")
    assert len(caplog.records) == 1


def test_a_table_that_fails_leaves_the_encoder_at_work():
    embedders = Embedders({"static": Counting("table"), "encoder": Counting("encoder")})
    assert (_edition(embedders, "static"), _edition(embedders, "encoder")) == ("table", "encoder")
    _give_up(embedders, "static")
    assert (_edition(embedders, "static"), _edition(embedders, "encoder")) == (None, "encoder")
