"""What does importing cost a process that starts?

CPU seconds of whole fresh interpreters, in turns, the least of several, less those of one that imports less.
"""

import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence

from delegate_peers import python_of

ROUNDS = 9
SDK = "import mcp"
OURS = "import mcp, ullage.delegate"
PEERS = {"litellm": "import litellm", "pydantic-ai": "import pydantic_ai", "sdks": "import openai, anthropic"}


def measure(peers: Sequence[str]) -> dict[str, float]:
    """Seconds over an empty interpreter's; ours over the MCP SDK's too."""
    commands = {"nothing": (sys.executable, "pass"), "mcp": (sys.executable, SDK), "ours": (sys.executable, OURS)}
    commands |= {name: (str(python_of(name)), PEERS[name]) for name in peers}
    least = _least(commands)
    found = {PEERS[name]: least[name] - least["nothing"] for name in peers}
    return {
        SDK: least["mcp"] - least["nothing"],
        "ullage.delegate, over it": least["ours"] - least["mcp"],
        **found,
    }


def _least(commands: Mapping[str, tuple[str, str]]) -> dict[str, float]:
    least = dict.fromkeys(commands, float("inf"))
    for _ in range(ROUNDS):
        for name, (python, code) in commands.items():
            least[name] = min(least[name], _once(python, code))
    return least


def _once(python: str, code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([python, "-c", code], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
