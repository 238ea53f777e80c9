"""What the engine is held to: tiktoken, fed with the ranks the package carries so that nothing is fetched."""

import pytest
import splintr
import tiktoken

from ullage.tokens.bpe.engine import BytePairEngine, default_engine
from ullage.tokens.bpe.fallback import load_python
from ullage.tokens.bpe.vocabulary import VOCABULARIES

_PATTERNS = {"o200k_base": splintr.O200K_BASE_PATTERN, "cl100k_base": splintr.CL100K_BASE_PATTERN}


@pytest.fixture(scope="session")
def engine() -> BytePairEngine:
    return default_engine()


@pytest.fixture(scope="session")
def reference() -> dict[str, tiktoken.Encoding]:
    return {
        name: tiktoken.Encoding(
            name,
            pat_str=pattern,
            mergeable_ranks=dict(load_python(VOCABULARIES[name]).ranks),
            special_tokens={"<|endoftext|>": 300_000},
        )
        for name, pattern in _PATTERNS.items()
    }
