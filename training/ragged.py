"""How do lists of unequal length become batches?

Arrays of a pack as tensors on one device. Knows nothing of models.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

__all__ = ["Ragged", "Tagged", "ragged", "tagged"]


@dataclass(frozen=True, slots=True)
class Ragged:
    """Lists, one behind the other."""

    flat: torch.Tensor
    starts: torch.Tensor
    lengths: torch.Tensor

    def __len__(self) -> int:
        return len(self.starts)

    def batch(self, places: torch.Tensor, longest: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The lists at these places, cut to the longest, and which cells hold something."""
        lengths = self.lengths[places].clamp(max=longest)
        columns = torch.arange(int(lengths.max().clamp(min=1)), device=self.flat.device)
        held = columns < lengths[:, None]
        return self.flat[(self.starts[places][:, None] + columns).clamp(max=len(self.flat) - 1)] * held, held


@dataclass(frozen=True, slots=True)
class Tagged:
    """Lists whose members say which field they are from."""

    lists: Ragged
    tags: Ragged

    def batch(self, places: torch.Tensor, hidden: torch.Tensor, longest: int) -> tuple[torch.Tensor, ...]:
        """Members, tags and held cells of the lists at these places, each without the field that is hidden from it."""
        members, held = self.lists.batch(places, 2 * longest)
        tags, _ = self.tags.batch(places, 2 * longest)
        held = held & (tags != hidden[:, None])
        order = torch.argsort((~held).int(), dim=1, stable=True)[:, :longest]
        return tuple(each.gather(1, order) for each in (members, tags, held))


def ragged(arrays: Mapping[str, np.ndarray], name: str, device: torch.device) -> Ragged:
    ends = torch.from_numpy(arrays[f"{name}_ends"].astype(np.int64))
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), ends[:-1]])
    flat = torch.from_numpy(arrays[name].astype(np.int64))
    return Ragged(flat.to(device), starts.to(device), (ends - starts).to(device))


def tagged(
    arrays: Mapping[str, np.ndarray], fields: Sequence[tuple[str, int]], kind: str, device: torch.device
) -> Tagged:
    """The fields of tools one behind the other, each cut to its length; a member's tag is its field's place."""
    parts = [
        [part[:longest] for part in np.split(arrays[f"{field}_{kind}"], arrays[f"{field}_{kind}_ends"][:-1])]
        for field, longest in fields
    ]
    tags = [np.repeat(range(len(fields)), [len(part) for part in row]) for row in zip(*parts, strict=True)]
    members = [part for row in zip(*parts, strict=True) for part in row]
    ends = np.cumsum([len(row) for row in tags])
    made = {"list": np.concatenate(members), "list_ends": ends, "tag": np.concatenate(tags), "tag_ends": ends}
    return Tagged(ragged(made, "list", device), ragged(made, "tag", device))
