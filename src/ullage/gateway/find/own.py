"""Which of our own tools are listed, and may they be called?

The user's rules for Ullage's own tools hold for finding and calling as well: what is denied is neither listed nor
answered, what is hidden is answered only. What the tools do is not known here.
"""

from ullage.tool import Tool, ToolSource

from ..merge.view import Entry, Member
from .settings import FindSettings
from .tools import CALL_WRITE, find_tools

__all__ = ["listed_own", "own_entry"]

_SERVER = "ullage"


def listed_own(settings: FindSettings) -> tuple[Tool, ...]:
    rules = settings.own
    return tuple(
        tool
        for tool in find_tools(join_calls=settings.join_calls)
        if rules.access(tool.name) != "deny" and not rules.is_hidden(tool.name)
    )


def own_entry(name: str, source: ToolSource, settings: FindSettings) -> Entry:
    """One of our own tools with the rules for it, as if it were a server's."""
    tools = {tool.name: tool for tool in (CALL_WRITE, *find_tools(join_calls=settings.join_calls))}
    member = Member(name=_SERVER, source=source, prefix="", rules=settings.own, own=True)
    return Entry(listed=name, tool=tools[name], member=member, original=name)
