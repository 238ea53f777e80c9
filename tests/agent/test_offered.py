import pytest

from ullage.agent.function_tools import Offered
from ullage.errors import SourceFailed, UnknownTool
from ullage.testing import FakeSource
from ullage.tool import Call, Listing, Reply, Tool, ToolSource

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S2:formats")]


def tool(name: str, *aliases: str) -> Tool:
    return Tool(name=name, input_schema={"type": "object"}, description=f"What {name} does.", aliases=aliases)


async def test_a_tool_is_shown_under_a_name_that_providers_take_and_called_by_its_own():
    source = FakeSource(offered=(tool("delegate.run"),))
    offering = await Offered((source,)).now()
    (shown,) = offering.definitions
    assert (shown.name, shown.description) == ("delegate_run", "What delegate.run does.")
    await offering.call(Call(tool="delegate_run"))
    assert [call.tool for call in source.calls] == ["delegate.run"]
    assert offering.name_of("delegate_run") == "delegate.run"
    assert offering.name_of("nobody") == "nobody"


async def test_a_tool_answers_to_its_own_name_and_its_aliases_too():
    source = FakeSource(offered=(tool("delegate.run", "ask"),))
    offering = await Offered((source,)).now()
    for name in ("delegate.run", "ask"):
        await offering.call(Call(tool=name))
    assert [call.tool for call in source.calls] == ["delegate.run", "delegate.run"]


async def test_tools_of_one_name_go_to_the_source_that_each_came_from():
    mine, theirs = FakeSource(offered=(tool("recall"),)), FakeSource(offered=(tool("recall"),))
    offering = await Offered((mine, theirs)).now()
    first, second = (shown.name for shown in offering.definitions)
    await offering.call(Call(tool=second))
    assert (len(mine.calls), len(theirs.calls)) == (0, 1)
    await offering.call(Call(tool=first))
    assert len(mine.calls) == 1


async def test_a_tool_that_nobody_has_is_refused_with_those_there_are():
    offering = await Offered((FakeSource(offered=(tool("read"),)),)).now()
    with pytest.raises(UnknownTool) as refused:
        await offering.call(Call(tool="write"))
    assert refused.value.options == ("read",)


async def test_definitions_stay_the_same_objects_until_a_source_changes():
    source = FakeSource(offered=(tool("read"),))
    offered = Offered((source,))
    before = await offered.now()
    assert await offered.now() is before
    source.offered = (tool("read"), tool("write"))
    assert [shown.name for shown in (await offered.now()).definitions] == ["read", "write"]


class Failing(ToolSource):
    def __init__(self) -> None:
        self.is_down = False

    async def tools(self) -> Listing:
        if self.is_down:
            raise SourceFailed("gone")
        return Listing((tool("read"),), revision="1")

    async def call(self, call: Call) -> Reply:
        return Reply.text("read")


async def test_what_was_offered_stands_while_a_source_cannot_say_what_it_has():
    source = Failing()
    offered = Offered((source,))
    before = await offered.now()
    source.is_down = True
    assert await offered.now() is before
    with pytest.raises(SourceFailed):
        await Offered((source,)).now()
