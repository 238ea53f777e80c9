from typing import Any, cast

import pytest

from ullage.app import meter
from ullage.gateway import definition_text
from ullage.sql import DIALECTS, LISTED_NAMES, ORIGINAL_NAMES, Dialect, tools_of

pytestmark = pytest.mark.requirement("S0:sql:schema")


@pytest.mark.parametrize("dialect", list(DIALECTS))
def test_definitions_are_short_and_name_the_dialect(dialect: Dialect):
    tools = {tool.name: tool for tool in tools_of(dialect, "A shop: customers, products, orders.")}
    weights = {name: meter().count(definition_text(tool), "gpt-4o").tokens for name, tool in tools.items()}
    assert sum(weights[name] for name in LISTED_NAMES) <= 180
    assert sum(weights[name] for name in ("query", "schema", "table", "explain")) <= 350
    assert DIALECTS[dialect] in (tools["query"].description or "")
    assert "A shop: customers, products, orders." in (tools["query"].description or "")


def test_no_tool_writes():
    assert all(tool.annotations["readOnlyHint"] is True for tool in tools_of("sqlite", None))


@pytest.mark.requirement("S0:sql:schema")
def test_the_originals_names_are_tools_with_its_arguments():
    tools = {tool.name: tool.input_schema for tool in tools_of("sqlite", " ")}
    assert list(tools) == ["query", "schema", "table", "explain", *ORIGINAL_NAMES]
    arguments = {name: list(cast("Any", tools[name]["properties"])) for name in ORIGINAL_NAMES}
    assert arguments == {
        "secureDatabaseQuery": ["queryDescription", "maxRows"],
        "getSchemaStructure": ["databaseName"],
        "getTableDetails": ["tableName"],
        "listTriggers": ["tableName"],
    }
    assert tools["query"]["required"] == ["sql"]
    assert "required" not in tools["schema"]
