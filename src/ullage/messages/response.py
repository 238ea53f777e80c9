"""Reads a provider's answer and the usage that it reports.

An answer is a whole response as the API returned it: a dict, or an SDK's object made plain. Streams are not supported.

The four providers' conventions of usage become one with inclusive buckets: all input, including what was read from and
written to a cache, and all output, including reasoning. What a provider does not report is None; an impossible value
(more tokens cached than sent) is limited to the possible range.

A value of an unexpected type counts as absent: providers add and omit fields, and an answer is not rejected for that.
"""

from dataclasses import dataclass, replace

from ullage.errors import InvalidArguments
from ullage.models import Usage
from ullage.tool import Json, JsonObject

from .parts import Format

__all__ = ["Answer", "read_answer", "read_usage", "table_at", "tables_at", "text_at", "tokens_at"]


def text_at(holder: JsonObject, key: str) -> str | None:
    value = holder.get(key)
    return value if isinstance(value, str) else None


_MOST_TOKENS = 1_000_000_000
"""Far beyond any window: a larger figure is not a count, and would not fit into a database either."""


def tokens_at(holder: JsonObject, key: str) -> int | None:
    """Return a count of tokens; None where it is absent or cannot be one. `39.0` is 39."""
    value = holder.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


def table_at(holder: JsonObject, key: str) -> JsonObject:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def tables_at(holder: JsonObject, key: str) -> list[JsonObject]:
    value = holder.get(key)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _chat_usage(said: JsonObject) -> Usage:
    """Read usage of OpenAI chat and compatible APIs: the prompt includes cached tokens, the completion includes
    reasoning."""
    prompt, completion = tokens_at(said, "prompt_tokens"), tokens_at(said, "completion_tokens")
    total = tokens_at(said, "total_tokens")
    if prompt is not None and completion is not None and total is not None:
        # Tokens that only the total includes were used too: thoughts besides the completion with xAI and with Gemini in
        # this format, audio besides the prompt with Mistral, which then reports its duration.
        unnamed = max(0, total - prompt - completion)
        prompt, completion = (
            (prompt + unnamed, completion) if "prompt_audio_seconds" in said else (prompt, completion + unnamed)
        )
    details = table_at(said, "prompt_tokens_details")
    cached = tokens_at(details, "cached_tokens")
    return _sound(
        prompt,
        completion,
        cache_read=tokens_at(said, "num_cached_tokens") if cached is None else cached,
        cache_write=tokens_at(details, "cache_write_tokens"),
        reasoning=tokens_at(table_at(said, "completion_tokens_details"), "reasoning_tokens"),
    )


def _anthropic_usage(said: JsonObject) -> Usage:
    """Read usage of Anthropic: `input_tokens` excludes what was read from and written to the cache."""
    fresh, read, write = (
        tokens_at(said, key) for key in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    whole = None if fresh is None else fresh + (read or 0) + (write or 0)
    thinking = tokens_at(table_at(said, "output_tokens_details"), "thinking_tokens")
    return _sound(whole, tokens_at(said, "output_tokens"), cache_read=read, cache_write=write, reasoning=thinking)


def _gemini_usage(said: JsonObject) -> Usage:
    """Read usage of Gemini: the prompt includes cached tokens; the candidates exclude thoughts; results of Google's own
    tools are counted separately."""
    prompt, tool = tokens_at(said, "promptTokenCount"), tokens_at(said, "toolUsePromptTokenCount")
    shown, thoughts = tokens_at(said, "candidatesTokenCount"), tokens_at(said, "thoughtsTokenCount")
    return _sound(
        None if prompt is None else prompt + (tool or 0),
        # A blocked prompt, or an answer without text, has no count of candidates.
        None if prompt is None and shown is None else (shown or 0) + (thoughts or 0),
        cache_read=tokens_at(said, "cachedContentTokenCount"),
        cache_write=None,
        reasoning=thoughts,
    )


def _sound(
    whole_input: int | None,
    whole_output: int | None,
    *,
    cache_read: int | None,
    cache_write: int | None,
    reasoning: int | None,
) -> Usage:
    read, write = _within(cache_read, whole_input), cache_write
    if whole_input is not None:
        write = _within(cache_write, whole_input - (read or 0))
    return Usage(
        input=whole_input,
        output=whole_output,
        cache_read=read,
        cache_write=write,
        reasoning=_within(reasoning, whole_output),
    )


def _within(part: int | None, whole: int | None) -> int | None:
    return part if part is None or whole is None else min(part, whole)


def read_usage(said: JsonObject, format: Format) -> Usage:  # noqa: A002
    """Return the usage of an answer in one of the providers' formats.

    A provider that reports only a total, under the key names of either OpenAI format, has it counted as input.
    """
    match format:
        case Format.OPENAI_CHAT:
            usage = _chat_usage(said)
        case Format.OPENAI_RESPONSES:
            details = table_at(said, "input_tokens_details")
            usage = _sound(
                tokens_at(said, "input_tokens"),
                tokens_at(said, "output_tokens"),
                cache_read=tokens_at(details, "cached_tokens"),
                cache_write=tokens_at(details, "cache_write_tokens"),
                reasoning=tokens_at(table_at(said, "output_tokens_details"), "reasoning_tokens"),
            )
        case Format.ANTHROPIC:
            usage = _anthropic_usage(said)
        case Format.GEMINI:
            usage = _gemini_usage(said)
        case Format.ULLAGE:
            raise InvalidArguments("no provider reports usage in neutral parts", suggestion="give a `Usage`")
    totals = (tokens_at(said, key) for key in ("total_tokens", "totalTokenCount"))
    total = next((one for one in totals if one is not None), None)
    if total is None or usage.input is not None or usage.output is not None:
        return usage
    cached = (usage.cache_read or 0) + (usage.cache_write or 0)
    return replace(usage, input=max(total, cached), output=0, reasoning=None)


@dataclass(frozen=True, slots=True)
class Answer:
    """The messages and usage read from a provider's response."""

    natives: tuple[dict[str, Json], ...]
    """The messages or items that are appended to the history."""
    usage: Usage
    id: str | None = None
    """The provider's id of the response."""
    model: str | None = None
    """The model that answered, as the provider names it."""


def read_answer(response: JsonObject, format: Format) -> Answer:  # noqa: A002
    """Read a response. The answer has neither messages nor usage where the response is an error.

    Raises:
        InvalidArguments: The format is `Format.ULLAGE`, in which no provider answers.
    """
    usage, natives = table_at(response, "usage"), list[dict[str, Json]]()
    match format:
        case Format.OPENAI_CHAT:
            natives = [
                dict(message)
                for choice in tables_at(response, "choices")[:1]
                if (message := table_at(choice, "message"))
            ]
        case Format.OPENAI_RESPONSES:
            natives = [dict(item) for item in tables_at(response, "output")]
        case Format.ANTHROPIC:
            if content := response.get("content"):
                natives.append({"role": "assistant", "content": content})
        case Format.GEMINI:
            contents = [dict(table_at(one, "content")) for one in tables_at(response, "candidates")[:1]]
            natives, usage = [one for one in contents if one.get("parts")], table_at(response, "usageMetadata")
        case Format.ULLAGE:
            raise InvalidArguments(
                "no provider answers in neutral parts",
                suggestion="give usage and messages apart: observe(usage=…, answer=…)",
            )
    identity = text_at(response, "id") or text_at(response, "responseId")
    model = text_at(response, "model") or text_at(response, "modelVersion")
    return Answer(tuple(natives), read_usage(usage, format), identity, model)
