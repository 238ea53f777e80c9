"""Model cards, and the look-up of a model by any spelling of its name.

A card contains figures only; prices are in `price`. The table of cards ships with the package. Reading
`data/cards.json` is the only I/O here; `docs/models.md` describes how that file is made.

The functions on spelling (`fold`, `forms`, `strip_release_suffixes`, `prefixes`) are pure and independent of the table:
they know which prefixes name a host and which suffixes name a release.
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
    "strip_release_suffixes",
]


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of a figure, and its date."""

    name: str
    date: date


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """One model. A figure that is not published is None."""

    id: str
    provider: str
    """The maker, not the host: `meta` for Llama on Groq."""
    family: str
    """The group of models that share tokenizer and framing, such as `gpt-4o`, `gpt-5`, `claude-4.5`, `gemini-2.5`."""
    aliases: tuple[str, ...] = ()
    """Other names of the same model: dated ids, hosts' spellings, `-latest`."""
    window: int | None = None
    """The context window in tokens: input and output together, or input alone where the provider limits them
    separately."""
    max_output: int | None = None
    tokenizer: str | None = None
    """The vocabulary's name in the meter; None where no public one fits."""
    accepts: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """Which features the model accepts (`temperature`, `tools`, `images`, …); a key is absent where unknown."""
    retired: date | None = None
    """The day on which it was or will be switched off; None while no such day is announced."""
    replaced_by: str | None = None
    sources: Mapping[str, Source] = field(default_factory=dict[str, Source])
    """The source of each figure, by field name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A name as it was written, and the card found for it."""

    asked: str
    card: ModelCard
    host: str | None
    """The host, if a prefix of the name gives one: `groq` in `groq/llama-3.3-70b`."""
    how: str
    """The rule that found the card: `id`, `alias`, `dated`, `family` (a variant without a card of its own) or `version`
    (a version or size without a card, so that the card is that of the nearest one)."""

    @property
    def window(self) -> int | None:
        """The window that the name states (`claude-opus-4-6[1m]`, Bedrock's `…-v1:0:28k`), or else the card's."""
        stated = _STATED_WINDOW.search(self.asked)
        if stated is None:
            return self.card.window
        return int(stated["size"]) * (1_000_000 if stated["unit"] in "mM" else 1_000)

    @property
    def is_guess(self) -> bool:
        """Whether the card is that of another version or size. Its tokenizer and window may differ."""
        return self.how == "version"

    @property
    def warning(self) -> str | None:
        """A sentence about the card that is used, if it has no card of its own."""
        if self.is_guess:
            return f"`{self.asked}` is a version that Ullage does not know: estimated as `{self.card.id}`"
        if self.how == "dated" and _RELEASED.search(self.asked):
            return f"`{self.asked}` is a release without a card of its own: counted as `{self.card.id}`"
        return f"`{self.asked}` has no card of its own: counted as `{self.card.id}`" if self.how == "family" else None


_STATED_WINDOW = re.compile(r"(?:\[|(?<=:\d):)(?P<size>\d{1,4})(?P<unit>[mMkK])\]?$")
"""A window at the end of a name: Claude Code's `[1m]`, and Bedrock's `:28k` behind a version."""
_RELEASED = re.compile(r"[-@]\d{4}")
"""The date of a release, in contrast to `-latest`, `-preview` or a build."""

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
"""The host for each prefix, as `fold` writes it. Publishers' names (`meta-llama/…`) are not hosts."""

_TO_DASH = str.maketrans(dict.fromkeys(":@_ ", "-"))
_ALL_TO_DASH = str.maketrans(dict.fromkeys(".:@_ ", "-"))
_SEPARATOR = re.compile(r"[/:]")
_REGION = re.compile(r"(?:^|(?<=[/:]))(?:[a-z]{2}|apac|us-gov|global|regional)\.(?=[a-z0-9]+\.)", re.IGNORECASE)
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
_PATH = re.compile(r"[./\\]|~[/\\]|[a-z]:[\\/]", re.IGNORECASE)
"""The beginning of a name that is the path of a file."""
_FILE_TYPE = re.compile(r"(?:\.(?:I?Q\d\w*|B?F\d+))?\.(?:gguf|llamafile|safetensors|onnx|bin)$", re.IGNORECASE)
"""The end of a model file's name, with its quantisation."""
_SIZE = re.compile(r"(?:^|-)(?:\d+x)?\d+(?:-\d+)?[bm](?:-|$)")
"""A number of parameters in a folded name, such as `32b`, `8x7b` or `0-6b`."""
_TAG = re.compile(r"(?:\d+x)?\d+(?:\.\d+)?[bm]\b|(?:latest|instruct|chat|text|code)\b", re.IGNORECASE)
"""The beginning of an Ollama tag, which tells `mistral:7b` from a host and a name."""
_VARIANT = re.compile(r":(?:free|batch|thinking|extended|online|nitro|floor|exacto|latest|beta)$")


def soften(name: str) -> str:
    """Return the name in lower case with one kind of separator, keeping the dots of versions: `Llama3.1:8B` becomes
    `llama3.1-8b`."""
    return name.strip().lower().translate(_TO_DASH)


def fold(name: str) -> str:
    """Return the form in which names are compared: `Claude-3.5_Sonnet` and `claude-3-5-sonnet` are equal."""
    return name.strip().lower().translate(_ALL_TO_DASH)


def forms(name: str) -> Iterator[tuple[str | None, str]]:
    """Yield the name, then the name with one prefix after another removed, each with the outermost host so far.

    A publisher and a slash can be part of a name (`openai/gpt-oss-20b`); a host and a colon cannot.
    """
    host = None
    rest = name.strip()
    if _PATH.match(rest):
        rest = re.split(r"[\\/]", rest)[-1]
    # Fireworks names a deployment after `#`.
    rest = _FILE_TYPE.sub("", rest.removeprefix("~").partition("#")[0])
    whole = rest = _VARIANT.sub("", _STATED_WINDOW.sub("", rest))
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
        is_first = len(rest) == len(whole)
        # In the middle of a name, `models` is a part of a path, and not Google's prefix.
        host = host or (_host(rest[:cut]) if is_first or rest[:cut] != "models" else None)
        rest = rest[cut + 1 :]


def _host(prefix: str) -> str | None:
    return "bedrock" if prefix.startswith("arn:aws:bedrock") else HOSTS.get(fold(prefix))


def _next_prefix(name: str) -> int | None:
    """Return the end of the next prefix: at any slash, but at a colon only after a host, because `qwen3:4b` is a whole
    name."""
    found = _SEPARATOR.search(name)
    if found is None:
        return None
    if found[0] == "/" or (fold(name[: found.start()]) in HOSTS and not _TAG.match(name, found.end())):
        return found.start()
    slash = name.find("/")
    return slash if slash >= 0 else None


def strip_release_suffixes(folded: str) -> Iterator[str]:
    """Yield a folded name with one release suffix after another removed: a date, a build, `-latest`."""
    while found := _RELEASE.search(folded):
        folded = folded[: found.start()]
        if not folded:
            return
        yield folded


def prefixes(softened: str) -> Iterator[str]:
    """Yield the prefixes of a softened name that leave a family after cutting off a variant, the longest first.

    A bare number after the cut is another version, not a variant (`gpt-5-7` is not a kind of `gpt-5`), and a single
    word without a digit is a maker, not a family (`mistral`).
    """
    words = softened.split("-")
    for size in range(len(words) - 1, 0, -1):
        family = "-".join(words[:size])
        if re.fullmatch(r"\d{1,2}(?:\.\d+)*", words[size]) or not re.search(r"[-\d]", family):
            continue
        yield family


DEFAULT_MODEL = "gpt-4"
"""The default model of the tool `count-tokens` and of `count` in Python, kept from the original program."""
CURRENT_MODEL = "gpt-6.1-sol"
"""The default model of `ullage count`, where a model sold today is more useful."""
DEFAULT_WINDOW = 128_000
PLAIN_RULES = {"character_count_div_4": 4, "character_count_div_3": 3}
"""Rules that can be named in place of a model, with their characters a token; 3 is meant for Portuguese."""
LONGEST_NAME = 256
"""Longest name, in characters, that is looked up. No model's name is longer, and the time of a look-up grows with
length."""
OFFERED = (DEFAULT_MODEL, "gpt-3.5-turbo", "gpt-4o", "claude")
"""The names that an error always suggests, before the most similar ones."""
_CLAUDE = "claude"
_OTHER_TASK = re.compile(
    r"(?:^|-)(?:tts|speech|voice|audio|sonic|music|asr|stt|transcri\w*|whisper|live\w*|realtime|translat\w*|dub\w*"
    r"|image\w*|imagine|video|canvas|ocr|embed\w*|rerank\w*|moderation|robotics)(?:-|$)"
)
"""Words in a name that show that it is not a text model, even if it begins with the name of one."""
_OTHER_MODEL = re.compile(r"-distill|-(?:qwen|llama|gemma|phi|mistral)[\d-]")
"""Words behind a name that say that it was put into another model, whose vocabulary it has."""
_OTHER_SIZE = re.compile(r"-(?:nano|micro|mini|tiny|small|medium|lite|large|pro|max|ultra|flash)(?:-|$)")
"""Words behind a name that say that it is a smaller or larger model."""
_DATE = re.compile(r"(?P<month>[01]\d)-(?P<year>20\d\d)|20\d\d-?[01]\d-?[0-3]\d|[01]\d-[0-3]\d|\d{3,4}")
"""The date of a release after the name of its model: `2402`, `03-2024`, `20240229`, `2024-02-29`, `05-20`."""


class _RawCard(TypedDict, total=False):
    id: Required[str]
    provider: Required[str]
    family: Required[str]
    aliases: list[str]
    window: int
    max_output: int
    tokenizer: str
    accepts: str
    """The accepted features, separated by spaces; a refused one is prefixed with a dash."""
    retired: str
    replaced_by: str
    sources: dict[str, int]


class _RawTable(TypedDict):
    sources: list[tuple[str, str]]
    cards: list[_RawCard]


@dataclass(frozen=True, slots=True)
class Window:
    """The context window of a model."""

    tokens: int
    resolved: bool
    """False where the model, its version or its window is unknown, so that the window is a guess."""


class ModelTable:
    """The table of model cards, by every name of each model. A card is created on first use.

    shipped().find("claude-sonnet-4-5").card.window
    """

    def __init__(self, raw: _RawTable) -> None:
        self._raw = raw["cards"]
        self._sources = [Source(name, date.fromisoformat(day)) for name, day in raw["sources"]]
        self._index = _index(self._raw)
        self._made: dict[int, ModelCard] = {}

    @classmethod
    def read(cls, path: "Path | str") -> "ModelTable":
        """Read a table from a JSON file."""
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - `pathlib` costs 4 ms, which every count would wait for
            return cls(json.load(file))

    def __len__(self) -> int:
        return len(self._raw)

    def cards(self) -> Iterator[ModelCard]:
        """Yield every card, ordered by provider, family and id."""
        return map(self._card, range(len(self._raw)))

    def find(self, name: str) -> Match:
        """Return the match for a name in any spelling.

        Raises:
            UnsupportedModel: No card matches the name.
        """
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
        """Return the match for a name, or None. Each rule in turn is tried on the name with fewer and fewer
        prefixes."""
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
        """Return the ids most similar to a name, for suggestions.

        First come ids that contain the name as a word (`sonnet`, `gemini`), current models before retiring ones;
        otherwise similar ids, the most similar first; empty where there are none.
        """
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
        """Return the context window in tokens. An unknown model is not an error: it gets the default, with `resolved`
        false. An unknown version gets the window of the nearest one, with `resolved` false too."""
        if override is not None:
            return Window(override, resolved=True)
        match = self.get(name)
        if match is None or match.window is None:
            return Window(DEFAULT_WINDOW, resolved=False)
        return Window(match.window, resolved=not match.is_guess or match.window != match.card.window)

    def _by_name(self, bare: str) -> tuple[int, str] | None:
        folded = fold(bare)
        position = self._index.get(folded)
        if position is None:
            return None
        return position, "id" if fold(self._raw[position]["id"]) == folded else "alias"

    def _by_release(self, bare: str) -> tuple[int, str] | None:
        """Match an unknown release date: `gpt-4o-2031-01-01` is a `gpt-4o`. A date after a maker's name alone matches
        nothing."""
        asked = fold(bare)
        for stem in strip_release_suffixes(asked):
            if stem in self._index and ("-" in stem or any(map(str.isdigit, stem))):
                position = self._nearest_release(stem, asked)
                return None if position is None else (position, "dated")
        return None

    def _nearest_release(self, stem: str, asked: str) -> int | None:
        """Return the card of the newest release that is no newer than the one asked for.

        Without a date, or with a date after all known ones, it is the card of the stem. None where the release is older
        than all known ones and each of these is a model of its own: `mistral-small` names the newest of several models,
        and an older one must not be taken for any of them.
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
        """Match a variant of a family: `gpt-4o-anything` is a kind of `gpt-4o`, unless the rest names speech, audio or
        image output, or another maker's model, which are other models. One of another size is a guess, since its window
        may differ. Names that `_by_release` rejected match nothing here either."""
        # Azure and OpenAI write `.ft-` and `:ft-` before the name of a fine-tune.
        softened = soften(bare).replace(".ft-", "-ft-")
        if any(stem in self._index for stem in strip_release_suffixes(fold(bare))):
            return None
        for family in prefixes(softened):
            rest = fold(softened[len(family) :])
            if _OTHER_TASK.search(rest) or _OTHER_MODEL.search(rest):
                return None
            position = self._index.get(fold(family))
            if position is not None:
                return position, "version" if _OTHER_SIZE.search(rest) or _SIZE.search(rest) else "family"
        return None

    def _by_maker(self, bare: str) -> tuple[int, str] | None:
        """Match any `claude-…`: the Claude with the same words in another order (`claude-haiku-3-5`), else the newest
        of those whose id begins with most of its words. A version in the name that the card does not have is reported
        in `how`."""
        words = fold(bare).split("-")
        if words[0] != _CLAUDE:
            return None
        for spelling in (fold(bare), *strip_release_suffixes(fold(bare))):
            for name, position in self._index.items() if spelling != _CLAUDE else ():
                if name.startswith(_CLAUDE) and sorted(name.split("-")) == sorted(spelling.split("-")):
                    return position, "alias"
        for size in range(len(words), 1, -1):
            kin = [place for place, raw in enumerate(self._raw) if raw["id"].split("-")[:size] == words[:size]]
            if kin:
                return self._of_version(max(kin, key=lambda place: _version(self._raw[place]["id"])), bare)
        return self._of_version(self._index[_CLAUDE], bare)

    def _of_version(self, position: int, bare: str) -> tuple[int, str]:
        """Return the card with the rule that found it: `version` if the name has another version than the card."""
        *_, stem = (name for name in (fold(bare), *strip_release_suffixes(fold(bare))) if name != _CLAUDE)
        asked = _version(stem)
        return position, "version" if asked and asked != _version(self._raw[position]["id"]) else "family"

    def _card(self, position: int) -> ModelCard:
        if position not in self._made:
            self._made[position] = _card(self._raw[position], self._sources)
        return self._made[position]


def _index(cards: list[_RawCard]) -> dict[str, int]:
    """Return the position of each folded name. A name with a publisher (`meta-llama/…`) is also indexed without it."""
    index: dict[str, int] = {}
    for position, raw in enumerate(cards):
        for name in (raw["id"], *raw.get("aliases", ())):
            index[fold(name)] = position
            if "/" in name:
                index.setdefault(fold(name.rpartition("/")[2]), position)
    return index


def _date(name: str, stem: str) -> str | None:
    """Return the date after a model's name, as digits that sort by time among those of the same length; None without
    one."""
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
        accepts={word.removeprefix("-"): not word.startswith("-") for word in raw.get("accepts", "").split()},
        retired=date.fromisoformat(retired) if retired else None,
        replaced_by=raw.get("replaced_by"),
        sources={figure: sources[place] for figure, place in raw.get("sources", {}).items()},
    )


@cache
def shipped() -> ModelTable:
    """Return the table that ships with the package, read once a process."""
    return ModelTable.read(f"{__file__.removesuffix('model_cards.py')}data/cards.json")
