"""How does the tuned encoder become one file that needs no PyTorch?

Writes it as ONNX with weights in eight bits, its digest and size, and its pieces. `python training/export.py PACK OUT
MODEL FOLDER`, where OUT is what `train.py` wrote. Needs PyTorch, onnx and onnxruntime.
"""

import json
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

import encoder
import numpy as np
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import nn
from torch.nn.functional import normalize
from transformers import BertModel

_DIGITS = 16


class _Vectors(nn.Module):
    """The mean over the pieces, of length one."""

    def __init__(self, model: BertModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        states = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        held = attention_mask[:, :, None].to(states.dtype)
        return normalize((states * held).sum(1) / held.sum(1), dim=1)


def main(pack: Path, out: Path, first: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    model = encoder.load(pack, torch.device("cpu"))
    model.load_state_dict(_weights(out), strict=False)
    model.config._attn_implementation = "eager"  # noqa: SLF001
    ones = torch.ones((2, 8), dtype=torch.int64)
    names = ["input_ids", "attention_mask"]
    with tempfile.TemporaryDirectory() as scratch:
        whole = Path(scratch) / "encoder.onnx"
        torch.onnx.export(
            _Vectors(model.eval()), (ones, ones), str(whole), input_names=names, output_names=["vectors"],
            dynamic_axes={name: {0: "texts", 1: "pieces"} for name in names}, opset_version=17, dynamo=False,
        )  # fmt: skip
        quantize_dynamic(whole, folder / "encoder.onnx", weight_type=QuantType.QInt8, per_channel=True)
    describe(folder, first)


def describe(folder: Path, first: Path) -> None:
    """The files beside it: the pieces, and by what it is named and known to be whole: a digest, the size, and how many
    pieces there are."""
    data = (folder / "encoder.onnx").read_bytes()
    pieces = (first / "vocab.txt").read_text(encoding="utf-8").rstrip("\n")
    (folder / "vocabulary.txt").write_text(pieces, encoding="utf-8", newline="\n")
    known_by = sha256(data).hexdigest()[:_DIGITS], len(data), pieces.count("\n") + 1
    (folder / "digest.txt").write_text(" ".join(map(str, known_by)) + "\n", encoding="utf-8")
    print("encoder.onnx", len(data))


def _weights(out: Path) -> dict[str, torch.Tensor]:
    shapes = json.loads((out / "encoder.json").read_text(encoding="utf-8"))
    flat = np.frombuffer(b"".join(path.read_bytes() for path in sorted(out.glob("encoder_*.bin"))), dtype=np.float16)
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])
    parts = np.split(flat.astype(np.float32), ends[:-1])
    return {name: torch.from_numpy(part.reshape(shapes[name])) for name, part in zip(shapes, parts, strict=True)}


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:5]))
