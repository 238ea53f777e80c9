"""Model cards, and the look-up of a model by any spelling of its name.

A card holds figures only: no price (see `price`), no look-up (see `table`), no I/O.

The table of cards that ships with the package, and the rules by which a name as people write it finds one. Spelling
is `name`'s matter, prices are `price`'s. Reading `data/cards.json` is the room's only I/O; `docs/models.md` tells how
that file is made.

Pure rules on spelling: which prefixes name a host, which suffixes name a release. Which models exist is not known here
(see `table`).
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Required, TypedDict

from ullage.errors import UnsupportedModel

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "CURRENT_MODEL",
    "DEFAULT_MODEL",
    "DEFAULT_WINDOW",
    "HOSTS",
    "PLAIN_RULES",
    "Match",
    "ModelCard",
    "ModelTable",
    "Source",
    "Window",
    "fold",
    "forms",
    "prefixes",
    "shipped",
    "soften",
    "undated",
]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a figure comes from, and of which day it is."""

    name: str
    date: date


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """One model. A figure nobody has published is None."""

    id: str
    provider: str
    """Who made it, not who hosts it: `meta` for Llama on Groq."""
    family: str
    """Models that share tokenizer and framing, such as `gpt-4o`, `gpt-5`, `claude-4.5`, `gemini-2.5`."""
    aliases: tuple[str, ...] = ()
    """Other names for the same model: dated ids, hosts' spellings, `-latest`."""
    window: int | None = None
    """Tokens of input and output together, or of input where the provider limits them apart."""
    max_output: int | None = None
    tokenizer: str | None = None
    """The vocabulary's name in the meter; None where no public one fits."""
    accepts: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """What the model takes (`temperature`, `tools`, `images`, …); absent where unknown."""
    retired: date | None = None
    """The day it was or will be switched off; None while no such day is announced."""
    replaced_by: str | None = None
    sources: Mapping[str, Source] = field(default_factory=dict[str, Source])
    """Field name to the source of that figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A name as someone wrote it, and the card it stands for."""

    asked: str
    card: ModelCard
    host: str | None
    """Who serves it, when the name says so with a prefix: `groq` in `groq/llama-3.3-70b`."""
    how: str
    """`id`, `alias`, `dated` or `family`: by which rule the card was found."""


HOSTS = {
    "amazon": "bedrock",
    "anthropic": "anthropic",
    "aws": "bedrock",
    "azure": "azure",
    "azure-ai": "azure",
    "azure-openai": "azure",
    "baseten": "baseten",
    "bedrock": "bedrock",
    "bedrock-converse": "bedrock",
    "bedrock-mantle": "bedrock",
    "cerebras": "cerebras",
    "chatgpt": "openai",
    "cloudflare": "cloudflare",
    "cohere": "cohere",
    "cohere-chat": "cohere",
    "dashscope": "dashscope",
    "dashscope-us": "dashscope-us",
    "alibaba": "dashscope",
    "databricks": "databricks",
    "deepinfra": "deepinfra",
    "deepseek": "deepseek",
    "doubleword": "doubleword",
    "fireworks": "fireworks",
    "fireworks-ai": "fireworks",
    "ft": "openai",
    "gateway": "gateway",
    "gemini": "google",
    "github": "github",
    "github-copilot": "github-copilot",
    "google": "google",
    "google-gla": "google",
    "google-vertex": "google-vertex",
    "groq": "groq",
    "heroku": "heroku",
    "huggingface": "huggingface",
    "hyperbolic": "hyperbolic",
    "litellm-proxy": "litellm",
    "llama-cpp": "llamacpp",
    "llamacpp": "llamacpp",
    "lm-studio": "lmstudio",
    "lmstudio": "lmstudio",
    "minimax": "minimax",
    "mistral": "mistral",
    "mistralrs": "mistralrs",
    "models": "google",
    "moonshot": "moonshot",
    "moonshotai": "moonshot",
    "nebius": "nebius",
    "novita": "novita",
    "nvidia": "nvidia",
    "nvidia-nim": "nvidia",
    "ollama": "ollama",
    "ollama-chat": "ollama",
    "openai": "openai",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "opencode": "opencode",
    "openrouter": "openrouter",
    "perplexity": "perplexity",
    "replicate": "replicate",
    "sambanova": "sambanova",
    "snowflake": "snowflake",
    "together": "together",
    "together-ai": "together",
    "togetherai": "together",
    "venice": "venice",
    "vercel": "vercel",
    "vercel-ai-gateway": "vercel",
    "vertex-ai": "google-vertex",
    "vertexai": "google-vertex",
    "watsonx": "watsonx",
    "xai": "xai",
    "zai": "zai",
    "zenmux": "zenmux",
}
"""Prefix, as `fold` writes it, to the host it names. Publishers' names (`meta-llama/…`) are not hosts."""

_TO_DASH = str.maketrans(dict.fromkeys(":@_ ", "-"))
_ALL_TO_DASH = str.maketrans(dict.fromkeys(".:@_ ", "-"))
_SEPARATOR = re.compile(r"[/:]")
_REGION = re.compile(r"(?:us|eu|apac|au|ca|jp|sa|us-gov|global|regional)\.(?=[a-z0-9]+\.)", re.IGNORECASE)
_VENDOR = re.compile(
    r"(?:ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot|moonshotai|nvidia|openai|qwen|writer|zai)"
    r"\.(?=[a-z])",
    re.IGNORECASE,
)
_JOINED = re.compile(r"databricks-|anthropic-(?=claude)|openai-(?=gpt|o\d)", re.IGNORECASE)
_RELEASE = re.compile(
    r"-(?:20\d\d-?[01]\d-?[0-3]\d|[01]\d-20\d\d|[01]\d-[0-3]\d|\d{3,4}"
    r"|latest|preview|exp|experimental|beta|default|v\d+(?:-\d+)*)$"
)
_VARIANT = re.compile(r":(?:free|batch|thinking|extended|online|nitro|floor|exacto|latest|beta)$")


def soften(name: str) -> str:
    """Lower case, one separator, but the dots of versions kept: `Llama3.1:8B` is `llama3.1-8b`."""
    return name.strip().lower().translate(_TO_DASH)


def fold(name: str) -> str:
    """The form in which names are compared: `Claude-3.5_Sonnet` and `claude-3-5-sonnet` are one."""
    return name.strip().lower().translate(_ALL_TO_DASH)


def forms(name: str) -> Iterator[tuple[str | None, str]]:
    """The name, then the name with one prefix after another taken off, each with the outermost host so far.

    A publisher and a slash can be part of a name (`openai/gpt-oss-20b`), a host and a colon cannot.
    """
    host = None
    rest = _VARIANT.sub("", name.strip().removeprefix("~"))
    while True:
        rest = _REGION.sub("", rest, count=1)
        if vendor := _VENDOR.match(rest):
            host = host or "bedrock"
        cut = _next_prefix(rest)
        if cut is None or rest[cut] == "/":
            yield host, rest
        if joined := vendor or _JOINED.match(rest):
            yield host or _host(joined[0][:-1]), rest[joined.end() :]
        if cut is None:
            return
        host = host or _host(rest[:cut])
        rest = rest[cut + 1 :]


def _host(prefix: str) -> str | None:
    return "bedrock" if prefix.startswith("arn:aws:bedrock") else HOSTS.get(fold(prefix))


def _next_prefix(name: str) -> int | None:
    """Where the next prefix ends: at any slash, but at a colon only after a host, since `qwen3:4b` is a whole name."""
    found = _SEPARATOR.search(name)
    if found is None:
        return None
    if found[0] == "/" or fold(name[: found.start()]) in HOSTS:
        return found.start()
    slash = name.find("/")
    return slash if slash >= 0 else None


def undated(folded: str) -> Iterator[str]:
    """A folded name with one mark of a release after another taken off its end: a date, a build, `-latest`."""
    while found := _RELEASE.search(folded):
        folded = folded[: found.start()]
        if not folded:
            return
        yield folded


def prefixes(softened: str) -> Iterator[str]:
    """The longer first, each way to cut a softened name at a separator so that a variant of a family is cut off.

    A bare number after the cut is another version, not a variant (`gpt-5-7` is no kind of `gpt-5`), and a single word
    without a digit is a maker, not a family (`mistral`).
    """
    words = softened.split("-")
    for size in range(len(words) - 1, 0, -1):
        family = "-".join(words[:size])
        if re.fullmatch(r"\d{1,2}(?:\.\d+)*", words[size]) or not re.search(r"[-\d]", family):
            continue
        yield family


DEFAULT_MODEL = "gpt-4"
"""Where the original counted by default: the tool `count-tokens`, and `count` in Python."""
CURRENT_MODEL = "gpt-6.1-sol"
"""Where a person is better served by a model that is sold today: `ullage count`."""
DEFAULT_WINDOW = 128_000
PLAIN_RULES = {"character_count_div_4": 4, "character_count_div_3": 3}
"""Rules that may be named in a model's place: characters a token, by the rule's name; 3 is meant for Portuguese."""
LONGEST_NAME = 256
"""No model is called by more characters; looking for one would take ever longer."""
OFFERED = (DEFAULT_MODEL, "gpt-3.5-turbo", "gpt-4o", "claude")
"""The names that an error always offers, before the nearest."""
_CLAUDE = "claude"
_OTHER_TASK = re.compile(
    r"(?:^|-)(?:tts|speech|voice|audio|sonic|music|asr|stt|transcri\w*|whisper|live\w*|realtime|translat\w*|dub\w*"
    r"|image\w*|imagine|video|canvas|ocr|embed\w*|rerank\w*|moderation|robotics)(?:-|$)"
)
"""Words of a name that say it is no model for text, though it begins with the name of one."""
_DATE = re.compile(r"(?P<month>[01]\d)-(?P<year>20\d\d)|20\d\d-?[01]\d-?[0-3]\d|[01]\d-[0-3]\d|\d{3,4}")
"""A release's date behind the name of its model: `2402`, `03-2024`, `20240229`, `2024-02-29`, `05-20`."""


class _RawCard(TypedDict, total=False):
    id: Required[str]
    provider: Required[str]
    family: Required[str]
    aliases: list[str]
    window: int
    max_output: int
    tokenizer: str
    accepts: str
    """What it takes, by spaces; what it refuses has a dash before it."""
    retired: str
    replaced_by: str
    sources: dict[str, int]


class _RawTable(TypedDict):
    sources: list[tuple[str, str]]
    cards: list[_RawCard]


@dataclass(frozen=True, slots=True)
class Window:
    """How much a model takes at once."""

    tokens: int
    resolved: bool
    """False where nobody knows the model or its window, and the default stands in."""


class ModelTable:
    """Cards by every name they go by. A card is made when it is first asked for."""

    def __init__(self, raw: _RawTable) -> None:
        self._raw = raw["cards"]
        self._sources = [Source(name, date.fromisoformat(day)) for name, day in raw["sources"]]
        self._index = _index(self._raw)
        self._made: dict[int, ModelCard] = {}

    @classmethod
    def read(cls, path: "Path | str") -> "ModelTable":
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - `pathlib` costs 4 ms, which every count would wait for
            return cls(json.load(file))

    def __len__(self) -> int:
        return len(self._raw)

    def cards(self) -> Iterator[ModelCard]:
        """Every card, by provider, family and id."""
        return map(self._card, range(len(self._raw)))

    def find(self, name: str) -> Match:
        """The card for the name; `UnsupportedModel` where there is none."""
        if match := self.get(name):
            return match
        shown = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
        near = self.nearest(name[:LONGEST_NAME], 16)
        hint = f" Nearest: {', '.join(f'`{other}`' for other in near[:3])}." if near else ""
        raise UnsupportedModel(
            f"no model is known as `{shown}`",
            suggestion=f"Use `{DEFAULT_MODEL}`, the default, or an option below; `ullage models` lists all.{hint}",
            options=tuple(dict.fromkeys((*OFFERED, *near))),
        )

    def get(self, name: str) -> Match | None:
        """The card for the name, or None. Each rule in turn is tried on the name with fewer and fewer prefixes."""
        if len(name) > LONGEST_NAME:
            return None
        spelt = list(forms(name))
        for rule in (self._by_name, self._by_release, self._by_family, self._by_maker):
            for host, bare in spelt:
                if (found := rule(bare)) is not None:
                    position, how = found
                    return Match(asked=name, card=self._card(position), host=host, how=how)
        return None

    def nearest(self, name: str, count: int = 3) -> tuple[str, ...]:
        """Ids that have the name among their words (`sonnet`, `gemini`), those that stay before those that go; then
        ids like it, the likest first; none where nothing is."""
        asked = fold(list(forms(name))[-1][1])[:64]
        from difflib import SequenceMatcher

        matcher = SequenceMatcher(b=asked)
        scored: list[tuple[float, str]] = []
        for raw in self._raw:
            folded = fold(raw["id"])
            matcher.set_seq1(folded)
            if len(asked) > 1 and f"-{asked}-" in f"-{folded}-":
                scored.append(((1 if "retired" in raw else 2) + matcher.ratio(), raw["id"]))
            elif matcher.real_quick_ratio() > 0.6 and matcher.quick_ratio() > 0.6:
                scored.append((matcher.ratio(), raw["id"]))
        likely = sorted((pair for pair in scored if pair[0] > 0.6), key=lambda pair: (-pair[0], pair[1]))
        return tuple(identity for _, identity in likely[:count])

    def window(self, name: str, override: int | None = None) -> Window:
        """How many tokens the model holds. A model nobody knows is no error: it gets the default, not resolved."""
        if override is not None:
            return Window(override, resolved=True)
        match = self.get(name)
        if match is None or match.card.window is None:
            return Window(DEFAULT_WINDOW, resolved=False)
        return Window(match.card.window, resolved=True)

    def _by_name(self, bare: str) -> tuple[int, str] | None:
        folded = fold(bare)
        position = self._index.get(folded)
        if position is None:
            return None
        return position, "id" if fold(self._raw[position]["id"]) == folded else "alias"

    def _by_release(self, bare: str) -> tuple[int, str] | None:
        """`gpt-4o-2031-01-01` is a `gpt-4o` of a day we do not know. A date on a bare maker's name says nothing."""
        asked = fold(bare)
        for stem in undated(asked):
            if stem in self._index and ("-" in stem or any(map(str.isdigit, stem))):
                position = self._nearest_release(stem, asked)
                return None if position is None else (position, "dated")
        return None

    def _nearest_release(self, stem: str, asked: str) -> int | None:
        """The card of the newest release that is no newer than the one asked for.

        Without a date it is the card of the stem, and so it is for a date beyond all that are known. None where the
        release is older than all that are known and each of these is a model of its own: `mistral-small` is a name for
        the newest of several models, none of which an older one must be taken for.
        """
        undated_card, wanted = self._index[stem], _date(asked, stem)
        if wanted is None:
            return undated_card
        known = {
            found: position
            for name, position in self._index.items()
            if (found := _date(name, stem)) is not None and len(found) == len(wanted)
        }
        if not known or wanted > max(known):
            return undated_card
        if wanted >= min(known):
            return known[max(date for date in known if date <= wanted)]
        oldest = known[min(known)]
        if undated_card not in known.values():
            return undated_card
        return None if _date(fold(self._raw[oldest]["id"]), stem) else oldest

    def _by_family(self, bare: str) -> tuple[int, str] | None:
        """`gpt-4o-anything` is a kind of `gpt-4o`, unless the rest says that it speaks, listens or draws: those are
        other models. What `_by_release` refused is none of them either."""
        softened = soften(bare)
        if any(stem in self._index for stem in undated(fold(bare))):
            return None
        for family in prefixes(softened):
            if _OTHER_TASK.search(fold(softened[len(family) :])):
                return None
            position = self._index.get(fold(family))
            if position is not None:
                return position, "family"
        return None

    def _by_maker(self, bare: str) -> tuple[int, str] | None:
        """Every `claude-…` is some Claude: one with the same words in another order (`claude-haiku-3-5`), else the
        newest of those whose id begins with the most of its words."""
        words = fold(bare).split("-")
        if words[0] != _CLAUDE:
            return None
        for spelling in (fold(bare), *undated(fold(bare))):
            for name, position in self._index.items():
                if name.startswith(_CLAUDE) and sorted(name.split("-")) == sorted(spelling.split("-")):
                    return position, "alias"
        for size in range(len(words), 1, -1):
            kin = [place for place, raw in enumerate(self._raw) if raw["id"].split("-")[:size] == words[:size]]
            if kin:
                return max(kin, key=lambda place: _version(self._raw[place]["id"])), "family"
        return self._index[_CLAUDE], "family"

    def _card(self, position: int) -> ModelCard:
        if position not in self._made:
            self._made[position] = _card(self._raw[position], self._sources)
        return self._made[position]


def _index(cards: list[_RawCard]) -> dict[str, int]:
    """Folded name to position. A name with a publisher (`meta-llama/…`) is also known without."""
    index: dict[str, int] = {}
    for position, raw in enumerate(cards):
        for name in (raw["id"], *raw.get("aliases", ())):
            index[fold(name)] = position
            if "/" in name:
                index.setdefault(fold(name.rpartition("/")[2]), position)
    return index


def _date(name: str, stem: str) -> str | None:
    """The date behind a model's name, as digits that sort by time among those of one length; None without one."""
    found = _DATE.match(name, len(stem) + 1) if name.startswith(f"{stem}-") else None
    if found is None or name[found.end() : found.end() + 1] not in {"", "-"}:
        return None
    return f"{found['year']}{found['month']}" if found["year"] else found[0].replace("-", "")


def _version(identity: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", identity)]


def _card(raw: _RawCard, sources: list[Source]) -> ModelCard:
    retired = raw.get("retired")
    return ModelCard(
        id=raw["id"],
        provider=raw["provider"],
        family=raw["family"],
        aliases=tuple(raw.get("aliases", ())),
        window=raw.get("window"),
        max_output=raw.get("max_output"),
        tokenizer=raw.get("tokenizer"),
        accepts=_accepts(raw.get("accepts", "")),
        retired=date.fromisoformat(retired) if retired else None,
        replaced_by=raw.get("replaced_by"),
        sources={figure: sources[place] for figure, place in raw.get("sources", {}).items()},
    )


def _accepts(words: str) -> Mapping[str, bool]:
    return {word.removeprefix("-"): not word.startswith("-") for word in words.split()}


@cache
def shipped() -> ModelTable:
    """The table that comes with the package, read once."""
    return ModelTable.read(f"{__file__.removesuffix('model_cards.py')}data/cards.json")
