from collections.abc import Callable

import pytest

from ullage.gateway.find.find_reply import About, Candidates
from ullage.gateway.find.tool_forms import Forms
from ullage.tokens import Count

pytestmark = pytest.mark.requirement("S1:find")

FORMS = Forms(definition='{"name":"mend"}', signature='"mend(pipe)"', line='"mend — Mends."', name='"mend"')


@pytest.fixture
def weighed() -> list[str]:
    return []


def scale(weighed: list[str], tokens: int) -> Callable[[str], Count]:
    def weigh(text: str) -> Count:
        weighed.append(text)
        return Count.exact(tokens)

    return weigh


def test_a_tool_that_is_found_again_is_not_weighed_again(weighed: list[str]):
    known = Candidates().of_model("gpt-4o", 100)
    first = known(FORMS, About(), scale(weighed, 3))
    assert weighed
    weighed.clear()
    assert known(FORMS, About(), scale(weighed, 3)) is first
    assert weighed == []


def test_another_model_another_door_and_another_catalogue_are_weighed_apart(weighed: list[str]):
    candidates = Candidates()
    first = candidates.of_model("gpt-4o", 100)(FORMS, About(), scale(weighed, 3))
    other = candidates.of_model("claude", 100)(FORMS, About(), scale(weighed, 5))
    assert (first.name.cost, other.name.cost) == (3, 5)
    writing = candidates.of_model("gpt-4o", 100)(FORMS, About(writes=True), scale(weighed, 3))
    assert writing.line.text != first.line.text
    small = candidates.of_model("gpt-4o", 2)(FORMS, About(writes=True), scale(weighed, 3))
    assert small.definition.text == FORMS.definition != writing.definition.text


def test_no_more_are_remembered_than_are_bounded(weighed: list[str]):
    known = Candidates(most=2).of_model("gpt-4o", 100)
    tools = [Forms(definition="{}", signature='""', line='""', name=f'"{number}"') for number in range(3)]
    first, *_ = [known(forms, About(), scale(weighed, 1)) for forms in tools]
    assert known(tools[0], About(), scale(weighed, 1)) == first
    assert known(tools[0], About(), scale(weighed, 1)) is not first
