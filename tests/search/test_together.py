import numpy as np
import pytest

from ullage.search import Document, HybridIndex
from ullage.search.encoder import Together
from ullage.testing import FakeEmbedder, check_embedder

pytestmark = pytest.mark.requirement("S1:hybrid")

MAIL = Document(id="mail", name="send_mail", description="Sends a letter to somebody.")
FILE = Document(id="file", name="read_file", description="Reads what a file holds.")


class Deaf(FakeEmbedder):
    """Holds every text for the same."""

    def embed_documents(self, documents):
        return np.tile(np.eye(1, 8, dtype=np.float32), (len(documents), 1))

    def embed_query(self, query):
        return np.tile(np.eye(1, 8, dtype=np.float32), (len(super().embed_query(query)), 1))


def nearness(embedder, query: str) -> np.ndarray:
    return embedder.embed_documents([MAIL, FILE]) @ embedder.embed_query(query)[0]


def test_two_embedders_are_an_embedder():
    check_embedder(Together(encoder=FakeEmbedder(), table=FakeEmbedder()))


def test_nearness_is_the_weighed_sum_of_both():
    one, other = FakeEmbedder(), Deaf()
    both = nearness(Together(encoder=one, table=other), "send a letter")
    assert both == pytest.approx(0.65 * nearness(one, "send a letter") + 0.35, abs=1e-5)


@pytest.mark.parametrize("query", ["문서 읽기", "写信", "отправить письмо"])
def test_where_letters_are_not_latin_the_table_speaks_alone(query: str):
    table = FakeEmbedder()
    assert nearness(Together(encoder=Deaf(), table=table), query) == pytest.approx(nearness(table, query), abs=1e-5)


@pytest.mark.parametrize("query", ["lê o arquivo", "Größe der Datei?", "send mail to 张伟 at noon", "42", ""])
def test_accents_numbers_and_a_foreign_name_leave_both_to_speak(query: str):
    row = Together(encoder=Deaf(), table=FakeEmbedder()).embed_query(query)[0]
    assert row[0] > 0


def test_every_sentence_is_judged_by_its_own_letters():
    rows = Together(encoder=Deaf(), table=FakeEmbedder()).embed_query("send a letter now. 写 信 给 他")
    assert [row[0] > 0 for row in rows] == [True, True, False]


class Doubting(FakeEmbedder):
    def embed_query(self, query):
        return super().embed_query(query) * np.float32(0.4)


def test_what_the_table_hardly_believes_the_encoder_is_believed_no_more():
    query = "send a letter"
    sure, doubtful = (Together(encoder=FakeEmbedder(), table=table) for table in (FakeEmbedder(), Doubting()))
    assert nearness(doubtful, query) == pytest.approx(0.4 * nearness(sure, query), abs=1e-5)


def test_other_parts_are_another_edition():
    one, other = FakeEmbedder(), Together(encoder=FakeEmbedder(), table=FakeEmbedder())
    assert Together(encoder=one, table=one).edition != Together(encoder=other, table=one).edition


def test_both_weigh_what_the_encoder_weighs():
    assert Together(encoder=FakeEmbedder(weight=3.0), table=FakeEmbedder(weight=5.0)).weight == 3.0


def test_an_index_can_be_made_of_both():
    index = HybridIndex([MAIL, FILE], Together(encoder=FakeEmbedder(), table=FakeEmbedder()))
    assert [hit.document.id for hit in index.search("send a letter", 1)] == ["mail"]
