import pytest

from ullage.gateway import Rules

pytestmark = pytest.mark.requirement("U:access")


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (Rules(), "allow allow allow"),
        (Rules(only=("a", "b")), "allow allow deny"),
        (Rules(only=()), "deny deny deny"),
        (Rules(only=("a",), allow=("*",)), "allow deny deny"),
        (Rules(only=("a", "b"), ask=("a",), deny=("b",)), "ask deny deny"),
        (Rules(allow=("*",), under=Rules(ask=("a",), deny=("b",))), "ask deny allow"),
        (Rules(ask=("*",), under=Rules(allow=("a",), deny=("b",))), "ask deny ask"),
        (Rules(deny=("a",), under=Rules(allow=("*",))), "deny allow allow"),
    ],
)
@pytest.mark.requirement("U:access")
def test_the_strictest_rule_decides(rules: Rules, expected: str):
    assert " ".join(rules.access(tool) for tool in ("a", "b", "c")) == expected


def test_a_denial_names_its_pattern_where_there_is_one():
    assert Rules(deny=("x", "b*")).denied_by("big") == "b*"
    assert Rules(allow=("*",), under=Rules(deny=("b*",))).denied_by("big") == "b*"
    assert Rules(only=("a",)).denied_by("big") is None
    assert Rules(deny=("b",), allow=("b",)).denied_by("b") is None
