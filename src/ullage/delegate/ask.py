"""What is to be answered?

An ask as its caller puts it, and as it goes to one candidate. Who that is, and whether it answers, is not known here.
"""

from dataclasses import dataclass, replace

from ullage.messages import Media, Message, Part, Thinking, ToolDefinition, join_texts
from ullage.tool import ANONYMOUS, Caller, Json, JsonObject

from .exchange import Outgoing
from .route import Candidate

__all__ = ["Ask", "has_images", "last_words", "most_output", "outgoing"]

_OUTPUT = 4_096
"""Tokens that an answer may have where nothing else limits it: what is set aside for it is what it may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    messages: tuple[Message, ...]
    force_model: str | None = None
    language: str | None = None
    tier: str | None = None
    domain: str = "default"
    temperature: float | None = None
    max_output_tokens: int | None = None
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: Json = None
    output_schema: JsonObject | None = None
    caller: Caller = ANONYMOUS
    task: str | None = None
    """What the caller works on, by a name of the caller's: a label in figures, and a scope of budgets."""
    tool: str | None = None
    """Which tool or command asks: `run`, `diff`, `summary`; a label in figures."""
    deadline: float | None = None
    """On the event loop's clock; None for `Delegate.longest`."""
    cut: bool = False
    """Whether a prompt that no window holds may be cut, whatever `Delegate.cut` says."""
    alone: bool = False
    """Whether only the first candidate is meant, and no fallback."""
    prompt_tokens: int | None = None
    """What the prompt weighs, where whoever asks knows it from what the provider said before; else it is weighed."""


def last_words(messages: tuple[Message, ...]) -> str:
    """The text that the user said last."""
    users = [message for message in messages if message.role == "user"]
    return join_texts(users[-1].parts) if users else ""


def has_images(messages: tuple[Message, ...]) -> bool:
    return any(isinstance(part, Media) and part.kind == "image" for message in messages for part in message.parts)


def outgoing(candidate: Candidate, ask: Ask, *, is_open: bool = False) -> Outgoing:
    """`is_open` where thoughts are neither to be sent sealed nor asked for."""
    thinks = False if is_open else candidate.thinks
    return Outgoing(
        model=candidate.entry.model,
        messages=_unsealed(ask.messages) if thinks is False else ask.messages,
        max_output_tokens=most_output(candidate),
        temperature=candidate.parameters.temperature,
        tools=ask.tools,
        tool_choice=ask.tool_choice,
        output_schema=ask.output_schema,
        thinks=thinks is True,
    )


def _unsealed(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Without what one of OpenAI's models thought and sealed: another account cannot open it, and a model that does not
    think refuses it. A message that was nothing else goes with it."""
    opened = ((message, tuple(filter(_is_open, message.parts))) for message in messages)
    return tuple(replace(message, parts=parts) for message, parts in opened if parts or not message.parts)


def _is_open(part: Part) -> bool:
    return not isinstance(part, Thinking) or part.signature is None or part.sealed_as not in (None, "encrypted")


def most_output(candidate: Candidate) -> int:
    return candidate.parameters.max_output_tokens or _OUTPUT
