"""What does one `ullage count` of a small file cost, beside importing the MCP SDK?

Run by `make bench-start`. CPU seconds of whole processes, the least of several, less those of an empty interpreter.
Prints a table and one line of figures; fails where counting costs more than the import.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 7
MODELS = ("gpt-4", "gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro")


def seconds(*command: str) -> float:
    return min(_once(command) for _ in range(ROUNDS))


def _once(command: tuple[str, ...]) -> float:
    before = os.times()
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "small.txt"
        file.write_text("A small file, of which someone wants to know the tokens.\n" * 20, encoding="utf-8")
        empty = seconds("-c", "pass")
        sdk = seconds("-c", "import mcp") - empty
        counts = {model: seconds("-m", "ullage", "count", str(file), "-m", model) - empty for model in MODELS}
    print(f"{'import mcp':28}{sdk:8.3f} s")
    for model, spent in counts.items():
        print(f"{'ullage count -m ' + model:28}{spent:8.3f} s  {spent / sdk:6.2f} of the import")
    print(json.dumps({"import mcp": round(sdk, 3), **{name: round(spent / sdk, 2) for name, spent in counts.items()}}))
    return 1 if max(counts.values()) > sdk else 0


if __name__ == "__main__":
    sys.exit(main())
