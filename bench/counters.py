"""How does each library count, and how long does it take?

A worker: run by `count.py` in a fresh process for each library and vocabulary, so that no one finds pieces in a cache
that it filled before. Reads the texts, counts each once, then all again, and answers with one line of JSON.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Count = Callable[[str], int]
MODELS = {"o200k_base": "gpt-4o", "cl100k_base": "gpt-4"}
REPEATS = 5


def ullage(vocabulary: str, ranks: Path) -> Count:
    """The meter with the engine loaded."""
    from ullage.models import shipped
    from ullage.tokens import Meter, default_engine

    del ranks
    meter, model = Meter(shipped(), engine=default_engine(begins_short=False)), MODELS[vocabulary]
    return lambda text: meter.count(text, model).tokens


def tiktoken(vocabulary: str, ranks: Path) -> Count:
    import tiktoken
    import tiktoken.load
    import tiktoken_ext.openai_public as public

    loaded: dict[bytes, int] = tiktoken.load.load_tiktoken_bpe(str(ranks))
    public.load_tiktoken_bpe = lambda *_arguments, **_hash: loaded  # pyright: ignore[reportAttributeAccessIssue]
    encoding = tiktoken.Encoding(**getattr(public, vocabulary)())
    return lambda text: len(encoding.encode_ordinary(text))


def gigatoken(vocabulary: str, ranks: Path) -> Count:
    from gigatoken import Tokenizer  # pyright: ignore[reportMissingImports]

    del vocabulary
    tokenizer: Any = Tokenizer.from_tiktoken(str(ranks))
    return lambda text: len(tokenizer.encode(text))


def rs_bpe(vocabulary: str, ranks: Path) -> Count:
    from rs_bpe.bpe import openai  # pyright: ignore[reportMissingImports]

    del ranks
    return getattr(openai, vocabulary)().count


def litellm(vocabulary: str, ranks: Path) -> Count:
    from litellm import token_counter  # pyright: ignore[reportMissingImports]

    del ranks
    model = MODELS[vocabulary]
    return lambda text: token_counter(model=model, text=text)


def seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def main() -> None:
    library, vocabulary, texts, ranks = sys.argv[1:]
    count: Count = globals()[library](vocabulary, Path(ranks))
    count("xqzptlk")
    answer: dict[str, Any] = {}
    for kind, parts in json.loads(Path(texts).read_text("utf-8")).items():
        counts: list[int] = []
        first = seconds(lambda parts=parts, counts=counts: counts.extend(map(count, parts)))
        again = min(seconds(lambda parts=parts: [count(text) for text in parts]) for _ in range(REPEATS))
        answer[kind] = {"first": first, "again": again, "counts": counts}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
