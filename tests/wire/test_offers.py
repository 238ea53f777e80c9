"""What is claimed is what there is, as far as that is known."""

from typing import Any

import pytest
from mcp import Client

from ullage.testing import FakeSource
from ullage.tool import Caller, Complete, JsonObject, Tool
from ullage.wire.serve.mcp_content import served_capabilities
from ullage.wire.serve.request_handlers import Identity, Profile
from ullage.wire.serve.sdk_server import build_server

pytestmark = pytest.mark.anyio

EVERYTHING = {"tools", "resources", "prompts", "completions", "logging"}


class Able(FakeSource):
    """Has methods for everything, as a gateway does, and says what its servers can do."""

    capabilities: JsonObject | None = None  # pyright: ignore[reportIncompatibleMethodOverride]

    async def complete(self, request: Complete) -> JsonObject:
        return {"values": []}

    async def subscribe(self, uri: str) -> None: ...

    async def unsubscribe(self, uri: str) -> None: ...

    async def set_log_level(self, level: str) -> None: ...


def able(capabilities: JsonObject | None) -> Able:
    source = Able(offered=(Tool(name="toy", input_schema={"type": "object"}),), texts={"note://a": "A note"})
    source.capabilities = capabilities
    return source


@pytest.mark.parametrize(
    ("capabilities", "claimed"),
    [
        (None, EVERYTHING),
        ({}, {"tools"}),
        ({"resources": {}}, {"tools", "resources"}),
        ({"prompts": {}, "completions": {}}, {"tools", "prompts", "completions"}),
        ({"logging": {}}, {"tools", "logging"}),
    ],
)
def test_what_no_server_has_is_not_claimed_and_what_is_not_known_is(capabilities: JsonObject | None, claimed: set[str]):
    assert set(served_capabilities(able(capabilities))) == claimed


@pytest.mark.parametrize(
    ("capabilities", "subscribes"),
    [(None, True), ({"resources": {}}, False), ({"resources": {"subscribe": True}}, True)],
)
def test_subscriptions_are_claimed_where_a_server_takes_them(capabilities: JsonObject | None, *, subscribes: bool):
    found: Any = served_capabilities(able(capabilities))
    assert found["resources"] == {"subscribe": subscribes, "listChanged": True}


def test_what_is_known_later_is_claimed_later():
    source = able(None)
    source.capabilities = {}
    assert "resources" not in served_capabilities(source)


async def test_whoever_connects_is_told_what_is_known_by_then():
    caller, source = Caller(principal="ada", session="s"), able(None)
    server = build_server(Profile(source=source, identity=Identity(name="toy", version="1")), lambda _: caller)
    source.capabilities = {}
    async with Client(server, mode="legacy") as client:
        assert client.server_capabilities.resources is None


async def test_what_is_not_claimed_is_answered_all_the_same():
    caller = Caller(principal="ada", session="s")
    server = build_server(Profile(source=able({}), identity=Identity(name="toy", version="1")), lambda _: caller)
    async with Client(server, mode="legacy") as client:
        assert client.server_capabilities.resources is None
        assert len((await client.list_resources()).resources) == 1
