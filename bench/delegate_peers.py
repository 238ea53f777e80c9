"""Where do the peers of delegating live, and what they are measured against?

Each in an environment of its own under `.bench/`, made on first use; one that cannot be installed is left out and said
to be. A peer is the newest that can be installed; the provider that fails on purpose is one known version.
"""

import subprocess
import sys
from pathlib import Path

from environment import ROOT

PACKAGES = {
    "llmock": ("llmock==0.2.2",),
    "litellm": ("litellm",),
    "pydantic-ai": ("pydantic-ai-slim[openai,anthropic]",),
    "sdks": ("openai", "anthropic"),
    "langchain": ("langchain",),
    "pydantic-ai-harness": ("pydantic-ai-harness",),
}


def python_of(name: str) -> Path:
    return ROOT / ".bench" / name / "bin" / "python"


def install(name: str) -> str | None:
    """What is there, after installing what was not: `openai 3.49.0`; None where it cannot be installed."""
    python = python_of(name)
    if not python.exists():
        print(f"making the environment of {name} in {python.parents[1].relative_to(ROOT)} …", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
    return _versions(name) or _installed(name)


def _installed(name: str) -> str | None:
    command = [str(python_of(name)), "-m", "pip", "install", "--quiet", *PACKAGES[name]]
    subprocess.run(command, capture_output=True, check=False)
    return _versions(name)


def _versions(name: str) -> str | None:
    packages = [package.partition("[")[0].partition("==")[0] for package in PACKAGES[name]]
    question = f"import importlib.metadata as m; print(*(f'{{p}} {{m.version(p)}}' for p in {packages!r}), sep=', ')"
    done = subprocess.run([str(python_of(name)), "-c", question], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def present(names: tuple[str, ...], *, wanted: bool) -> list[str]:
    """Those that are there, after saying which they are."""
    if not wanted:
        print("the peers are left out, as asked")
        return []
    found = list[str]()
    for name in names:
        versions = install(name)
        print(versions or f"{name} cannot be installed here and is left out")
        found += [name] if versions else []
    return found
