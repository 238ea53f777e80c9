"""What of the trained table is kept?

Rows that training has hardly seen say nothing and are left out: their words fall apart into smaller pieces. Writes the
files that `ullage.search` reads, as plain arrays: a wheel compresses them, and unpacked they load at once.
`python training/ship.py PACK TABLE FOLDER`; with OUT for TABLE and `folds` behind it, the tables of all folds.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
from folds import FOLDS, without_fold
from lexicon import LEXICON

__all__ = ["digest_of", "ship", "write"]

_LEAST_SEEN = 2
_KINDS = {"rows": np.int8, "steps": np.float32, "telling": np.float16}
_DIGITS = 16
_SERVER = 1.4
"""What the server's name weighs, more than what was learnt (0.9): pairs made of a tool's own parts hardly name its
server, and whoever asks behind a gateway does."""


def main(pack: Path, table: Path, folder: Path, *options: str) -> None:
    if "folds" not in options:
        ship(pack, table, folder)
        return
    for fold in range(FOLDS):
        ship(pack, table / f"fold_{fold}.npz", folder / f"fold_{fold}", fold)


def ship(pack: Path, table: Path, folder: Path, fold: int | None = None) -> None:
    """Writes the rows that training has seen, without a fold's tools where one is given."""
    vocabulary = [piece for piece, _ in json.loads((pack / "vocabulary.json").read_text(encoding="utf-8"))]
    seen = _seen(pack, len(vocabulary), fold)
    kept = [
        row
        for row, piece in enumerate(vocabulary)
        if seen[row] >= _LEAST_SEEN or len(piece.removeprefix("##")) == 1 or piece in LEXICON
    ]
    with np.load(table) as trained:
        arrays = {name: trained[name][kept] for name in _KINDS}
        write(folder, arrays, [vocabulary[row] for row in kept], [_SERVER, *trained["fields"].tolist()[1:]])
    print(len(kept), "rows of", len(vocabulary), "bytes", sum(path.stat().st_size for path in folder.iterdir()))


def write(folder: Path, arrays: Mapping[str, np.ndarray], vocabulary: Sequence[str], weights: Sequence[float]) -> None:
    """The card names the weights by a digest, so that nobody has to compute one to know vectors of other weights."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, kind in _KINDS.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(arrays[name], dtype=kind))
    (folder / "vocabulary.txt").write_text("\n".join(vocabulary), encoding="utf-8", newline="\n")
    card = {"digest": digest_of(folder, weights), "weights": list(weights)}
    (folder / "table.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


def digest_of(folder: Path, weights: Sequence[float]) -> str:
    """Of everything that a vector depends on."""
    found = sha256(json.dumps(list(weights)).encode())
    for name in (*(f"{name}.npy" for name in _KINDS), "vocabulary.txt"):
        found.update((folder / name).read_bytes())
    return found.hexdigest()[:_DIGITS]


def _seen(pack: Path, rows: int, fold: int | None) -> np.ndarray:
    arrays = {name: dict(np.load(pack / f"{name}.npz")) for name in ("tools", "pairs", "meanings")}
    seen = np.zeros(rows, dtype=np.int64)
    for learnt in (arrays if fold is None else without_fold(arrays, fold)).values():
        for key, value in learnt.items():
            if key.endswith("_table"):
                seen += np.bincount(value, minlength=rows)
    return seen


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:4]), *sys.argv[4:])
