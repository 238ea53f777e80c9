"""Which vector has a text, by the encoder?

Runs the exported file; needs onnxruntime and tokenizers.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from onnxruntime import InferenceSession
from tokenizers import Tokenizer

__all__ = ["Encoder"]

_LONGEST = 128
_AT_ONCE = 32


class Encoder:
    def __init__(self, model: Path, tokenizer: Path) -> None:
        self._session = InferenceSession(str(model), providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(_LONGEST)
        self._tokenizer.enable_padding()

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """One row a text. In the order of length, so that little is padded, and put back."""
        order = np.argsort([len(text) for text in texts], kind="stable")
        made = [
            self._of([texts[place] for place in part]) for part in np.array_split(order, -(-len(texts) // _AT_ONCE))
        ]
        return np.concatenate(made)[np.argsort(order, kind="stable")]

    def _of(self, texts: Sequence[str]) -> np.ndarray:
        cut = self._tokenizer.encode_batch(list(texts))
        inputs = {
            "input_ids": np.array([each.ids for each in cut], dtype=np.int64),
            "attention_mask": np.array([each.attention_mask for each in cut], dtype=np.int64),
        }
        return np.asarray(self._session.run(None, inputs)[0])
