import pytest

from ullage.config import Search
from ullage.config.loader import restrict_to_installed


def test_an_encoder_that_is_not_installed_gives_way_to_the_table_and_that_is_said():
    search, (issue,) = restrict_to_installed(
        Search(index="encoder", learn=False), ("onnxruntime", "ullage_encoder"), "/me/x.toml"
    )
    assert search == Search(index="static", learn=False)
    assert (issue.severity, issue.key) == ("problem", "search.index")
    assert issue.sentence() == (
        "/me/x.toml: `search.index` is `encoder`, and `onnxruntime` and `ullage_encoder` are not installed: tools are "
        "ranked by the table that comes with Ullage (pip install 'ullage[encoder]')"
    )


@pytest.mark.parametrize(
    ("search", "lacking"),
    [
        (Search(index="encoder"), ()),
        (Search(index="static"), ("onnxruntime",)),
        (Search(index="words"), ("onnxruntime",)),
    ],
)
def test_what_can_be_had_is_as_it_was_wanted(search: Search, lacking: tuple[str, ...]):
    assert restrict_to_installed(search, lacking, "x") == (search, ())
