"""Will an answer do as a summary?

Not if there is nothing in it, if it is cut off, a refusal, a call, an echo of what was asked, or too long. What is left
may still be a bad summary: nobody here can tell.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from json import loads

from .clipping import line_of, readable
from .sections import read_sections
from .summarizer import SummaryAnswer

__all__ = ["Fault", "Judge", "failure"]

_MUCH = 1.1
"""Of the room, that an answer may have."""
_SHORT = 400
"""Characters up to which words of refusal are all there is."""
_LINE = 60
"""Characters of a line that nobody writes by chance."""
_REASON = 200
"""Characters that are told of an error."""
_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
"""What models without a place for thinking think aloud."""
_WRAPPED = re.compile(r"\s*(?:```\w*\n(.*)\n```|<(\w+)>(.*)</\2>)\s*", re.DOTALL)
_REFUSAL = re.compile(
    r"\W*(?:(?:i['’]m|i am|we['’]re) (?:very |so |really )?(?:sorry|unable|afraid|not able)|sorry\b|i apologi[sz]e"
    r"|(?:i|we) (?:can['’]?t|cannot|can not|won['’]t|will not|must decline|am not able)|unfortunately,? (?:i|we)\b"
    r"|as an ai\b|es tut mir leid|ich kann (?:das|dabei|dir|ihnen|diese)|lo siento|no puedo|je suis désolée?"
    r"|je ne peux pas|desculpe|não posso|mi dispiace|non posso|抱歉|对不起|我无法|我不能|申し訳|죄송|извините"
    r"|я не могу)",
    re.IGNORECASE,
)
_CALL = re.compile(
    r"\s*(?:```\w*\s*)?(?:<\W*(?:\w+:)?(?:tool|function|invoke)|<\|?tool|\[TOOL_|functions?\.\w+\s*\(|(?:to=)functions?\.)",
    re.IGNORECASE,
)
_NOTHING = re.compile(r"\W*+(?:none|nothing|n/?a|not applicable|empty|tbd|unknown)?+\W*+", re.IGNORECASE)
_SECRET = re.compile(
    r"(?<=://)[^/@\s]+(?=@)|(?<=bearer )\S+|(?<=key[=:])\s*\S+|(?<=token[=:])\s*\S+|(?<=secret[=:])\s*\S+"
    r"|(?<=password[=:])\s*\S+|\b(?:sk|pk|rk|xai|gsk|ghp|hf)[-_][\w*-]{8,}|\b(?=\w*\d)(?=\w*[A-Za-z])\w{20,}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    reason: str
    """In a sentence, with nothing in it that must stay secret."""
    retries: int = 1
    """How often asking again may help."""
    short: bool = False
    """Whether asking for less may help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    count: Callable[[str], int]
    room: int
    """Tokens that a summary may have, a little more forgiven."""
    weight: int
    """Tokens of all that it is to stand for."""
    nonce: str
    """Which no summary has a reason to contain."""

    def judge(self, answer: SummaryAnswer, instructions: str) -> str | Fault:
        """The summary, or what is wrong with it."""
        text = _bare(answer.text or "")
        if answer.refused or (len(text) <= _SHORT and _REFUSAL.match(text)):
            return Fault(reason="the model refused")
        if not answer.complete:
            return Fault(reason="the answer ended before it was whole", retries=2, short=True)
        return self._of_kind(text, instructions) or self._of_size(text) or text

    def _of_kind(self, text: str, instructions: str) -> Fault | None:
        if _is_empty(text):
            return Fault(reason="the answer was empty")
        if _CALL.match(text) or _is_json(text):
            return Fault(reason="the answer was a call or JSON and no prose")
        if self.nonce in text or any(line in text for line in instructions.split("\n") if len(line) > _LINE):
            return Fault(reason="the answer repeated what was asked")
        return None

    def _of_size(self, text: str) -> Fault | None:
        size = self.count(text)
        if size > _MUCH * self.room:
            reason = f"the answer has {size:,} tokens where {self.room:,} would do"
            return Fault(reason=reason, retries=2, short=True)
        if size >= self.weight:
            return Fault(reason="the answer is no shorter than what it was to stand for", retries=2, short=True)
        return None


def failure(error: Exception) -> str:
    """What went wrong, in a sentence; what looks like a secret is left out."""
    said = line_of(_SECRET.sub("…", str(error)[: 4 * _REASON]), _REASON)
    return f"the model that summarises failed: {said or type(error).__name__}"


def _bare(text: str) -> str:
    """Without what some models put around an answer."""
    text = readable(text).strip()
    thought = _THOUGHT.match(text)
    text = text[thought.end() :].strip() if thought else text
    wrapped = _WRAPPED.fullmatch(text)
    return (wrapped[1] or wrapped[3] or "").strip() if wrapped and not _CALL.match(text) else text


def _is_empty(text: str) -> bool:
    """Headings with nothing under them are nothing, too."""
    return all(
        _NOTHING.fullmatch(line)
        for items in read_sections(text).values()
        for item in items
        for line in item.split("\n")
    )


def _is_json(text: str) -> bool:
    if not text.startswith(("{", "[")):
        return False
    try:
        return isinstance(loads(text), dict | list)
    except (ValueError, RecursionError):
        return False
