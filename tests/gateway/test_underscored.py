import pytest

from ullage.app import meter
from ullage.gateway import Underscored
from ullage.testing import FakeSource, check_source
from ullage.tokens import CountSource
from ullage.tool import Call, Reply, Tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("U:own")]

OWN = ("count-tokens", "delegate.run")
SCHEMA = {"type": "object"}


async def _who(call: Call) -> Reply:
    return Reply.text(call.tool)


def offering(*names: str) -> FakeSource:
    tools = tuple(Tool(name=name, description="a tool", input_schema=SCHEMA) for name in names)
    return FakeSource(offered=tools, answer=_who)


async def listed(*names: str) -> list[str]:
    source = Underscored(inner=offering(*names), own=OWN)
    return [tool.name for tool in (await source.tools()).tools]


@pytest.mark.requirement("U:own")
async def test_our_own_names_lose_dots_and_hyphens_and_others_keep_them():
    assert await listed("count-tokens", "delegate.run", "far-off__look.up") == [
        "count_tokens",
        "delegate_run",
        "far-off__look.up",
    ]


async def test_a_name_that_another_tool_has_is_left_to_it():
    assert await listed("count-tokens", "count_tokens") == ["count-tokens", "count_tokens"]


async def test_it_is_a_source_as_good_as_the_one_within():
    inner = CountSource(meter())
    source = Underscored(inner=inner, own=OWN)
    reply = await check_source(source, Call(tool="count_tokens", arguments={"text": "Hello, world!"}))
    assert '"token_count":4' in str(reply.content[0]["text"])
    (tool,) = (await source.tools()).tools
    assert "count-tokens" in tool.aliases
    assert (await source.tools()).revision != (await inner.tools()).revision
