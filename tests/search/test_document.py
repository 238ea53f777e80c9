import pytest

from ullage.search import document_of
from ullage.tool import JsonObject, Tool

pytestmark = pytest.mark.requirement("S1:hybrid")


def _names(schema: JsonObject) -> tuple[str, ...]:
    return document_of(Tool(name="t", input_schema=schema)).parameter_names


def test_parameters_are_read_with_their_descriptions():
    schema: JsonObject = {
        "properties": {"city": {"type": "string", "description": "Where"}, "days": {"type": "integer"}}
    }
    document = document_of(Tool(name="forecast", input_schema=schema, title="Forecast"), server="sky")
    assert (document.id, document.server, document.title) == ("forecast", "sky", "Forecast")
    assert document.parameter_names == ("city", "days")
    assert document.parameter_descriptions == ("Where",)


def test_parameters_inside_objects_and_lists_are_read():
    inner: JsonObject = {"type": "object", "properties": {"street": {}}}
    assert _names({"properties": {"home": dict(inner)}}) == ("home", "street")
    assert _names({"properties": {"homes": {"type": "array", "items": dict(inner)}}}) == ("homes", "street")


def test_a_broken_schema_is_not_searched_and_does_no_harm():
    assert _names({"properties": ["city"]}) == ()
    assert _names({"properties": {"city": None, "days": {"description": 7, "items": [1]}}}) == ("city", "days")


def test_a_schema_is_read_to_a_bounded_depth_and_length():
    deep: JsonObject = {}
    for _ in range(500):
        deep = {"properties": {"a": dict(deep)}}
    assert len(_names(deep)) < 10
    assert len(_names({"properties": {f"p{number}": {} for number in range(5_000)}})) <= 200
