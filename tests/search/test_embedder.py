from collections.abc import Sequence

import numpy as np
import pytest

from ullage.search import Document, load_table
from ullage.testing import FakeEmbedder, check_embedder

pytestmark = pytest.mark.requirement("S1:hybrid")


def test_the_embedder_that_ships_and_the_fake_conform():
    check_embedder(load_table())
    check_embedder(FakeEmbedder())


def test_texts_are_near_for_the_fake_as_far_as_they_share_words():
    fake = FakeEmbedder()
    vectors = fake.embed_documents([Document(id="1", name="read_mail"), Document(id="2", name="book_ferry")])
    near = fake.embed_query("book a ferry")[0] @ vectors.T
    assert near[1] > near[0]
    assert "book a ferry" in fake.asked


class Averaging(FakeEmbedder):
    """Takes the mean of all documents from each."""

    def embed_documents(self, documents: Sequence[Document]) -> np.ndarray:
        vectors = FakeEmbedder.embed_documents(self, documents)
        return vectors - vectors.mean(axis=0) / 2 if len(vectors) else vectors


class Narrow(FakeEmbedder):
    def embed_query(self, query: str) -> np.ndarray:
        return FakeEmbedder.embed_query(self, query)[:, :8]


class Nameless(FakeEmbedder):
    def __init__(self) -> None:
        FakeEmbedder.__init__(self, edition="")


@pytest.mark.parametrize("wrong", [Averaging, Narrow, Nameless])
def test_an_embedder_that_breaks_its_promises_is_caught(wrong: type[FakeEmbedder]):
    with pytest.raises(AssertionError):
        check_embedder(wrong())
