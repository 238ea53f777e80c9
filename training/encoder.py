"""What does the encoder make of a text?

all-MiniLM-L6-v2 as a function from pieces to vectors: mean over the pieces, of length one. Loads it from a pack.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from ragged import Ragged, Tagged
from torch.nn.functional import normalize
from transformers import BertConfig, BertModel

__all__ = ["FIELDS", "Batch", "embed_lists", "embed_tools", "encode", "load"]

FIELDS = (("server", 16), ("name", 24), ("head", 64), ("rest", 96), ("parameters", 32))
"""What the encoder reads of a tool, in this order, and how many pieces of it."""
_BEGIN, _END = 101, 102
_LONG_TOOL = 126
_LONG_QUERY = 126
_AT_ONCE = 4_096

Batch = tuple[torch.Tensor, torch.Tensor]


def load(pack: Path, device: torch.device) -> BertModel:
    config = BertConfig(**json.loads((pack / "config.json").read_text(encoding="utf-8")))
    model = BertModel(config, add_pooling_layer=False)
    with np.load(pack / "encoder.npz") as planes:
        weights = {
            name: torch.from_numpy(np.ascontiguousarray(np.moveaxis(planes[name], 0, -1)).view(np.float16)[..., 0])
            for name in planes.files
        }
    missing, _ = model.load_state_dict({name: value.float() for name, value in weights.items()}, strict=False)
    if wanting := [name for name in missing if "position_ids" not in name]:
        raise ValueError(f"the pack has no weights for `{wanting}`")
    return model.to(device)


def encode(model: BertModel, members: torch.Tensor, held: torch.Tensor) -> torch.Tensor:
    """Vectors of length one."""
    ones = torch.ones_like(members[:, :1])
    lengths = held.sum(1, keepdim=True)
    inputs = torch.cat([_BEGIN * ones, members * held, 0 * ones], dim=1)
    inputs.scatter_(1, lengths + 1, _END)
    mask = torch.arange(inputs.shape[1], device=inputs.device) < lengths + 2
    with torch.autocast(inputs.device.type, dtype=torch.bfloat16, enabled=inputs.is_cuda):
        states = model(input_ids=inputs, attention_mask=mask.long()).last_hidden_state
    states = states.float() * mask[:, :, None]
    return normalize(states.sum(1) / mask.sum(1, keepdim=True), dim=1)


@torch.no_grad()
def embed_lists(model: BertModel, lists: Ragged) -> torch.Tensor:
    return _embed(model, lists, lambda places: lists.batch(places, _LONG_QUERY))


@torch.no_grad()
def embed_tools(model: BertModel, tools: Tagged) -> torch.Tensor:
    def batch(places: torch.Tensor) -> Batch:
        members, _, held = tools.batch(places, torch.full_like(places, -1), _LONG_TOOL)
        return members, held

    return _embed(model, tools.lists, batch)


def _embed(model: BertModel, lists: Ragged, batch: Callable[[torch.Tensor], Batch]) -> torch.Tensor:
    """In the order of length, so that little is padded, and put back."""
    model.eval()
    order = torch.argsort(lists.lengths)
    made = torch.cat([encode(model, *batch(places)) for places in order.split(_AT_ONCE)])
    return made[torch.argsort(order)]
