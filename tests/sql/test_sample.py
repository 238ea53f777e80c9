import contextlib
import hashlib
import sqlite3
from pathlib import Path

import pytest

from ullage.errors import SourceFailed
from ullage.sql import sample_shop as shop
from ullage.sql.sample_shop import make_sample


def ask(path: Path, sql: str) -> list[tuple]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def test_the_shop_has_customers_products_and_orders(tmp_path: Path):
    path = make_sample(tmp_path / "new" / "shop.db")
    tables = ("categories", "products", "customers", "orders", "order_items", "reviews", "order_totals")
    counts = {name: ask(path, f"SELECT count(*) FROM {name}")[0][0] for name in tables}
    assert 2_000 <= sum(counts.values()) - counts["order_totals"] <= 5_000
    assert all(counts.values())
    assert ask(path, "PRAGMA foreign_key_check") == []
    assert ask(path, "PRAGMA integrity_check") == [("ok",)]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["shop.db"]
    impossible = (
        "SELECT count(*) FROM orders o JOIN customers c ON c.id = o.customer_id WHERE c.joined_on > o.ordered_at"
    )
    assert ask(path, impossible) == [(0,)]


def test_the_shop_is_the_same_everywhere():
    digest = hashlib.sha256(repr(list(shop.rows())).encode()).hexdigest()
    assert digest == hashlib.sha256(repr(list(shop.rows())).encode()).hexdigest()
    assert (shop.EDITION, digest[:16]) == (1, "2f2e515f7fbcdd2f"), (
        "raise EDITION: files that people have are of another making"
    )


def test_a_shop_that_is_there_is_not_made_again(tmp_path: Path):
    path = make_sample(tmp_path / "shop.db")
    before = path.stat()
    make_sample(path)
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_a_shop_of_an_earlier_edition_is_replaced(tmp_path: Path):
    path = make_sample(tmp_path / "shop.db")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA user_version = 0; DELETE FROM reviews;")
    make_sample(path)
    assert ask(path, "SELECT count(*) > 0 FROM reviews") == [(1,)]


@pytest.mark.parametrize("content", [b"", b"someone's letters"])
def test_no_other_programs_file_is_overwritten(tmp_path: Path, content: bytes):
    path = tmp_path / "shop.db"
    path.write_bytes(content)
    with pytest.raises(SourceFailed, match="is not it"):
        make_sample(path)
    assert path.read_bytes() == content


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(SourceFailed, match="cannot be written"):
        make_sample(tmp_path / "file" / "shop.db")
