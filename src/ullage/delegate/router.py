"""Chooses the model for a request by the policy.

`route` is a pure function of a request, a policy and the model table. It returns a route with one line of rationale for
each step that decided something. It calls no model and does not know which candidates are reachable.

Precedence: the prompt must fit the context window first; a forced model overrides the rest; a bucket other than the
first overrides the language; the language overrides the first bucket and the default.

`detect_language` returns the language of a text, or None if that is unclear. It uses py3langid on the first part of the
text, without code and addresses. If two languages remain, the verb at the beginning of the prompt decides. None is
better than a guess, because the session's language then applies. py3langid is loaded on first use, which takes most of
a second of CPU; call `load_detector` in a thread beforehand to keep the event loop free.

`shorten_last_message` cuts the middle out of the last user message, because its beginning states the task and its end
is the most recent text. A mark in its place gives the number of characters removed; everything else is unchanged.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol, cast

from ullage.errors import InvalidArguments
from ullage.messages import Message, Text
from ullage.models import ModelTable

from .policy import ModelEntry, Policy

__all__ = [
    "Candidate",
    "Parameters",
    "Route",
    "RouteRequest",
    "ShortenedPrompt",
    "TooLong",
    "detect_language",
    "load_detector",
    "route",
    "shorten_last_message",
    "without",
]


class TooLong(InvalidArguments):
    """Raised for a prompt that fits no context window; `room` is the number of tokens that would have fitted."""

    room: int = 0


@dataclass(frozen=True, slots=True)
class ShortenedPrompt:
    """Shortened messages, and how much was removed."""

    messages: tuple[Message, ...]
    left_out: int
    """Characters removed."""


def shorten_last_message(
    messages: tuple[Message, ...], fits: Callable[[tuple[Message, ...]], bool]
) -> ShortenedPrompt | None:
    """Return the messages with as much of the last user message as fits; None if no part of it fits.

    Args:
        messages: the prompt.
        fits: whether the given messages fit the context window.
    """
    users = [number for number, message in enumerate(messages) if message.role == "user"]
    parts = enumerate(messages[users[-1]].parts) if users else ()
    texts = [(len(part.text), number) for number, part in parts if isinstance(part, Text)]
    place = (users[-1], max(texts)[1]) if texts else None
    if place is None:
        return None
    message, part = place
    text = _text(messages, place)
    low, high = 0, len(text) - 1
    while low < high:
        kept = (low + high + 1) // 2
        low, high = (kept, high) if fits(_cut(messages, message, part, kept)) else (low, kept - 1)
    return ShortenedPrompt(_cut(messages, message, part, low), len(text) - low) if low else None


def _text(messages: tuple[Message, ...], place: tuple[int, int]) -> str:
    part = messages[place[0]].parts[place[1]]
    return part.text if isinstance(part, Text) else ""


def _cut(messages: tuple[Message, ...], message: int, part: int, kept: int) -> tuple[Message, ...]:
    text = _text(messages, (message, part))
    head, tail = text[: kept - kept // 2], text[len(text) - kept // 2 :]
    mark = f"\n[… {len(text) - kept:,} characters left out …]\n"
    parts = list(messages[message].parts)
    parts[part] = Text(f"{head}{mark}{tail}")
    return (*messages[:message], replace(messages[message], parts=tuple(parts)), *messages[message + 1 :])


_LOOKED_AT = 2_000
"""Characters examined, from the beginning of the text."""
_SHORT = 17
"""Minimum characters to detect the language of an ASCII text; four letters are enough in other scripts."""
_LEAST = 0.4
"""Minimum probability of a detected language, with `_WEIGHTS`."""
_LEAST_ALONE = 0.25
"""Minimum probability without them."""
_RARE = 0.1
_WEIGHTS = {"af": 0.5} | dict.fromkeys(
    ("an", "br", "co", "eo", "fy", "ia", "ie", "io", "lb", "li", "oc", "sc", "vo", "wa"), _RARE
)
"""How much less often prompts are in a language than its likeness to others makes the detector believe. Languages with
a code of three letters count as rare too."""
_LEAD = 2.0
"""Minimum ratio to the second-best probability, since some languages differ little."""
_COMMANDS = {
    **dict.fromkeys(("escreva", "explique", "crie", "faça", "resuma", "traduza", "liste", "mostre"), "pt"),
    **dict.fromkeys(("escribe", "explica", "haz", "traduce", "muestra", "resume"), "es"),
    **dict.fromkeys(("write", "explain", "create", "make", "summarize", "summarise", "translate", "show"), "en"),
}
"""Verbs at the beginning of prompts, for the languages in the policy's examples."""
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|\S+@\S+", re.DOTALL)
_NO_LETTER = re.compile(r"[\W\d_]+")


def detect_language(text: str) -> str | None:
    """Return the two-letter code of a text's language; None if the text is too short or no language is clear."""
    sample = " ".join(_CODE.sub(" ", text[:_LOOKED_AT]).split())
    letters = _NO_LETTER.sub("", sample)
    if len(letters) < 4 or (letters.isascii() and len(sample) < _SHORT):
        return None
    ranked = [
        (likely * _WEIGHTS.get(code, 1 if len(code) == 2 else _RARE), code, likely)
        for code, likely in _identifier().rank(sample)
    ]
    (weight, best, likely), (next_weight, next_best, _), *_ = sorted(ranked, reverse=True)
    is_clear = weight >= _LEAST * sum(one for one, _, _ in ranked) and weight >= _LEAD * next_weight
    if is_clear and likely >= _LEAST_ALONE:
        return best if len(best) == 2 else None
    commanded = _COMMANDS.get(sample.partition(" ")[0].lower())
    return commanded if commanded in (best, next_best) else None


def load_detector() -> None:
    """Load the detector, so that the next `detect_language` is fast. May be called from any thread."""
    _identifier()


class _Identifier(Protocol):
    """The part of py3langid that is used; it has no type annotations."""

    def rank(self, text: str) -> list[tuple[str, float]]:
        """Return every language with its probability, the likeliest first."""
        ...


@cache
def _identifier() -> _Identifier:
    from py3langid import langid  # pyright: ignore[reportMissingTypeStubs]

    library = cast("Any", langid)
    return cast("_Identifier", library.LanguageIdentifier.from_model_file(library.MODEL_FILE, norm_probs=True))


_LEAST_TEMPERATURE, _MOST_TEMPERATURE = 0.0, 2.0
_PLAIN = "default"
"""The domain without a preferred temperature."""
_DOMAIN_TEMPERATURES = {"code": 0.25, "creative": 0.9}
"""Temperatures of domains for which the policy sets none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRequest:
    """What `route` needs to know of a request."""

    prompt_tokens: int
    """Upper bound of the prompt's tokens, including everything sent with it."""
    language: str | None = None
    """Two-letter code: given, detected, or the session's."""
    language_from: str = "given"
    """How the language was found, for the rationale: `given`, `detected`, `the session's`."""
    force_model: str | None = None
    """An alias or a model id."""
    tier: str | None = None
    domain: str = _PLAIN
    temperature: float | None = None
    max_output_tokens: int | None = None
    has_images: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters of a request to one candidate."""

    max_output_tokens: int | None
    """None if nothing limits it; the provider's default then applies."""
    temperature: float | None
    """None if the model refuses a temperature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A model that may be asked, with its parameters and abilities."""

    alias: str | None
    entry: ModelEntry
    parameters: Parameters
    window: int | None
    """Context window in tokens; None if unknown, and then assumed to be large enough."""
    thinks: bool | None = None
    """Whether the model reasons before it answers; None if unknown."""
    sees: bool | None = None
    """Whether the model accepts images; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The candidates for a request, and why they were chosen."""

    candidates: tuple[Candidate, ...]
    """Candidates in the order to try; never empty."""
    rationale: tuple[str, ...]
    preferred: str | None = None
    """Id of the model that the policy chose, if it was left out because it is cooling down."""


def route(request: RouteRequest, policy: Policy, models: ModelTable) -> Route:
    """Return the candidates for a request, in the order to try.

    Raises:
        InvalidArguments: the model, tier or domain does not exist, or no suitable model takes images.
        TooLong: the prompt fits no context window.
    """
    if request.tier is not None and request.tier not in policy.tiers:
        hint = "use one of the tiers below" if policy.tiers else "leave the tier out: the policy has none"
        raise InvalidArguments(f"no tier is called `{request.tier}`", suggestion=hint, options=tuple(policy.tiers))
    domains = tuple(dict.fromkeys((_PLAIN, *_DOMAIN_TEMPERATURES, *policy.temperatures)))
    if request.domain not in domains:
        said = f"no domain is called `{request.domain}`"
        raise InvalidArguments(said, suggestion="use one of the domains below", options=domains)
    alias, reasons = _choose(request, policy)
    chain: list[str] = []
    first = alias
    alias = first if first in policy.aliases else _alias_of(first, policy)
    seen = set[str]()
    for name in (first, *policy.fallbacks.get(alias or first, ())):
        entry = _entry(name, policy)
        if entry.id not in seen:
            seen.add(entry.id)
            chain.append(name)
    known = [_candidate(one, request, policy, models) for one in chain]
    if request.has_images:
        reasons += [f"{_display_name(one)}: takes no images" for one in known if one.sees is False]
        known = [one for one in known if one.sees is not False] or _models_with_vision(request, policy, models)
    fitting = [one for one in known if _fits(one, request)]
    reasons += [
        f"{_display_name(one)}: window of {one.window} is too small for {request.prompt_tokens} + "
        f"{one.parameters.max_output_tokens or 1}"
        for one in known
        if one not in fitting
    ]
    if not fitting:
        fitting = _models_with_larger_window(request, policy, models, known)
        reasons += [f"window: {_display_name(fitting[0])} holds it"]
    settings: list[str] = []
    chosen = fitting[0]
    temperature, who = _choose_temperature(chosen.entry, request, policy)
    if chosen.parameters.temperature is None:
        if temperature is not None:
            settings.append(f"temperature: omitted, {chosen.entry.model} does not accept it")
    else:
        settings.append(f"temperature: {chosen.parameters.temperature:g} ({who})")
    if chosen.parameters.max_output_tokens is not None:
        settings.append(f"output: {chosen.parameters.max_output_tokens} ({_capped_by(chosen, request, policy)})")
    reasons += settings
    return Route(candidates=tuple(fitting), rationale=tuple(reasons))


def _models_with_vision(request: RouteRequest, policy: Policy, models: ModelTable) -> list[Candidate]:
    """Return every model known to accept images, for a chain without one.

    A forced model is never replaced: the request is refused instead.
    """
    everyone = [_candidate(identity, request, policy, models) for identity in policy.models]
    seeing = [one for one in everyone if one.sees]
    if request.force_model is not None or not seeing:
        whose = (
            "no model of the policy"
            if request.force_model is None
            else f"neither `{request.force_model}` nor its fallbacks"
        )
        raise InvalidArguments(
            f"there are images, and {whose} take them"
            if request.force_model
            else f"there are images, and {whose} takes them",
            suggestion="name a model that takes images with `forceModel`, or leave `images` out",
            options=tuple(_display_name(one) for one in seeing),
        )
    return seeing


def _choose(request: RouteRequest, policy: Policy) -> tuple[str, list[str]]:
    """Return the alias or id to begin with, and the reasons."""
    if request.force_model is not None:
        _entry(request.force_model, policy)
        return request.force_model, [f"forced: {request.force_model}"]
    tokens = request.prompt_tokens
    number, bucket = next(
        (
            (number, one)
            for number, one in enumerate(policy.buckets)
            if one.at_least <= tokens and (one.at_most is None or tokens <= one.at_most)
        ),
        (-1, None),
    )
    rule = None if request.language is None else policy.languages.get(request.language)
    if bucket is not None and number > 0:
        return bucket.alias, [f"bucket: {request.prompt_tokens} tokens -> {bucket.alias}"]
    if rule is not None and rule.alias is not None:
        return rule.alias, [f"language: {request.language} ({request.language_from}) -> {rule.alias}"]
    if bucket is not None:
        return bucket.alias, [f"bucket: {request.prompt_tokens} tokens -> {bucket.alias}"]
    if policy.default_alias is None:
        raise InvalidArguments(
            "the policy names no model for this", suggestion="set routing.defaultAlias", options=tuple(policy.aliases)
        )
    return policy.default_alias, [f"default: {policy.default_alias}"]


def _alias_of(identity: str, policy: Policy) -> str | None:
    return next((alias for alias, model in policy.aliases.items() if model == identity), None)


def _entry(name: str, policy: Policy) -> ModelEntry:
    found = policy.models.get(policy.aliases.get(name, name))
    if found is None:
        raise InvalidArguments(
            f"no model of the policy is called `{name}`",
            suggestion="use one of the names below, or leave it to the policy",
            options=(*policy.aliases, *policy.models),
        )
    return found


def _candidate(name: str, request: RouteRequest, policy: Policy, models: ModelTable) -> Candidate:
    entry = _entry(name, policy)
    match = models.get(entry.model)
    alias = name if name in policy.aliases else _alias_of(name, policy)
    window = entry.window or (None if match is None else match.window)
    tier = None if request.tier is None else policy.tiers[request.tier]
    asked = request.max_output_tokens if request.max_output_tokens is not None else tier
    if asked is None:
        asked = _least(policy.cap_default, entry.cap_default)
    if match is not None and match.card.accepts.get("temperature") is False:
        temperature = None
    else:
        value, _ = _choose_temperature(entry, request, policy)
        temperature = None if value is None else min(max(value, _LEAST_TEMPERATURE), _MOST_TEMPERATURE)
    parameters = Parameters(
        max_output_tokens=_least(
            entry.cap_hard, entry.max_output_tokens, None if match is None else match.card.max_output, asked
        ),
        temperature=temperature,
    )
    thinks = None if match is None else match.card.accepts.get("reasoning")
    sees = None if match is None else match.card.accepts.get("images")
    return Candidate(alias=alias, entry=entry, parameters=parameters, window=window, thinks=thinks, sees=sees)


def _least(*values: int | None) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _choose_temperature(entry: ModelEntry, request: RouteRequest, policy: Policy) -> tuple[float | None, str]:
    """Return the temperature before it is clamped to the model's bounds, and which setting it comes from."""
    rule = policy.languages.get(request.language or "")
    domain = None
    if request.domain != _PLAIN:
        domain = policy.temperatures.get(request.domain, _DOMAIN_TEMPERATURES.get(request.domain))
    asked = (
        (request.temperature, "request"),
        (domain, f"domain {request.domain}"),
        (None if rule is None else rule.temperature, f"language {request.language}"),
        (entry.temperature, "model"),
        (policy.temperatures.get(_PLAIN), "default"),
    )
    return next(((value, who) for value, who in asked if value is not None), (None, "nobody"))


def _fits(candidate: Candidate, request: RouteRequest) -> bool:
    if candidate.window is None:
        return True
    return request.prompt_tokens + (candidate.parameters.max_output_tokens or 1) <= candidate.window


def _models_with_larger_window(
    request: RouteRequest, policy: Policy, models: ModelTable, chain: list[Candidate]
) -> list[Candidate]:
    """Return every other model whose context window fits the prompt, the smallest first.

    A forced model is never replaced: the request is refused instead.
    """
    everyone = [_candidate(identity, request, policy, models) for identity in policy.models]
    holding = [one for one in everyone if one.window is not None and _fits(one, request)]
    if request.force_model is not None or not holding:
        asked = chain if request.force_model is not None else everyone
        known = [one for one in asked if one.window is not None]
        largest = max((one.window or 0 for one in known), default=0)
        whose = f"the largest window is {largest}"
        if request.force_model is not None:
            whose = f"neither `{request.force_model}` nor its fallbacks hold them"
        error = TooLong(
            f"the prompt has {request.prompt_tokens} tokens, and {whose}",
            suggestion="shorten the prompt, or let it be cut",
            options=tuple(_display_name(one) for one in holding),
        )
        error.room = max(((one.window or 0) - (one.parameters.max_output_tokens or 1) for one in known), default=0)
        raise error
    return sorted(holding, key=lambda one: one.window or 0)


def _display_name(candidate: Candidate) -> str:
    return candidate.alias or candidate.entry.id


def _capped_by(chosen: Candidate, request: RouteRequest, policy: Policy) -> str:
    limit = chosen.parameters.max_output_tokens
    if request.max_output_tokens is not None:
        asked, who = request.max_output_tokens, "request"
    elif request.tier is not None:
        asked, who = policy.tiers[request.tier], f"tier {request.tier}"
    else:
        asked, who = _least(policy.cap_default, chosen.entry.cap_default), "default"
    return who if limit == asked else "the model's hard cap"


def without(found: Route, identities: frozenset[str]) -> Route:
    """Return the route without the given models, which are benched; unchanged if no candidate would remain."""
    left = tuple(one for one in found.candidates if one.entry.id not in identities)
    skipped = tuple(_display_name(one) for one in found.candidates if one.entry.id in identities)
    if not left or not skipped:
        return found
    return replace(
        found,
        candidates=left,
        rationale=(*found.rationale, f"benched: {', '.join(skipped)}"),
        preferred=found.candidates[0].entry.id,
    )
