"""What of the trained table is kept?

Rows that training has hardly seen say nothing and are left out: their words fall apart into smaller pieces. Writes one
file for `lookup.py`. `python training/ship.py PACK TABLE FILE`.
"""

import json
import sys
from pathlib import Path

import numpy as np
from lexicon import LEXICON

_LEAST_SEEN = 2


def main(pack: Path, table: Path, file: Path) -> None:
    vocabulary = [piece for piece, _ in json.loads((pack / "vocabulary.json").read_text(encoding="utf-8"))]
    seen = _seen(pack, len(vocabulary))
    kept = [
        row
        for row, piece in enumerate(vocabulary)
        if seen[row] >= _LEAST_SEEN or len(piece.removeprefix("##")) == 1 or piece in LEXICON
    ]
    with np.load(table) as trained:
        np.savez_compressed(
            file,
            rows=trained["rows"][kept],
            steps=trained["steps"][kept],
            telling=trained["telling"][kept],
            fields=trained["fields"],
            vocabulary=np.frombuffer("\n".join(vocabulary[row] for row in kept).encode(), dtype=np.uint8),
        )
    print(len(kept), "rows of", len(vocabulary), "bytes", file.stat().st_size)


def _seen(pack: Path, rows: int) -> np.ndarray:
    seen = np.zeros(rows, dtype=np.int64)
    for name in ("tools", "pairs", "meanings"):
        with np.load(pack / f"{name}.npz") as arrays:
            for key in arrays.files:
                if key.endswith("_table"):
                    seen += np.bincount(arrays[key], minlength=rows)
    return seen


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:4]))
