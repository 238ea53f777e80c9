"""Count the tokens of files for one or several models, with the method of each count and its price.

Models that are retired, or will be, are named below the table with their replacement.
"""

import argparse
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ullage import app
from ullage.errors import InvalidArguments, UnreadableFile
from ullage.models import CURRENT_MODEL, Match, Price, price_of
from ullage.tokens import Count, count_to_json, total
from ullage.tool import Json

from .input_files import STDIN, Found, find_files, is_folder, is_watched_input, read_standard_input, read_text, size_of
from .models import price_json, retirement_note
from .output import Progress, bold, columns, complain, dim, emit, emit_json, plain, width_of

__all__ = ["arguments", "run"]


_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the result: a file, the sum of a folder or the sum of all, with a count for each model."""

    path: str
    depth: int
    counts: tuple[Count, ...]
    kind: str
    """`file`, `folder` or `total`."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="files or folders, without hidden entries and links; - or no FILE: standard input",
    )
    parser.add_argument(
        "--model",
        "-m",
        action="append",
        metavar="MODEL",
        help=f"count for this model; repeat to compare models (default: {CURRENT_MODEL})",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    names: list[str] = arguments.model or [CURRENT_MODEL]
    matches = [app.meter().match(name) for name in names]
    words = arguments.files
    if not words and is_watched_input():
        raise InvalidArguments(
            "there is nothing to count", suggestion="name a file or a folder, or pipe a text in: ullage count README.md"
        )
    if "" in words:
        raise InvalidArguments("an empty name is no file", suggestion="name a file or a folder; . is this folder")
    lines, skipped, refused = _measure(words or [STDIN], names)
    # A generic rule used in place of a model has no price.
    now = datetime.now(UTC)
    prices = [None if match.card.provider == "none" else price_of(match, when=now) for match in matches]
    if arguments.json:
        as_json: dict[str, Json] = {
            "models": [
                {
                    "model": name,
                    "resolved": match.card.id,
                    "warning": match.warning,
                    "window": match.window,
                    "retired": None if match.card.retired is None else str(match.card.retired),
                    "replaced_by": match.card.replaced_by,
                    "price": price_json(price),
                }
                for name, match, price in zip(names, matches, prices, strict=True)
            ],
            "lines": [
                {
                    "path": line.path,
                    "kind": line.kind,
                    "counts": [_count_json(*trio) for trio in zip(line.counts, matches, prices, strict=True)],
                }
                for line in lines
            ],
            "skipped": [*refused, *skipped],
        }
        emit_json(as_json)
    else:
        _print_lines(lines, skipped, matches, prices)
    for error in refused.values():
        complain(error, as_json=arguments.json)
    return 2 if refused else 0


def _measure(words: Sequence[str], models: Sequence[str]) -> tuple[list[Line], list[str], Mapping[str, UnreadableFile]]:
    """Count the words. Return the lines, the files left out below folders, and errors for words that cannot be counted;
    the others of several words are counted all the same (`ullage count *`)."""
    skipped: list[str] = []
    found, refused = _find_folders(words, skipped)
    size = sum(file.size for files in found.values() for file in files)
    # `size` is the bytes of the files below folders; `words` may name further files.
    meter = app.meter_for(len(models) * (size + sum(size_of(Path(word)) for word in words)))

    def count(text: str) -> tuple[Count, ...]:
        return tuple(meter.count(text, model) for model in models)

    lines: list[Line] = []
    with Progress(size, "counting") as progress:
        for word in words:
            if word in found:
                counted = list(_count_files(progress.through(found[word]), count, skipped))
                lines += _build_tree(Path(word), counted, len(models))
            elif word not in refused:
                try:
                    text = read_standard_input() if word == STDIN else read_text(Path(word))
                except UnreadableFile as error:
                    refused[word] = error
                else:
                    lines.append(Line(word, 0, count(text), "file"))
    if len(words) == 1 and refused:
        raise refused[words[0]]
    if len(words) > 1:
        lines.append(
            Line("total", 0, _sum_counts([line.counts for line in lines if line.depth == 0], len(models)), "total")
        )
    return lines, skipped, refused


def _find_folders(words: Sequence[str], skipped: list[str]) -> tuple[dict[str, list[Found]], dict[str, UnreadableFile]]:
    """Return the files below those words that are folders, and errors for folders that cannot be opened."""
    found: dict[str, list[Found]] = {}
    refused: dict[str, UnreadableFile] = {}
    for word in words:
        if is_folder(Path(word)):
            try:
                found[word] = list(find_files(Path(word), skipped))
            except UnreadableFile as error:
                refused[word] = error
    return found, refused


def _count_files(
    files: Iterable[Found], count: Callable[[str], tuple[Count, ...]], skipped: list[str]
) -> Iterator[tuple[Path, tuple[Count, ...]]]:
    """Count each file; one that cannot be read as text is added to `skipped`."""
    for file in files:
        try:
            text = read_text(file.path)
        except UnreadableFile:
            skipped.append(str(file.path))
            continue
        yield file.path, count(text)


def _build_tree(folder: Path, counted: Sequence[tuple[Path, tuple[Count, ...]]], models: int) -> list[Line]:
    """Return the line of a folder with its sum, then its content, folders before files at every level."""
    depth_of = len(folder.parts)
    sums: dict[Path, list[tuple[Count, ...]]] = {folder: []}
    for path, counts in counted:
        for parent in reversed(path.parents[: len(path.parts) - depth_of]):
            sums.setdefault(parent, []).append(counts)
    folders = {
        path: Line(f"{path}/", len(path.parts) - depth_of, _sum_counts(each, models), "folder")
        for path, each in sums.items()
    }
    lines = [folders.pop(folder)]
    for path, counts in counted:
        lines += [folders.pop(parent) for parent in reversed(path.parents) if parent in folders]
        lines.append(Line(str(path), len(path.parts) - depth_of, counts, "file"))
    return lines


def _sum_counts(rows: Sequence[tuple[Count, ...]], models: int) -> tuple[Count, ...]:
    return tuple(total(row[index] for row in rows) for index in range(models))


def _count_json(count: Count, match: Match, price: Price | None) -> dict[str, Json]:
    share = None if not match.window else round(100 * count.tokens / match.window, 2)
    cost = None if price is None or price.input is None else f"{count.tokens * price.input:f}"
    figures: dict[str, Json] = {"window_percent": share, "input_cost": cost}
    return {"token_count": count.tokens, "model": match.asked, **count_to_json(count), **figures}


def _print_lines(
    lines: Sequence[Line], skipped: Sequence[str], matches: Sequence[Match], prices: Sequence[Price | None]
) -> None:
    whole = _table(lines, matches, range(len(matches)))
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    fits = room is None or max(map(width_of, whole)) <= room
    for titles, *body in [whole] if fits else [_table(lines, matches, [place]) for place in range(len(matches))]:
        emit(dim(titles))
        for line, text in zip(lines, body, strict=True):
            emit(text if line.kind == "file" else bold(text))
    for match in matches:
        if match.warning:
            emit(dim(match.warning))
    whole_counts = _sum_counts(
        [line.counts for line in lines if line.depth == 0 and line.kind != "total"], len(matches)
    )
    for match, price, count in zip(matches, prices, whole_counts, strict=True):
        if note := retirement_note(match.card):
            emit(f"{match.asked} {note}")
        if price is not None and price.input is not None:
            cost, rate = count.tokens * price.input, price.input * _MILLION
            each = f"{rate.normalize():f} {price.currency} per million tokens"
            emit(dim(f"{match.asked}: {cost.normalize():.2g} {price.currency} as input, at {each}"))
    if skipped:
        named = ", ".join(map(plain, skipped[:3])) + (f" and {len(skipped) - 3:,} more" if len(skipped) > 3 else "")
        emit(dim(f"not counted, because it cannot be opened or is not text: {named}"))


def _table(lines: Sequence[Line], matches: Sequence[Match], places: Sequence[int]) -> list[str]:
    """Return a title and a line for each of `lines`, with the models at these places side by side."""
    chosen = [matches[place] for place in places]
    header = [
        "",
        *(cell for match in chosen for cell in (match.asked, "", f"of {match.window:,}" if match.window else "")),
    ]
    rows = [
        [_format_label(line), *(cell for place in places for cell in _format_cells(line.counts[place], matches[place]))]
        for line in lines
    ]
    return columns([header, *rows], right=frozenset(index for index in range(1, len(header)) if index % 3 != 2))


def _format_label(line: Line) -> str:
    if line.kind == "total" or line.depth == 0:
        return plain(line.path)
    name = Path(line.path).name + ("/" if line.kind == "folder" else "")
    return "  " * line.depth + plain(name)


def _format_cells(count: Count, match: Match) -> tuple[str, str, str]:
    if count.band is None:
        sureness = count.method.value
    else:
        below, above = count.tokens - count.low, count.high - count.tokens
        band = f"±{max(below, above):,}" if abs(above - below) <= 1 else f"{count.low:,}–{count.high:,}"
        sureness = f"{count.method.value} {band}"
    share = ""
    if match.window:
        part = count.tokens / match.window
        share = "<0.1%" if 0 < part < 0.0005 else f"{part:,.1%}"
    return f"{count.tokens:,}", sureness, share
