"""How is a number or a reason said to a person?

One way for every verb. Nothing is printed here.
"""

__all__ = ["NO_SERVERS", "how_many", "without_name"]

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
