"""How does the encoder learn what tools are wanted for?

Contrastive training: a query must be nearer to its tool than to the tools of the other queries and to look-alikes. What
the untrained encoder holds for nearer than the tool itself does not count against it, since catalogues are full of
twins. In the end the weights are mixed with those from before: what was known of other texts is kept.
"""

import copy
import math
import time
from dataclasses import dataclass

import torch
from encoder import embed_lists, embed_tools, encode
from material import Material, barred
from torch.nn.functional import cross_entropy
from transformers import BertModel

__all__ = ["Learning", "mixed", "tune"]

_LONG_QUERY, _LONG_TOOL = 64, 96
_SCALE = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    steps: int
    batch: int
    rate: float
    written: float
    """Share of the pairs of a batch whose query was written for the tool."""


def tune(model: BertModel, material: Material, learning: Learning, generator: torch.Generator) -> BertModel:
    """A trained copy."""
    guides = embed_lists(model, material.queries), embed_tools(model, material.tools)
    trained = copy.deepcopy(model).train()
    optimizer = torch.optim.AdamW(trained.parameters(), lr=learning.rate, weight_decay=0.01)
    started = time.monotonic()
    for step in range(learning.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning.rate * _warmth(step, learning.steps)
        pairs = material.draw(learning.batch, learning.written, generator)
        shown = torch.cat([material.tool[pairs], material.look_alike(pairs, generator)])
        loss = _loss(trained, material, (pairs, shown), guides)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0:
            print(f"  step {step} loss {loss.item():.3f} {time.monotonic() - started:.0f} s")
    return trained.eval()


def _loss(
    model: BertModel,
    material: Material,
    drawn: tuple[torch.Tensor, torch.Tensor],
    guides: tuple[torch.Tensor, torch.Tensor],
) -> torch.Tensor:
    pairs, shown = drawn
    asked = encode(model, *material.queries.batch(pairs, _LONG_QUERY))
    hidden = material.hidden[pairs].repeat(2)  # A look-alike shows what the tool shows, or else what is missing tells.
    members, _, held = material.tools.batch(shown, hidden, _LONG_TOOL)
    near = asked @ encode(model, members, held).T
    out = barred(guides[0][pairs], guides[1], shown, material.tool[pairs])
    logits = (_SCALE * near).masked_fill(out.fill_diagonal_(fill_value=False), -1e4)
    return cross_entropy(logits, torch.arange(len(pairs), device=shown.device))


def _warmth(step: int, steps: int) -> float:
    """Up over the first tenth, then down along a cosine."""
    start = max(1, steps // 10)
    return (step + 1) / start if step < start else 0.5 * (1 + math.cos(math.pi * (step - start) / (steps - start)))


def mixed(before: BertModel, after: BertModel, share: float) -> BertModel:
    """Weights between those of before and after."""
    made = copy.deepcopy(before)
    old, new = before.state_dict(), after.state_dict()
    made.load_state_dict({name: torch.lerp(old[name].float(), new[name].float(), share) for name in old})
    return made.eval()
