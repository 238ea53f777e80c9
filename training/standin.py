"""Stand-in tables of the folds, made on a CPU: what `bench/search_unseen.py` measures with where there is no GPU.

Differs from `train.py PACK OUT folds` in three ways: the teacher is the encoder as published, not tuned; it reads the
beginnings of texts only; and a step compares fewer queries with a sample of the tools, for fewer steps. What is left
out of a fold is the same. Stand-in tables know less than those of `train.py`, so figures are comparable only among
themselves: they show what a change of the ranking does. Their cards say that they are stand-ins.
`python training/standin.py PACK OUT FOLDS`, or all that it needs as well with `make bench-folds`. The teacher's vectors
and the tables are kept in OUT and not made again; what `bench/search_unseen.py` reads is written to FOLDS.
"""

import json
import math
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import encoder
import numpy as np
import torch
from folds import FOLDS, chosen, without_fold
from ragged import Ragged, Tagged, ragged, tagged
from ship import ship
from torch.nn.functional import normalize
from train import save_table
from transformers import BertModel

import table as tables
from table import Table, first_rows, forgetful, unlike

_DEVICE = torch.device("cpu")
_MADE_PAIRS = 5_000
"""Of the pairs that were made of tools' own texts; of those whose query was written, all are used."""
_LONG_ROW, _LONG_QUERY, _LONG_TOOL = 8, 24, 48
"""Pieces that the teacher reads."""
_OF_TOOL, _OF_QUERY = 160, 64
"""Pieces that the table reads."""
_STEPS, _BATCH, _TOOLS, _RATE, _WARM = 400, 512, 2_500, 5e-3, 30
_SHARPNESS = 20.0
_AT_ONCE = 12_000
"""Pieces that the teacher reads at a time."""
_SEED = 7


def taught(pack: Path, out: Path) -> dict[str, dict[str, np.ndarray]]:
    """The arrays of the pack with the teacher's vectors beside them, as `vectors`."""
    arrays = {name: dict(np.load(pack / f"{name}.npz")) for name in ("tools", "pairs", "rows")}
    arrays["pairs"] = chosen(arrays["pairs"], _used(arrays["pairs"]["written"]))
    kept = out / "teacher.npz"
    if not kept.exists():
        tools, queries = (
            tagged(arrays["tools"], encoder.FIELDS, "encoder", _DEVICE),
            _lists(arrays, "pairs", "query_encoder"),
        )
        rows, model = _lists(arrays, "rows", "row"), encoder.load(pack, _DEVICE).eval()
        np.savez(
            kept,
            rows=_embed(model, rows, lambda places: rows.batch(places, _LONG_ROW), _LONG_ROW),
            pairs=_embed(model, queries, lambda places: queries.batch(places, _LONG_QUERY), _LONG_QUERY),
            tools=_embed(model, tools.lists, lambda places: _of_tools(tools, places), _LONG_TOOL),
        )
    with np.load(kept) as vectors:
        return {name: held | {"vectors": vectors[name]} for name, held in arrays.items()}


def learn(arrays: Mapping[str, Mapping[str, np.ndarray]], rows: torch.Tensor) -> Table:
    """Teaches a table the nearness that the teacher sees."""
    queries, tools = _lists(arrays, "pairs", "query_table"), tagged(arrays["tools"], tables.FIELDS, "table", _DEVICE)
    of_queries, of_tools = (torch.from_numpy(arrays[name]["vectors"]) for name in ("pairs", "tools"))
    needed = torch.from_numpy(arrays["pairs"]["tool"].astype(np.int64))
    table, generator = Table(first_rows(rows, tools.lists.flat)), torch.Generator().manual_seed(_SEED)
    optimizer, began = torch.optim.Adam(table.parameters(), lr=_RATE), time.process_time()
    for step in range(_STEPS):
        for group in optimizer.param_groups:
            group["lr"] = _RATE * min(1.0, (step + 1) / _WARM) * 0.5 * (1 + math.cos(math.pi * step / _STEPS))
        pairs = torch.randint(len(needed), (_BATCH,), generator=generator)
        some = torch.randint(len(of_tools), (_TOOLS,), generator=generator)
        shown = torch.cat([needed[pairs], some]).unique()
        near = table.of_lists(*forgetful(*queries.batch(pairs, _OF_QUERY), generator)) @ _vectors(table, tools, shown).T
        loss = unlike(table.scale.exp() * near, _SHARPNESS * of_queries[pairs] @ of_tools[shown].T)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"  step {step} loss {loss.item():.3f} {time.process_time() - began:.0f} s of CPU", flush=True)
    return table.eval()


def _used(written: np.ndarray) -> np.ndarray:
    used = written.copy()
    used[np.random.default_rng(_SEED).choice(np.flatnonzero(~written), _MADE_PAIRS, replace=False)] = True
    return used


def _lists(arrays: Mapping[str, Mapping[str, np.ndarray]], name: str, field: str) -> Ragged:
    return ragged(arrays[name], field, _DEVICE)


def _of_tools(tools: Tagged, places: torch.Tensor) -> encoder.Batch:
    members, _, held = tools.batch(places, torch.full_like(places, -1), _LONG_TOOL)
    return members, held


@torch.no_grad()
def _embed(model: BertModel, lists: Ragged, batch: Callable[[torch.Tensor], encoder.Batch], longest: int) -> np.ndarray:
    """In the order of length, so that little is padded, and put back."""
    order = torch.argsort(lists.lengths)
    made = torch.cat([encoder.encode(model, *batch(places)) for places in order.split(_AT_ONCE // longest)])
    return made[torch.argsort(order)].numpy()


def _vectors(table: Table, tools: Tagged, places: torch.Tensor) -> torch.Tensor:
    """Of the tools at these places; `Table.of_tools` makes those of all."""
    members, tags, held = tools.batch(places, torch.full_like(places, -1), _OF_TOOL)
    tool, field = torch.nonzero(held)[:, 0], tags[held]
    cell = field * len(places) + tool
    counts = torch.bincount(cell, minlength=len(tables.FIELDS) * len(places))
    shares = table.fields.exp()[field] / counts[cell]
    made = torch.zeros(len(places), table.rows.shape[1])
    return normalize(made.index_add(0, tool, table.rows[members[held]] * shares[:, None]), dim=1)


def main(pack: Path, out: Path, folder: Path) -> None:
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    arrays = taught(pack, out)
    rows = torch.from_numpy(arrays["rows"]["vectors"])
    for fold in range(FOLDS):
        path = out / f"fold_{fold}.npz"
        if not path.exists():
            print("fold", fold, flush=True)
            save_table(learn(without_fold(arrays, fold), rows), path)
        ship(pack, path, folder / f"fold_{fold}", fold)
        card = folder / f"fold_{fold}" / "table.json"
        card.write_text(json.dumps(json.loads(card.read_text(encoding="utf-8")) | {"stand_in": True}, indent=2) + "\n")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:4]))
