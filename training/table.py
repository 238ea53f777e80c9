"""How does a table of rows learn what the encoder knows?

A query's vector is the sum of its rows, each by how much it tells in queries; a tool's is the sum over its fields of
the mean of their rows, each field with a weight of its own. Rows begin as the encoder's vectors of the single words.
The table then learns to see the nearness that the encoder sees: between queries and all tools, and between words and
their meanings, which keeps rows in place that tools hardly use. Which tool a query was made of, it is not told: to
learn that as well, as the encoder does, made it worse.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from material import Material
from ragged import Ragged, Tagged
from torch import nn
from torch.nn.functional import embedding, kl_div, log_softmax, normalize, softmax
from tune import Learning

__all__ = [
    "FIELDS",
    "Averages",
    "Recipe",
    "Table",
    "Taught",
    "averages",
    "first_rows",
    "forgetful",
    "learn",
    "quantised",
    "unlike",
]

FIELDS = (("server", 16), ("name", 24), ("head", 64), ("rest", 128), ("parameters", 48))
"""What a tool's vector is made of, and how many pieces of it."""
WIDTH = 256
_FIRST_WEIGHTS = (1.0, 1.5, 3.0, 1.2, 0.3)
_LONG_QUERY = 96
_FORGOTTEN = 0.1
"""Share of a query's rows that are left out at each sight, so that no single row is relied on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taught:
    """The teacher's vectors."""

    queries: torch.Tensor
    tools: torch.Tensor
    words: torch.Tensor
    meanings: torch.Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    learning: Learning
    meanings: float = 0.5
    """What words and meanings count, beside queries and tools."""
    sharpness: float = 20.0
    """How much the teacher's differences in nearness count."""


@dataclass(frozen=True, slots=True)
class Averages:
    """A matrix that makes of the table's rows the mean of each field of each tool, and its transpose."""

    matrix: torch.Tensor
    transposed: torch.Tensor


def averages(tools: Tagged, rows: int) -> Averages:
    number, device = len(tools.lists), tools.lists.flat.device
    tool = torch.repeat_interleave(torch.arange(number, device=device), tools.lists.lengths)
    place = tools.tags.flat * number + tool
    counts = torch.bincount(place, minlength=len(FIELDS) * number)
    cells = torch.sparse_coo_tensor(
        torch.stack([place, tools.lists.flat]), 1 / counts[place].float(), size=(len(FIELDS) * number, rows)
    ).coalesce()
    return Averages(cells.to_sparse_csr(), cells.T.coalesce().to_sparse_csr())


class _Averaged(torch.autograd.Function):
    """A product with a sparse matrix whose transpose is at hand. Looking rows up one by one is many times slower."""

    @staticmethod
    def forward(context: Any, rows: torch.Tensor, matrix: torch.Tensor, transposed: torch.Tensor) -> torch.Tensor:  # noqa: ANN401
        context.save_for_backward(transposed)
        return torch.sparse.mm(matrix, rows)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:  # noqa: ANN401
        (transposed,) = context.saved_tensors
        return torch.sparse.mm(transposed, gradient.contiguous()), None, None


class Table(nn.Module):
    def __init__(self, rows: torch.Tensor) -> None:
        super().__init__()
        self.rows = nn.Parameter(rows.clone())
        self.telling = nn.Parameter(torch.zeros(len(rows), device=rows.device))
        """How much a row tells in a query, as a logarithm."""
        self.fields = nn.Parameter(torch.tensor(_FIRST_WEIGHTS, device=rows.device).log())
        self.scale = nn.Parameter(torch.tensor(20.0, device=rows.device).log())

    def of_lists(self, members: torch.Tensor, held: torch.Tensor) -> torch.Tensor:
        flat = members[held]
        owner = torch.nonzero(held)[:, 0]
        looked_up = embedding(flat, self.rows) * embedding(flat, self.telling[:, None]).exp()
        made = torch.zeros(len(members), self.rows.shape[1], device=flat.device).index_add(0, owner, looked_up)
        return normalize(made, dim=1)

    def means(self, tools: Averages) -> torch.Tensor:
        """Field by field, tool by tool."""
        made: torch.Tensor = _Averaged.apply(self.rows, tools.matrix, tools.transposed)  # pyright: ignore[reportAssignmentType]
        return made.view(len(FIELDS), -1, self.rows.shape[1])

    def of_tools(self, means: torch.Tensor) -> torch.Tensor:
        return normalize((self.fields.exp()[:, None, None] * means).sum(0), dim=1)

    @torch.no_grad()
    def embed_lists(self, lists: Ragged) -> torch.Tensor:
        return self.of_lists(*lists.batch(torch.arange(len(lists), device=self.rows.device), _LONG_QUERY))

    @torch.no_grad()
    def embed_tools(self, tools: Tagged) -> torch.Tensor:
        return self.of_tools(self.means(averages(tools, len(self.rows))))


def first_rows(vectors: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """The encoder's vectors along their main directions, rows that are seen everywhere made small."""
    centred = vectors - vectors.mean(0)
    _, _, directions = torch.linalg.svd(centred, full_matrices=False)
    rows = centred @ directions[:WIDTH].T
    often = torch.bincount(seen, minlength=len(rows)).float() / len(seen)
    return normalize(rows, dim=1) * (1e-3 / (1e-3 + often))[:, None]


def learn(table: Table, material: Material, taught: Taught, words: Mapping[str, Ragged], recipe: Recipe) -> Table:
    generator = torch.Generator(table.rows.device).manual_seed(7)
    optimizer = torch.optim.Adam(table.parameters(), lr=recipe.learning.rate)
    tools, steps = averages(material.tools, len(table.rows)), recipe.learning.steps
    started = time.monotonic()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = (
                recipe.learning.rate * min(1.0, (step + 1) / 50) * 0.5 * (1 + math.cos(math.pi * step / steps))
            )
        loss = _of_tools(table, tools, material, taught, (recipe, generator))
        loss = loss + recipe.meanings * _of_words(table, words, taught, recipe, generator)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step in {0, 50} or step % 500 == 0:
            print(f"  step {step} loss {loss.item():.3f} {time.monotonic() - started:.1f} s", flush=True)
    return table.eval()


def _of_tools(
    table: Table, tools: Averages, material: Material, taught: Taught, how: tuple[Recipe, torch.Generator]
) -> torch.Tensor:
    recipe, generator = how
    pairs = material.draw(recipe.learning.batch, recipe.learning.written, generator)
    asked = table.of_lists(*forgetful(*material.queries.batch(pairs, _LONG_QUERY), generator))
    near = asked @ table.of_tools(table.means(tools)).T
    return unlike(table.scale.exp() * near, recipe.sharpness * taught.queries[pairs] @ taught.tools.T)


def _of_words(
    table: Table, words: Mapping[str, Ragged], taught: Taught, recipe: Recipe, generator: torch.Generator
) -> torch.Tensor:
    said, meant = words["word_table"], words["meaning_table"]
    places = _drawn(len(said), recipe, generator)
    near = table.of_lists(*said.batch(places, _LONG_QUERY)) @ table.of_lists(*meant.batch(places, _LONG_QUERY)).T
    return unlike(table.scale.exp() * near, recipe.sharpness * taught.words[places] @ taught.meanings[places].T)


def _drawn(among: int, recipe: Recipe, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(among, (recipe.learning.batch,), generator=generator, device=generator.device)


def unlike(logits: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    return kl_div(log_softmax(logits, dim=1), softmax(teacher, dim=1), reduction="batchmean")


def forgetful(
    members: torch.Tensor, held: torch.Tensor, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    chance = torch.rand(held.shape, generator=generator, device=held.device)
    return members, held & ((chance > _FORGOTTEN) | (held.sum(1, keepdim=True) < 3))


@torch.no_grad()
def quantised(table: Table) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows in whole numbers from -127 to 127, and what one step of each row is."""
    steps = table.rows.abs().amax(1, keepdim=True).clamp(min=1e-9) / 127
    return (table.rows / steps).round().to(torch.int8), steps[:, 0]
