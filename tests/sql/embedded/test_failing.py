import pytest

from ullage.sql.embedded.embedded_engine import Failed, failure, late

pytestmark = pytest.mark.requirement("S0:sql:engines")


@pytest.mark.parametrize(
    ("code", "text", "said", "suggestion"),
    [
        (None, 'DuckDB is not installed: pip install "ullage[duckdb]"', "DuckDB is not installed", "pip install"),
        (None, "there is no such file", "there is no such file", "check the path; it is taken from the folder of"),
        ("SQLITE_CORRUPT", "it is damaged", "it is damaged", "look at the file"),
    ],
)
def test_a_file_that_cannot_be_read_says_what_to_do(code: str | None, text: str, said: str, suggestion: str):
    found = failure(Failed(kind="source", code=code, text=text), name="a", seconds=1)
    assert found.message.endswith(said)
    assert found.suggestion.startswith(suggestion)


@pytest.mark.parametrize(("seconds", "shown"), [(29.8448, "29.8 s"), (30.0, "30 s"), (0.02, "0.02 s")])
def test_seconds_are_rounded(seconds: float, shown: str):
    assert late(seconds).message.endswith(f"within {shown}")
