"""Where do the peers of a benchmark live?

In `.bench/peers`, an environment of their own, made on first use; a package without a wheel for this Python is left out
and said to be. Vocabularies are those the package carries, so nothing but packages is fetched.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ullage.tokens.bpe.python_bpe import format_published, read_tokens

ROOT = Path(__file__).parent.parent
PEERS = ROOT / ".bench" / "peers"
SCRATCH = ROOT / ".bench" / "scratch"
PINNED = {"tiktoken": "0.14.0", "gigatoken": "0.10.0", "rs-bpe": "0.1.0", "litellm": "1.100.5"}


def python_of(library: str) -> str:
    return sys.executable if library.startswith("ullage") else str(PEERS / "bin" / "python")


def make_peers(names: Sequence[str]) -> list[str]:
    """Those of the peers that are there, after installing what is missing."""
    if not PEERS.exists():
        print(f"making the environment of the peers in {PEERS.relative_to(ROOT)} …", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
    return [name for name in names if _is_installed(name) or _install(name)]


def _is_installed(name: str) -> bool:
    question = f"import importlib.metadata as m; m.version({name!r})"
    return subprocess.run([python_of("peer"), "-c", question], capture_output=True, check=False).returncode == 0


def _install(name: str) -> bool:
    print(f"installing {name} {PINNED[name]} …", file=sys.stderr)
    command = [python_of("peer"), "-m", "pip", "install", "--quiet", f"{name}=={PINNED[name]}"]
    done = subprocess.run(command, capture_output=True, check=False).returncode == 0
    if not done:
        print(f"{name} {PINNED[name]} cannot be installed here and is left out", file=sys.stderr)
    return done


def write_ranks(vocabulary: str) -> Path:
    """The vocabulary as the file OpenAI publishes, made of what the package carries: nothing is fetched."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    path = SCRATCH / f"{vocabulary}.tiktoken"
    path.write_bytes(format_published(read_tokens(vocabulary)))
    return path
