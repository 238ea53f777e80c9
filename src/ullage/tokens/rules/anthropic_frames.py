"""What does Anthropic add to a request, by model?

Figures only, and the model they hold for. Each was measured on recorded requests (1,444 of them, 2024 to 2026), after
the text was counted with `calibrated`; what stands in Anthropic's documentation instead says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ullage.models import ModelCard

__all__ = ["Frame", "frame_of", "hosted_tokens"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The constants of one model."""

    opening: int = 4
    """Once a request."""
    message: int = 3
    preamble: int = 496
    """Once, where there are tools."""
    forced: int = 93
    """Once, where the model must call a tool."""
    alone: int = 0
    """Once, where it must call just one."""
    tool: int = 8
    """A definition, beside its JSON."""
    call: int = 22
    result: int = 17
    argument: int = 16
    """An argument of a call, beside its name and value."""
    parallel: int = 32
    """A call (and its result) beside another in the same message."""
    failed: int = 18
    """A result marked as an error."""
    deferred: int = 0
    """Once, where a definition is kept back until it is looked for; the definition itself costs nothing."""
    schema: int = 84
    """Once, for a structured answer, beside its schema."""
    citations: int = 515
    """Once, where documents are to be cited."""
    document: int = 38
    budgeted: int = 28
    """Once, where a thinking budget is set."""
    adaptive: int = 0
    keeps_thinking: bool = False
    """Whether thinking of earlier turns stays in the prompt."""
    long_edge: int = 1568
    most_of_image: int = 1600
    measured: bool = True
    """Whether recordings of this very model were at hand."""


_CLAUDE_4_5 = Frame()
_CLAUDE_4 = replace(_CLAUDE_4_5, preamble=310, forced=3, alone=-29)
_CLAUDE_4_6 = replace(_CLAUDE_4_5, keeps_thinking=True)
_CLAUDE_3 = replace(_CLAUDE_4_5, preamble=264, forced=88)
_CLAUDE_4_8 = Frame(
    opening=4,
    preamble=291,
    forced=120,
    call=13,
    result=10,
    argument=12,
    parallel=20,
    deferred=89,
    schema=118,
    citations=742,
    document=43,
    budgeted=0,
    keeps_thinking=True,
    long_edge=2576,  # documentation of Opus 4.7, as is the next
    most_of_image=4784,
)
_CLAUDE_4_7 = replace(_CLAUDE_4_8, opening=9, preamble=679, forced=135, call=33, result=25, argument=13, deferred=0)

_BY_MODEL: Mapping[str, Frame] = {
    "claude-3-haiku": _CLAUDE_3,
    "claude-3-sonnet": replace(_CLAUDE_3, preamble=159, forced=76, measured=False),  # documentation
    "claude-3-opus": replace(_CLAUDE_3, preamble=532, forced=-249),  # forced: documentation
    "claude-3-5-haiku": _CLAUDE_3,
    "claude-3-5-sonnet": replace(_CLAUDE_3, preamble=291, forced=-33),  # forced: documentation
    "claude-opus-4-5": _CLAUDE_4_6,
    "claude-opus-4-6": replace(_CLAUDE_4_6, adaptive=17),
    "claude-opus-5": replace(_CLAUDE_4_8, preamble=287),
    "claude-sonnet-5": replace(_CLAUDE_4_8, preamble=355),
}
_BY_FAMILY: Mapping[str, Frame] = {
    "claude-2": replace(_CLAUDE_3, opening=7, measured=False),
    "claude-3.7": _CLAUDE_4,
    "claude-4": _CLAUDE_4,
    "claude-4.5": _CLAUDE_4_5,
    "claude-4.6": _CLAUDE_4_6,
    "claude-4.7": _CLAUDE_4_7,
    "claude-4.8": _CLAUDE_4_8,
    "claude-5": _CLAUDE_4_8,
}


def frame_of(card: ModelCard) -> Frame:
    """The constants of a model; of its nearest kin where it was never recorded."""
    known = _BY_MODEL.get(card.id) or _BY_FAMILY.get(card.family)
    if known is not None:
        return known
    return replace(_CLAUDE_4_8 if card.tokenizer == "claude_4_7" else _CLAUDE_3, measured=False)


_HOSTED: Mapping[str, int] = {
    "web_search": 1710,
    "web_fetch": 525,
    "code_execution_20250522": 1600,
    "code_execution": 4130,
    "memory": 1070,
    "tool_search_tool": 200,
    "advisor": 1490,
    "mcp_toolset": 2700,
    "bash": 245,  # documentation, as are the next two
    "text_editor": 700,
    "computer": 735,
}
"""By the beginning of the type of a tool that Anthropic defines: what it adds beside the preamble."""


def hosted_tokens(kind: str) -> int | None:
    """What a tool of Anthropic's own adds to a prompt of Claude 4.5; None for one never seen."""
    return next((tokens for name, tokens in _HOSTED.items() if kind.startswith(name)), None)
