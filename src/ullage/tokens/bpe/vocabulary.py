"""Which vocabularies can be counted with, and what is each one's way?

Facts only. Who loads them: `bpe` (all), `fallback` (those of OpenAI).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from .split import CL100K, DEEPSEEK, KIMI, LLAMA3, O200K, QWEN, TEKKEN, Split

__all__ = ["VOCABULARIES", "Vocabulary"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vocabulary:
    """The facts of one vocabulary."""

    name: str
    split: Split | None = None
    """How a text is split into pieces before merging; None where merging goes over the whole text (SentencePiece)."""
    leads: bool = False
    """Whether a space is put before every text (SentencePiece's dummy prefix)."""
    composed: bool = False
    """Whether the text is first brought into Unicode's composed form (NFC)."""
    sliced: bool = True
    """Whether a long text may be counted in slices; else it is counted at once."""
    light: bool = False
    """Whether it loads too fast (15 ms) to have a process for it."""


_ALL = (
    Vocabulary(name="cl100k_base", split=CL100K),
    Vocabulary(name="o200k_base", split=O200K),
    Vocabulary(name="llama2", leads=True),
    Vocabulary(name="llama3", split=LLAMA3),
    Vocabulary(name="deepseek_v3", split=DEEPSEEK),
    Vocabulary(name="qwen3", split=QWEN, composed=True),
    Vocabulary(name="glm4", split=LLAMA3),
    Vocabulary(name="kimi_k2", split=KIMI),
    Vocabulary(name="phi4", split=LLAMA3),
    Vocabulary(name="mistral_v1", leads=True),
    Vocabulary(name="mistral_v2", leads=True),
    Vocabulary(name="mistral_v3", split=TEKKEN),
    Vocabulary(name="modernbert", sliced=False, light=True),
    Vocabulary(name="gemma2"),
    Vocabulary(name="gemma4"),
)
_BY_NAME = {vocabulary.name: vocabulary for vocabulary in _ALL}
VOCABULARIES: Mapping[str, Vocabulary] = {**_BY_NAME, "o200k_harmony": _BY_NAME["o200k_base"]}
"""Harmony differs from o200k in its special tokens only, and those are plain text here."""
