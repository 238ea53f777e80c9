import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ullage.errors import BadConfiguration
from ullage.search import Document, load_encoder
from ullage.search.encoder import Encoder, WordPiece
from ullage.search.load_embedder import read_encoder
from ullage.testing import check_embedder

pytestmark = pytest.mark.requirement("S1:hybrid")

ROOT = Path(__file__).parent.parent.parent
VOCABULARY = ["[UNK]", "[CLS]", "[SEP]", "send", "mail", "read", "file", "post", "."]
BEGIN, END = 1, 2


@dataclass
class FakeNetwork:
    """A vector is how often each piece occurs, of length one."""

    read: list[list[int]] = field(default_factory=list[list[int]])

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, np.ndarray], /) -> list[np.ndarray]:
        assert output_names is None
        texts, mask = input_feed["input_ids"], input_feed["attention_mask"]
        assert texts.dtype == mask.dtype == np.int64
        assert texts.shape == mask.shape
        assert mask.all()
        self.read += texts.tolist()
        counts = np.stack([np.bincount(text, minlength=384) for text in texts]).astype(np.float32)
        return [counts / np.linalg.norm(counts, axis=1, keepdims=True)]


def encoder(network: FakeNetwork) -> Encoder:
    return Encoder(digest="0123", pieces=WordPiece(VOCABULARY), network=network)


def numbers(text: str) -> list[int]:
    return [BEGIN, *(VOCABULARY.index(piece) for piece in text.split()), END]


def test_a_document_is_read_aspect_behind_aspect():
    network = FakeNetwork()
    document = Document(
        id="1", name="sendMail", server="post", description="Send. Read file", parameter_names=("mail", "file")
    )
    encoder(network).embed_documents([document])
    assert network.read == [numbers("post send mail send . read file mail file")]


def test_texts_are_read_one_at_a_time_so_that_none_changes_another():
    network = FakeNetwork()
    documents = [Document(id="1", name="send_mail"), Document(id="2", name="read"), Document(id="3", name="send")]
    vectors = encoder(network).embed_documents(documents)
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    assert network.read == [numbers("send mail"), numbers("read"), numbers("send")]


def test_a_query_is_read_whole_and_by_sentences():
    network = FakeNetwork()
    vectors = encoder(network).embed_query("Send mail post. Read file post.")
    assert network.read == [
        numbers("send mail post . read file post ."),
        numbers("send mail post ."),
        numbers("read file post ."),
    ]
    assert len(vectors) == 3


def test_a_text_is_read_to_its_hundred_and_twenty_eighth_piece():
    network = FakeNetwork()
    encoder(network).embed_query("send " * 1_000)
    assert [len(text) for text in network.read] == [128]


def test_nothing_is_made_of_nothing():
    network = FakeNetwork()
    assert encoder(network).embed_documents([]).shape == (0, 384)
    assert not encoder(network).embed_documents([Document(id="1", name="")]).any()
    assert not encoder(network).embed_query(" ").any()
    assert network.read == []


def test_it_keeps_what_an_embedder_promises():
    pieces = ["[UNK]", "[CLS]", "[SEP]", "book", "ferry", "place", "a", "on"]
    check_embedder(Encoder(digest="0123", pieces=WordPiece(pieces), network=FakeNetwork()))


def test_the_edition_names_the_file():
    assert encoder(FakeNetwork()).edition == "encoder-1-0123"


DIGEST = sha256(b"network").hexdigest()[:16]


def weights(folder: Path) -> Path:
    (folder / "encoder.onnx").write_bytes(b"network")
    (folder / "digest.txt").write_text(f"{DIGEST} 7 {len(VOCABULARY)}\n", encoding="utf-8")
    (folder / "vocabulary.txt").write_text("\n".join(VOCABULARY), encoding="utf-8")
    return folder


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stands for onnxruntime, and remembers what it was asked."""
    fake = SimpleNamespace(sessions=[], telemetry=True)

    def session(file: str, options: SimpleNamespace, *, providers: list[str]) -> FakeNetwork:
        fake.sessions.append((Path(file).name, options, providers))
        return FakeNetwork()

    fake.InferenceSession, fake.SessionOptions = session, SimpleNamespace
    fake.disable_telemetry_events = lambda: setattr(fake, "telemetry", False)
    monkeypatch.setitem(sys.modules, "onnxruntime", fake)
    return fake


def test_the_network_runs_on_one_thread_of_the_processor_and_tells_nobody(tmp_path: Path, runtime: SimpleNamespace):
    found = read_encoder(weights(tmp_path))
    assert found.edition == f"encoder-1-{DIGEST}"
    assert found.embed_query("send mail").any()
    one_thread = SimpleNamespace(intra_op_num_threads=1, inter_op_num_threads=1)
    assert runtime.sessions == [("encoder.onnx", one_thread, ["CPUExecutionProvider"])]
    assert not runtime.telemetry


@pytest.mark.usefixtures("runtime")
def test_weights_that_are_missing_or_not_whole_are_an_error_that_says_what_to_do(tmp_path: Path):
    with pytest.raises(BadConfiguration):
        read_encoder(tmp_path)
    for damage in (b"netwo", b"netw\0rk"):
        (weights(tmp_path) / "encoder.onnx").write_bytes(damage)
        with pytest.raises(BadConfiguration) as damaged:
            read_encoder(tmp_path)
        assert damaged.value.suggestion == "pip install --force-reinstall --no-deps ullage-encoder"
    (weights(tmp_path) / "vocabulary.txt").write_text("\n".join(VOCABULARY[:-1]), encoding="utf-8")
    with pytest.raises(BadConfiguration):
        read_encoder(tmp_path)


@pytest.mark.parametrize("missing", ["ullage_encoder", "onnxruntime"])
def test_who_has_not_installed_it_is_told_how(missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ullage_encoder", SimpleNamespace(files=lambda: weights(tmp_path)))
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(BadConfiguration) as failed:
        load_encoder()
    assert failed.value.message == f"`{missing}` is not installed"
    assert failed.value.suggestion == "pip install 'ullage[encoder]'"


def test_what_is_installed_is_loaded_once(tmp_path: Path):
    (tmp_path / "weights").mkdir()
    weights(tmp_path / "weights")
    distribution = ROOT / "encoder" / "src" / "ullage_encoder" / "__init__.py"
    (tmp_path / "ullage_encoder.py").write_text(distribution.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "onnxruntime.py").write_text(
        "class SessionOptions: pass\nclass InferenceSession:\n    def __init__(self, *_, **__): pass\n"
        "def disable_telemetry_events(): pass\n",
        encoding="utf-8",
    )
    script = (
        "from ullage.search import load_encoder; assert load_encoder() is load_encoder(); print(load_encoder().edition)"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env={"PYTHONPATH": str(tmp_path)}
    )
    assert f"-encoder-1-{DIGEST}-table-" in run.stdout, run.stderr


def test_its_distribution_carries_the_same_licence_and_the_notices_of_its_own_weights():
    assert (ROOT / "encoder" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    whole, own = (path.read_text(encoding="utf-8") for path in (ROOT / "NOTICE", ROOT / "encoder" / "NOTICE"))
    assert whole.startswith(own)
    # Each notice that it leaves out is about files of Ullage that it does not carry.
    left_out = [line for line in whole.removeprefix(own).splitlines() if line and not line.startswith(" ")]
    files = [re.findall(r"ullage/[\w./]+", line) for line in left_out]
    assert all(files), left_out
    assert all((ROOT / "src" / one).is_file() and "weights" not in one for some in files for one in some)
