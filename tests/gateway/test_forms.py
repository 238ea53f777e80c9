import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from ullage.gateway.find.tool_forms import Forms, FormsKept, forms_of
from ullage.tool import JsonObject, Tool

pytestmark = pytest.mark.requirement("S1:budget")

PAINT = Tool(
    name="house__paint",
    title="Paint",
    description="Paints a wall. Twice, if asked.",
    input_schema={
        "type": "object",
        "title": "PaintArguments",
        "properties": {"colour": {"type": "string", "title": "Colour"}, "coats": {"type": "integer"}},
        "required": ["colour"],
    },
    output_schema={"type": "object"},
)


@dataclass(slots=True)
class FakeCache:
    kept: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    asked: list[str] = field(default_factory=list[str])

    def load(self, hashes: Iterable[str]) -> Mapping[str, JsonObject]:
        wanted = list(hashes)
        self.asked += wanted
        return {key: self.kept[key] for key in wanted if key in self.kept}

    def save(self, forms: Mapping[str, JsonObject]) -> None:
        self.kept.update(forms)


def test_a_tool_is_said_at_four_lengths_each_as_json():
    forms = forms_of(PAINT)
    said: Any = json.loads(forms.definition)
    assert list(said) == ["name", "description", "inputSchema"]
    assert said["inputSchema"]["properties"] == {"colour": {"type": "string"}, "coats": {"type": "integer"}}
    assert json.loads(forms.signature) == "house__paint(colour: string, coats?: integer) — Paints a wall"
    assert json.loads(forms.line) == "house__paint — Paints a wall"
    assert json.loads(forms.name) == "house__paint"


def test_a_title_stands_for_a_description_that_is_missing():
    forms = forms_of(Tool(name="p", title="Paint a wall", input_schema={"type": "object"}))
    assert json.loads(forms.definition)["description"] == "Paint a wall"


def test_forms_are_made_once_and_forgotten_when_no_longer_offered():
    kept = FormsKept()
    kept.make({"one": PAINT})
    made = kept.get("one")
    kept.make({"one": PAINT})
    assert made == forms_of(PAINT)
    assert kept.get("one") is made
    kept.keep_only(["two"])
    assert kept.get("one") is None


def test_forms_wait_in_a_cache_for_the_next_start():
    cache = FakeCache()
    FormsKept(cache).make({"one": PAINT})
    later = FormsKept(cache)
    later.make({"one": Tool(name="never looked at", input_schema={})})
    assert later.get("one") == forms_of(PAINT)


def test_what_another_version_left_in_the_cache_is_made_anew():
    cache = FakeCache({"one": {"definition": "{}"}, "two": {"line": 3}, "three": {"else": "x"}})
    kept = FormsKept(cache)
    kept.make(dict.fromkeys(("one", "two", "three"), PAINT))
    assert {kept.get(key) for key in ("one", "two", "three")} == {forms_of(PAINT)}
    assert isinstance(kept.get("one"), Forms)
