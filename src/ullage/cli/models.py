"""List the models that Ullage knows. With a name, show that model's card and the source of each figure."""

import argparse
import textwrap
from datetime import UTC, datetime

from ullage import app
from ullage.models import Match, ModelCard, Price, price_of
from ullage.tool import Json

from .output import bold, columns, dim, emit, emit_json, emit_wrapped, table_width, width_of

__all__ = ["arguments", "price_json", "retirement_note", "run"]

_PER = 1_000_000
"""Prices are shown per million tokens, as providers do."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="a model's id, alias or dated id, with or without a host"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    table = app.meter().models
    if arguments.name is None:
        cards = list(table.cards())
        emit_json([_card_json(card) for card in cards]) if arguments.json else _print_table(cards)
        return 0
    match = table.find(arguments.name)
    price = price_of(match, when=datetime.now(UTC))
    if arguments.json:
        emit_json({"asked": match.asked, "host": match.host, **_card_json(match.card), "price": price_json(price)})
    else:
        _print_card(match, price)
    return 0


def _print_table(cards: list[ModelCard]) -> None:
    header = ("model", "provider", "window", "output", "tokenizer", "")
    rows = [
        (
            card.id,
            card.provider,
            _number(card.window),
            _number(card.max_output),
            card.tokenizer or "-",
            retirement_note(card),
        )
        for card in cards
    ]
    titles, *lines = columns([header, *rows], right=frozenset({2, 3}))
    limit = table_width()
    if limit is None or max(map(len, (titles, *lines))) <= limit:
        emit(dim(titles))
        for line in lines:
            emit(line)
        return
    # On a narrow screen the provider is a heading, and a retirement a line of its own.
    titles, *lines = columns([(row[0], *row[2:5]) for row in (header, *rows)], right=frozenset({1, 2}))
    emit(dim(titles))
    for number, (line, card) in enumerate(zip(lines, cards, strict=True)):
        if number == 0 or cards[number - 1].provider != card.provider:
            emit(bold(card.provider))
        emit(line)
        if note := retirement_note(card):
            emit_wrapped(f"    {note}")


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def retirement_note(card: ModelCard) -> str:
    """Return when a model was or will be switched off, and its replacement; empty if no date is announced."""
    if card.retired is None:
        return ""
    verb = "retired" if card.retired <= datetime.now(UTC).date() else "retires"
    instead = f", use {card.replaced_by}" if card.replaced_by else ""
    return f"{verb} {card.retired}{instead}"


def _print_card(match: Match, price: Price | None) -> None:
    card = match.card
    unknown = ", which has no card of its own" if match.warning else ""
    emit(bold(card.id) + (f"  (you wrote `{match.asked}`{unknown})" if match.asked != card.id else ""))
    yes = sorted(name for name, taken in card.accepts.items() if taken)
    no = sorted(name for name, taken in card.accepts.items() if not taken)
    price_text = "unknown"
    if price is not None:
        parts = {
            "in": price.input,
            "out": price.output,
            "cache read": price.cache_read,
            "cache write": price.cache_write,
        }
        said = ", ".join(f"{(each * _PER).normalize():f} {name}" for name, each in parts.items() if each is not None)
        price_text = f"{price.currency} per million tokens: {said}"
    facts = [
        (
            "provider",
            card.provider + (f", served by {match.host}" if match.host not in (None, card.provider) else ""),
            "",
        ),
        ("family", card.family, ""),
        ("window", _tokens(card.window), _source(card, "window")),
        ("output", _tokens(card.max_output), _source(card, "max_output")),
        ("tokenizer", card.tokenizer or "none that is public", _source(card, "tokenizer")),
        ("accepts", ", ".join(yes) or "unknown", _source(card, "accepts") if yes else ""),
        ("refuses", ", ".join(no), ""),
        ("status", retirement_note(card), _source(card, "retired")),
        ("price", price_text, f"{price.source}, {price.date}" if price else ""),
    ]
    shown = [fact for fact in facts if fact[1]]
    for line, (name, value, source) in zip(
        columns([("", name, value, dim(source)) for name, value, source in shown]), shown, strict=True
    ):
        limit = table_width()
        if limit is None or width_of(line) <= limit:
            emit(line)
            continue
        compact = f"  {name.ljust(max(len(one[0]) for one in shown))}  {value}"
        if source and width_of(compact) + 2 + width_of(dim(source)) <= limit:
            emit(f"{compact}  {dim(source)}")
            continue
        emit_wrapped(compact)
        if source:
            emit_wrapped(f"    {dim(source)}")
    if card.aliases:
        names = textwrap.wrap(", ".join(card.aliases), width=64, break_long_words=False, break_on_hyphens=False)
        titles = ["also".ljust(max(len(name) for name, value, _ in facts if value)), *[""] * (len(names) - 1)]
        emit("\n".join(columns([("", *pair) for pair in zip(titles, names, strict=True)])))


def _tokens(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,} tokens"


def _source(card: ModelCard, figure: str) -> str:
    source = card.sources.get(figure)
    return f"{source.name}, {source.date}" if source else ""


def price_json(price: Price | None) -> Json:
    """Return a price in the form of every JSON output: as strings, so that no digit is lost."""
    if price is None:
        return None
    parts = {
        "input": price.input,
        "output": price.output,
        "cache_read": price.cache_read,
        "cache_write": price.cache_write,
    }
    each: dict[str, Json] = {name: None if value is None else f"{value:f}" for name, value in parts.items()}
    return {"currency": price.currency, "per": "token", **each, "source": price.source, "date": str(price.date)}


def _card_json(card: ModelCard) -> dict[str, Json]:
    return {
        "id": card.id,
        "provider": card.provider,
        "family": card.family,
        "aliases": [*card.aliases],
        "window": card.window,
        "max_output": card.max_output,
        "tokenizer": card.tokenizer,
        "accepts": dict(card.accepts),
        "retired": None if card.retired is None else card.retired.isoformat(),
        "replaced_by": card.replaced_by,
        "sources": {name: {"name": source.name, "date": str(source.date)} for name, source in card.sources.items()},
    }
