"""How are the vocabularies that the package carries made?

Writes `src/ullage/tokens/bpe/data/{o200k_base,cl100k_base}.ranks` out of the installed splintr. The source is OpenAI's:
the two files that tiktoken (MIT) fetches, `o200k_base.tiktoken` and `cl100k_base.tiktoken`. Splintr carries the same
ranks; the published file is rebuilt from them here and must have the published SHA-256, else nothing is written.

The written form is a table that is mapped into memory: see `ullage.tokens.bpe.python_bpe`.
Run it again when a vocabulary is added: `.venv/bin/python scripts/build_vocabularies.py`.
"""

import hashlib
from pathlib import Path

import splintr

from ullage.tokens.bpe.python_bpe import format_published, pack_table

DATA = Path(__file__).parent.parent / "src" / "ullage" / "tokens" / "bpe" / "data"
PUBLISHED = {
    "o200k_base": (199_998, "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"),
    "cl100k_base": (100_256, "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"),
}
"""How many ranks each has, and the SHA-256 of the file OpenAI publishes."""


def tokens_of(name: str, size: int) -> list[bytes]:
    tokenizer = splintr.Tokenizer.from_pretrained(name)
    return [tokenizer.decode_token_bytes(rank) for rank in range(size)]


def main() -> None:
    DATA.mkdir(exist_ok=True)
    for name, (size, digest) in PUBLISHED.items():
        tokens = tokens_of(name, size)
        found = hashlib.sha256(format_published(tokens)).hexdigest()
        if found != digest:
            raise SystemExit(f"{name}: the rebuilt file has SHA-256 `{found}`, the published one `{digest}`")
        target = DATA / f"{name}.ranks"
        target.write_bytes(pack_table(tokens))
        print(f"{target.name}: {size:,} tokens, {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
