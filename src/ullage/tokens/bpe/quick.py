"""How is much text counted faster than splintr counts it?

With fastokens, over the ranks of OpenAI's vocabularies that the package carries: two to three times splintr's speed at
first sight, and without holding the interpreter's lock. But to make it ready takes a second of CPU and a hundred
megabytes, so `gears` say when. Fastokens is imported here and nowhere else.
"""

from binascii import b2a_base64
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from .fallback import CARRIED, read_tokens
from .vocabulary import Vocabulary

__all__ = ["as_published", "has_quick", "load_quick"]


def has_quick(vocabulary: Vocabulary) -> bool:
    """Whether there is a quicker way for this vocabulary. Fastokens has no wheel for some machines."""
    return vocabulary.name in CARRIED and find_spec("fastokens") is not None


def load_quick(vocabulary: Vocabulary) -> Callable[[str], int]:
    """Counts like splintr; a lone surrogate fails as it does there."""
    from fastokens import Tokenizer  # pyright: ignore[reportMissingTypeStubs]

    with TemporaryDirectory(prefix="ullage-") as folder:  # it reads nothing but files
        path = Path(folder, vocabulary.name)
        path.write_bytes(as_published(read_tokens(vocabulary.name)))
        tokenizer = Tokenizer.from_tiktoken(str(path), encoding=vocabulary.name)
    # Tables are built at the first text. Of all its calls, only this one lets others run meanwhile.
    tokenizer.encode_batch(["ready"])
    encode = tokenizer.encode_ordinary
    return lambda text: len(encode(text))


def as_published(tokens: Sequence[bytes]) -> bytes:
    """The tokens as OpenAI publishes them: each in base64, with its rank, on a line."""
    return b"".join(b"%s %d\n" % (b2a_base64(token, newline=False), rank) for rank, token in enumerate(tokens))
