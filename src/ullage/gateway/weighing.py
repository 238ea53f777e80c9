"""What does a reply weigh to the model that reads it?

The sum of what is shown of it, counted by the one meter in steps: texts by the model's tokenizer, images and sounds by
the rule of its maker. What is shown, `shown` knows; what follows from the weight, whoever asks.
"""

from ullage.messages import Format, Media, Message, Request
from ullage.tokens import ZERO, Count, Meter, Method, Steps
from ullage.tool import Reply

from .shown import shown

__all__ = ["weighed"]

_STRIDE = 4_096
"""Characters counted before others are let in; each block is taken for 64 more than it has."""


def weighed(reply: Reply, meter: Meter, model: str) -> Steps[Count]:
    counted, stride = ZERO, 0
    for part in shown(reply):
        if isinstance(part, Media):
            counted += _media(part, meter, model)
            stride += _STRIDE
        else:
            text = part if isinstance(part, str) else (yield from part.text())
            counted += yield from meter.steps(text, model)
            stride += len(text) + 64
        if stride > _STRIDE:
            stride = 0
            yield
    return counted


def _media(media: Media, meter: Meter, model: str) -> Count:
    """An image or a sound, by the rule of the model's maker, less what the message around it weighs."""
    with_media, without = (
        meter.weigh(Request(format=Format.OPENAI_CHAT, model=model, messages=(Message(role="user", parts=parts),)))
        for parts in ((media,), ())
    )
    whole, frame = with_media.messages[0], without.messages[0].tokens
    return Count(
        tokens=max(0, whole.tokens - frame),
        method=max(whole.method, Method.CALIBRATED, key=list(Method).index),
        low=max(0, whole.low - frame),
        high=max(0, whole.high - frame),
    )
