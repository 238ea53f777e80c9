"""What does importing cost a process that starts?

CPU seconds of an import in fresh interpreters, in turns, the least of several. Ours is measured where the MCP SDK has
been imported already, since whoever serves has that.
"""

import subprocess
import sys
from collections.abc import Sequence

from delegate_peers import python_of

ROUNDS = 9
SDK = "import mcp"
OURS = "from ullage.delegate import Delegate"
PEERS = {"litellm": "import litellm", "pydantic-ai": "import pydantic_ai", "sdks": "import openai, anthropic"}
_TIMED = """
import time
{before}
started = time.process_time()
{wanted}
print(time.process_time() - started)
"""


def measure(peers: Sequence[str]) -> dict[str, float]:
    """Seconds by what is imported."""
    asked = {SDK: (sys.executable, ""), OURS: (sys.executable, SDK)}
    asked |= {PEERS[name]: (str(python_of(name)), "") for name in peers}
    least = dict.fromkeys(asked, float("inf"))
    for _ in range(ROUNDS):
        for wanted, (python, before) in asked.items():
            least[wanted] = min(least[wanted], _once(python, _TIMED.format(before=before, wanted=wanted)))
    return least


def _once(python: str, code: str) -> float:
    return float(subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.split()[-1])
