"""Where are the weights of Ullage's encoder?

Holds files and reads none; what is done with them, `ullage.search` knows.
"""

from pathlib import Path

__all__ = ["files"]


def files() -> Path:
    """The folder of `encoder.onnx`, `vocabulary.txt` and `digest.txt`."""
    return Path(__file__).parent / "weights"
