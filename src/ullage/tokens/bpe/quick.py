"""How is much text counted faster than splintr counts it?

With fastokens, over the ranks of OpenAI's vocabularies that the package carries: two to three times splintr's speed at
first sight. But to make it ready takes a second of CPU and two hundred megabytes, and 32 more for each thread that
counts, so `gears` say when. Fastokens is imported here and nowhere else.

It is given short texts only. From 32 KB on it lets go of the interpreter's lock, and a process that ends meanwhile is
aborted; from 64 KB on, and for a batch, it keeps threads of its own: without any to be had it panics, and a child
forked after that may wait for ever.
"""

from binascii import b2a_base64
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from .fallback import CARRIED, read_tokens
from .room import has_room
from .vocabulary import Vocabulary

__all__ = ["SHORT", "as_published", "has_quick", "is_short", "load_quick"]

SHORT = 8_000
"""Characters that are never 32 KB, whatever they are, and that any vocabulary takes in one call."""
_ROOM = 1 << 30
"""Bytes that must be left before it is made: more than it takes, for the threads to come and for everybody else."""


def has_quick(vocabulary: Vocabulary) -> bool:
    """Whether there is a quicker way for this vocabulary. Fastokens has no wheel for some machines."""
    return vocabulary.name in CARRIED and find_spec("fastokens") is not None


def load_quick(vocabulary: Vocabulary, long: Callable[[str], int]) -> Callable[[str], int]:
    """Counts like splintr; a lone surrogate fails as it does there. What fastokens must not be given, `long` counts."""
    from fastokens import Tokenizer  # pyright: ignore[reportMissingTypeStubs]

    if not has_room(_ROOM):
        raise MemoryError("the quicker engine is for machines with more memory")  # refused to it, it ends the process
    folder = mkdtemp(prefix="ullage-")  # it reads nothing but files
    try:  # a child forked meanwhile would remove a TemporaryDirectory when it ends
        path = Path(folder, vocabulary.name)
        path.write_bytes(as_published(read_tokens(vocabulary.name)))
        tokenizer = Tokenizer.from_tiktoken(str(path), encoding=vocabulary.name)
    finally:
        rmtree(folder, ignore_errors=True)
    encode = tokenizer.encode_ordinary
    # Tables are built at the first text: one of a length that lets others run meanwhile, and starts no threads.
    encode(" " * 40_000)
    return lambda text: len(encode(text)) if is_short(text) else long(text)


def is_short(text: str) -> bool:
    """Whether fastokens may be given it."""
    return len(text) <= SHORT or (len(text) <= 4 * SHORT and text.isascii())


def as_published(tokens: Sequence[bytes]) -> bytes:
    """The tokens as OpenAI publishes them: each in base64, with its rank, on a line."""
    return b"".join(b"%s %d\n" % (b2a_base64(token, newline=False), rank) for rank, token in enumerate(tokens))
