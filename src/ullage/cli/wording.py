"""How is a number or a reason said to a person?

One way for every verb. Nothing is printed here.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ullage.config import Loaded

__all__ = ["NO_SERVERS", "how_many", "waiting_or", "without_name"]

NO_SERVERS = """\
No servers stand behind Ullage yet. Put those of another program there with, for example,
  --include ~/.cursor/mcp.json
or name your own in an ullage.toml:
  [servers.github]
  command = "npx"
  args = ["-y", "@modelcontextprotocol/server-github"]"""


def how_many(number: int, thing: str) -> str:
    """`1 tool`, `1,200 tools`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def without_name(reason: str, server: str) -> str:
    """A reason that stands beside the server's name and need not repeat it."""
    return reason.removeprefix(f"server `{server}` ").removeprefix(f"`{server}` ")


def waiting_or(loaded: "Loaded", otherwise: str) -> str:
    """What to do where nothing stands behind Ullage: approve what waits for that, or else as given."""
    if not loaded.pending:
        return otherwise
    from ullage.config import approve_command  # not every verb reads the settings

    commands = "\n".join(f"  {approve_command(one.path)}" for one in loaded.pending)
    return (
        f"No servers are in use: project files wait for your approval. `ullage trust` shows them; then run\n{commands}"
    )
