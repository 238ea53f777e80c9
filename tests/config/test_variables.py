import pytest

from ullage.config.config_file import Expanded, expand

pytestmark = pytest.mark.requirement("U:env")

ENVIRONMENT = {"TOKEN": "s3cret", "EMPTY": "", "NESTED": "${TOKEN}"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${TOKEN}", "s3cret"),
        ("a ${TOKEN} b ${env:TOKEN}", "a s3cret b s3cret"),
        ("${TOKEN:-other}", "s3cret"),
        ("${UNSET:-other}", "other"),
        ("${env:UNSET:-other}", "other"),
        ("${UNSET:-}", ""),
        ("${UNSET:-http://host:80/x}", "http://host:80/x"),
        ("${EMPTY}", ""),
        ("${EMPTY:-other}", "other"),
        ("${NESTED}", "${TOKEN}"),
        ("nothing", "nothing"),
    ],
)
def test_variables_are_replaced_once(text: str, expected: str):
    assert expand(text, ENVIRONMENT) == Expanded(expected)


@pytest.mark.parametrize(
    "text", ["$TOKEN", "$(TOKEN)", "${", "${}", "${1}", "${TOKEN%x}", "${TOKEN:+x}", "%TOKEN%", "${TÖKEN}"]
)
def test_what_is_not_a_variable_of_ours_is_left_alone(text: str):
    assert expand(text, ENVIRONMENT) == Expanded(text)


def test_an_unset_variable_is_named_and_stays():
    assert expand("x${A}${env:B}", {}) == Expanded("x${A}${env:B}", unset=("A", "B"))


def test_what_only_another_program_knows_is_named():
    assert expand("${input:api-key} ${config:x.y}", {}).foreign == ("input:api-key", "config:x.y")
