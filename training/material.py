"""What is learnt from, as tensors?

Pairs, tools and look-alikes. Knows no model.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from ragged import Ragged, Tagged

__all__ = ["Material", "barred", "material_of"]

_TWIN = 0.95
"""Nearness from which two tools are one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    queries: Ragged
    tools: Tagged
    tool: torch.Tensor
    """Of each pair, its tool."""
    hidden: torch.Tensor
    """Of each pair, the field that its tool is shown without, or -1."""
    written: torch.Tensor
    """The places of the pairs whose query was written for the tool."""
    negatives: torch.Tensor
    """Of each tool, its look-alikes; -1 where there are no more."""

    def draw(self, number: int, share: float, generator: torch.Generator) -> torch.Tensor:
        """Pairs by chance, a share of them of those that were written: they are few, and most like what is asked."""
        drawn = torch.randint(len(self.tool), (number,), generator=generator, device=generator.device)
        if not len(self.written):
            return drawn
        written = torch.randint(len(self.written), (number,), generator=generator, device=generator.device)
        chance = torch.rand(number, generator=generator, device=generator.device)
        return torch.where(chance < share, self.written[written], drawn)

    def look_alike(self, pairs: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """One a pair; the first tool of all where there is none."""
        candidates = self.negatives[self.tool[pairs]]
        chance = torch.rand(candidates.shape, generator=generator, device=candidates.device)
        return candidates.gather(1, (chance * (candidates >= 0)).argmax(1, keepdim=True))[:, 0].clamp(min=0)


def barred(asked: torch.Tensor, vectors: torch.Tensor, shown: torch.Tensor, tools: torch.Tensor) -> torch.Tensor:
    """Which tools must not count against a query: its own, its twins, and those nearer to it in the guide's eyes."""
    near = asked @ vectors[shown].T
    own = (asked * vectors[tools]).sum(1, keepdim=True)
    return (near > own) | (vectors[tools] @ vectors[shown].T > _TWIN) | (tools[:, None] == shown)


def material_of(
    queries: Ragged, tools: Tagged, arrays: Mapping[str, Mapping[str, np.ndarray]], device: torch.device
) -> Material:
    pairs = arrays["pairs"]
    return Material(
        queries=queries,
        tools=tools,
        tool=torch.from_numpy(pairs["tool"].astype(np.int64)).to(device),
        hidden=torch.from_numpy(pairs["hidden"].astype(np.int64)).to(device),
        written=torch.from_numpy(np.flatnonzero(pairs["written"])).to(device),
        negatives=torch.from_numpy(arrays["tools"]["negatives"].astype(np.int64)).to(device),
    )
