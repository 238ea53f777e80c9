"""What the engine is held to: tiktoken, fed with the ranks the package carries so that nothing is fetched."""

import pytest
import splintr
import tiktoken

from ullage.tokens.bpe.engine import BytePairEngine, load_splintr
from ullage.tokens.bpe.python_bpe import read_tokens
from ullage.tokens.bpe.split import VOCABULARIES

_PATTERNS = {"o200k_base": splintr.O200K_BASE_PATTERN, "cl100k_base": splintr.CL100K_BASE_PATTERN}


@pytest.fixture(scope="session")
def engine() -> BytePairEngine:
    return BytePairEngine(load_splintr, VOCABULARIES)


@pytest.fixture(scope="session")
def reference() -> dict[str, tiktoken.Encoding]:
    return {
        name: tiktoken.Encoding(
            name,
            pat_str=pattern,
            mergeable_ranks={token: rank for rank, token in enumerate(read_tokens(name))},
            special_tokens={"<|endoftext|>": 300_000},
        )
        for name, pattern in _PATTERNS.items()
    }
