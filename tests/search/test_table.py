import json
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from ullage.errors import BadConfiguration
from ullage.search import Document, load_table, packed
from ullage.search.load_embedder import read_table
from ullage.search.static_embedder import Pieces, StaticTable
from ullage.search.stemming_and_synonyms import aspects

pytestmark = pytest.mark.requirement("S1:hybrid")

ROOT = Path(__file__).parent.parent.parent
WEIGHTS = ROOT / "src" / "ullage" / "search" / "weights"
WORDS = ("send", "message", "mail", "read", "file", "weather", "city", "to", "a")

MAIL = Document(id="mail", name="send_message", server="post", description="Sends a mail. To a city.")
FILE = Document(id="file", name="readFile", description="Read a file", parameter_names=("file",))
ODD = Document(id="odd", name="zzz", description="???")


def small(words: Sequence[str] = WORDS, numbers: int = 8) -> StaticTable:
    """Weights from nowhere, the same everywhere."""
    count = np.arange(1, len(words) + 1)
    return StaticTable(
        digest="small",
        pieces=Pieces(words),
        rows=(np.arange(len(words) * numbers).reshape(-1, numbers) ** 3 % 255 - 127).astype(np.int8),
        steps=(1 / count).astype(np.float32),
        telling=(count / 3).astype(np.float32),
        weights=(0.5, 1.0, 3.0, 2.0, 0.25),
    )


def naive_document(table: StaticTable, document: Document) -> np.ndarray:
    total = np.zeros(table.rows.shape[1])
    for text, weight in zip(aspects(document), table.weights, strict=True):
        rows = table.pieces.rows(text)
        for row in rows:
            total += weight / len(rows) * float(table.steps[row]) * table.rows[row].astype(float)
    return total / (np.linalg.norm(total) or 1)


def naive_query(table: StaticTable, text: str) -> np.ndarray:
    total = np.zeros(table.rows.shape[1])
    for row in table.pieces.rows(text):
        total += float(table.telling[row]) * float(table.steps[row]) * table.rows[row].astype(float)
    return total / (np.linalg.norm(total) or 1)


@pytest.mark.parametrize("table", [small(), read_table(WEIGHTS)], ids=["small", "shipped"])
def test_vectors_are_what_the_sum_over_rows_gives(table: StaticTable):
    found = table.embed_documents([MAIL, FILE, ODD])
    assert np.allclose(found, [naive_document(table, document) for document in (MAIL, FILE, ODD)], atol=1e-6)
    query = "Send a message to a city. Read a file of weather."
    parts = [query, "Send a message to a city.", "Read a file of weather."]
    assert np.allclose(table.embed_query(query), [naive_query(table, part) for part in parts], atol=1e-6)


def test_vectors_have_length_one_and_those_of_nothing_known_are_zeros():
    found = small().embed_documents([MAIL, ODD])
    assert np.allclose(np.linalg.norm(found, axis=1), [1, 0])
    assert not small().embed_query("zzz").any()
    assert small().embed_query("").shape == (1, 8)
    assert small().embed_documents([]).shape == (0, 8)


def test_a_document_has_the_same_bits_in_any_company():
    table = load_table()
    together = table.embed_documents([FILE, MAIL, ODD, FILE])
    assert (together[1] == table.embed_documents([MAIL])[0]).all()
    assert (together[0] == together[3]).all()


def test_the_same_weights_give_the_same_bytes_on_every_machine():
    """Where this fails on purpose, another edition must be given out: stored vectors are of the old way."""
    table = small()
    made = [*table.embed_documents([MAIL, FILE]), *table.embed_query("send mail to city. read a weather file.")]
    assert table.edition == "table-1-small"
    assert sha256(b"".join(packed(vector, "") for vector in made)).hexdigest()[:16] == "212907a055412562"


def test_no_more_of_a_text_is_read_than_counts():
    table = small()
    assert (table.embed_query("send " * 96 + "file " * 50) == table.embed_query("send " * 96)).all()
    long = Document(id="1", name="send " * 24 + "file " * 9)
    assert np.allclose(table.embed_documents([long]), table.embed_documents([Document(id="2", name="send")]))


def test_meaning_is_found_where_no_word_is_shared():
    table = load_table()
    pairs = {
        "post in the team's chat room": Document(id="1", name="slack_send_message"),
        "will it rain tomorrow": Document(id="2", name="get_weather_forecast"),
        "erase a document from the disk": Document(id="3", name="delete_file"),
        "Übersetze einen Text": Document(id="4", name="translate"),
    }
    documents = table.embed_documents(list(pairs.values()))
    nearest = [int((table.embed_query(query)[0] @ documents.T).argmax()) for query in pairs]
    assert nearest == [0, 1, 2, 3]


def test_the_weights_are_read_once_whoever_asks():
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: load_table(), range(16)))
    assert len({id(table) for table in found}) == 1


def test_the_edition_names_the_weights_that_are_there():
    card = json.loads((WEIGHTS / "table.json").read_text(encoding="utf-8"))
    found = sha256(json.dumps(card["weights"]).encode())
    for name in ("rows.npy", "steps.npy", "telling.npy", "vocabulary.txt"):
        found.update((WEIGHTS / name).read_bytes())
    assert found.hexdigest().startswith(card["digest"])
    assert load_table().edition == f"table-1-{card['digest']}"


def test_weights_that_are_missing_or_damaged_are_an_error_that_says_what_to_do(tmp_path: Path):
    with pytest.raises(BadConfiguration, match="missing or damaged"):
        read_table(tmp_path)
    for file in WEIGHTS.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "vocabulary.txt").write_text("a\nb", encoding="utf-8")
    with pytest.raises(BadConfiguration) as damaged:
        read_table(tmp_path)
    assert damaged.value.suggestion == "pip install --force-reinstall --no-deps ullage"
    (tmp_path / "rows.npy").write_bytes(b"")
    with pytest.raises(BadConfiguration):
        read_table(tmp_path)


OFFLINE = """
import socket, sys
def closed(*_, **__): raise OSError("the network is closed")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = closed
import ullage
from ullage.search import Document, load_table
assert ullage.__file__.startswith(sys.argv[1]), ullage.__file__
assert "numpy" not in sys.modules, "numpy is loaded before anybody searches"
table = load_table()
assert table.embed_query("send a message").any()
assert table.embed_documents([Document(id="1", name="send_message")]).any()
"""


def test_the_wheel_carries_weights_and_notice_and_needs_neither_network_nor_home(tmp_path: Path):
    build = [sys.executable, "-m", "flit_core.wheel", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    home, installed = tmp_path / "home", tmp_path / "installed"
    home.mkdir()
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(installed)
    (notice,) = installed.glob("*.dist-info/licenses/NOTICE")
    assert "WordNet 3.1 Copyright 2011 by Princeton University" in notice.read_text(encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-c", OFFLINE, str(installed)],
        capture_output=True,
        text=True,
        env={"HOME": str(home), "PATH": "", "PYTHONPATH": str(installed)},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert list(home.iterdir()) == []


def test_letters_without_sense_are_hardly_believed():
    length = {text: float(np.linalg.norm(load_table().embed_query(text)[0])) for text in ("zzzz qqqq", "zzzz weather")}
    assert length == pytest.approx({"zzzz qqqq": 0.4, "zzzz weather": 1.0}, abs=1e-5)
