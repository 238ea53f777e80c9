"""What is trained, in which order?

Tunes the encoder, teaches the table, measures both, and writes the weights. Reads a pack only; needs PyTorch and
transformers. `python training/train.py PACK OUT`; with `small` behind it a few steps, to rehearse with a small pack;
with `folds` behind it one table for each fold of `folds.py`, trained without the tools of that fold, to measure with.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import encoder
import numpy as np
import torch
from folds import FOLDS, without_fold
from material import Material, material_of
from measure import Scores, Set, read_sets, report
from ragged import Ragged, ragged, tagged
from transformers import BertModel
from tune import Learning, mixed, tune

import table as tables
from table import Recipe, Table, Taught, first_rows, learn, quantised

__all__ = ["Ready", "by_encoder", "by_table", "ready", "save_encoder", "save_table", "taught_by"]

TUNING = Learning(steps=500, batch=1024, rate=5e-5, written=0.8)
KEPT = 0.8
"""How far the encoder goes from its first weights to the tuned ones."""
TEACHING = Recipe(learning=Learning(steps=2000, batch=1024, rate=5e-3, written=0.6))
_REHEARSAL = Learning(steps=3, batch=32, rate=1e-4, written=0.5)
_PART = 15 << 20
"""Bytes of one file of weights at the most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A pack on its device."""

    device: torch.device
    generator: torch.Generator
    sets: list[Set]
    stock: BertModel
    for_encoder: Material
    for_table: Material
    words: dict[str, Ragged]
    """Words and meanings, in pieces of the encoder and of the table."""
    rows: Ragged
    """The text that each row of the table begins as."""


def ready(pack: Path, fold: int | None = None) -> Ready:
    """A pack, less the tools of a fold where one is given."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    arrays = {name: dict(np.load(pack / f"{name}.npz")) for name in ("tools", "pairs", "meanings", "rows")}
    if fold is not None:
        arrays = without_fold(arrays, fold)
    materials = [
        material_of(
            ragged(arrays["pairs"], f"query_{kind}", device),
            tagged(arrays["tools"], fields, kind, device),
            arrays,
            device,
        )
        for kind, fields in (("encoder", encoder.FIELDS), ("table", tables.FIELDS))
    ]
    return Ready(
        device=device,
        generator=torch.Generator(device).manual_seed(7),
        sets=read_sets(pack),
        stock=encoder.load(pack, device).eval(),
        for_encoder=materials[0],
        for_table=materials[1],
        words={name: ragged(arrays["meanings"], name, device) for name in arrays["meanings"] if "_ends" not in name},
        rows=ragged(arrays["rows"], "row", device),
    )


def by_encoder(model: BertModel, device: torch.device) -> Callable[[Set], Scores]:
    def scores(each: Set) -> Scores:
        queries = encoder.embed_lists(model, ragged(each.arrays, "query_encoder", device))
        tools = encoder.embed_tools(model, tagged(each.arrays, encoder.FIELDS, "encoder", device))
        return (queries @ tools.T).cpu().numpy()

    return scores


def by_table(table: Table, device: torch.device) -> Callable[[Set], Scores]:
    def scores(each: Set) -> Scores:
        queries = table.embed_lists(ragged(each.arrays, "query_table", device))
        tools = table.embed_tools(tagged(each.arrays, tables.FIELDS, "table", device))
        return (queries @ tools.T).cpu().numpy()

    return scores


def taught_by(model: BertModel, made: Ready) -> tuple[torch.Tensor, Taught]:
    """The first rows of a table, and the teacher's vectors of all that the table learns from."""
    rows = first_rows(encoder.embed_lists(model, made.rows), made.for_table.tools.lists.flat)
    return rows, Taught(
        queries=encoder.embed_lists(model, made.for_encoder.queries),
        tools=encoder.embed_tools(model, made.for_encoder.tools),
        words=encoder.embed_lists(model, made.words["word_encoder"]),
        meanings=encoder.embed_lists(model, made.words["meaning_encoder"]),
    )


def save_encoder(model: BertModel, out: Path) -> None:
    """In half precision, one weight behind the other in the order of their names, in files of bounded size."""
    weights = {name: value for name, value in sorted(model.state_dict().items()) if value.is_floating_point()}
    shapes = {name: list(value.shape) for name, value in weights.items()}
    (out / "encoder.json").write_text(json.dumps(shapes), encoding="utf-8")
    whole = b"".join(value.half().cpu().numpy().tobytes() for value in weights.values())
    for place in range(0, len(whole), _PART):
        (out / f"encoder_{place // _PART}.bin").write_bytes(whole[place : place + _PART])


def save_table(table: Table, path: Path) -> None:
    rows, steps = quantised(table)
    np.savez_compressed(
        path,
        rows=rows.cpu().numpy(),
        steps=steps.cpu().numpy(),
        telling=table.telling.exp().detach().cpu().numpy().astype(np.float16),
        fields=table.fields.exp().detach().cpu().numpy(),
    )


def train(pack: Path, out: Path, *, small: bool = False, fold: int | None = None) -> None:
    """Trains both and writes them; without a fold's tools, the table alone, as `fold_N.npz`."""
    torch.manual_seed(7)
    torch.backends.cuda.matmul.allow_tf32 = True
    made = ready(pack, fold)
    results = {"stock encoder": report("stock encoder", made.sets, by_encoder(made.stock, made.device))}
    tuned = tune(made.stock, made.for_encoder, _REHEARSAL if small else TUNING, made.generator)
    teacher = mixed(made.stock, tuned, KEPT)
    results["encoder"] = report("tuned encoder", made.sets, by_encoder(teacher, made.device))
    rows, taught = taught_by(teacher, made)
    recipe = Recipe(learning=_REHEARSAL) if small else TEACHING
    table = learn(Table(rows), made.for_table, taught, made.words, recipe)
    results["table"] = report("table", made.sets, by_table(table, made.device))
    if fold is None:
        save_encoder(teacher, out)
    name = "table" if fold is None else f"fold_{fold}"
    save_table(table, out / f"{name}.npz")
    (out / f"{name}.json").write_text(json.dumps(results, indent=1), encoding="utf-8")


def main(pack: Path, out: Path, *options: str) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for fold in range(FOLDS) if "folds" in options else (None,):
        train(pack, out, small="small" in options, fold=fold)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
