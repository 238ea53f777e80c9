import json
import re

import pytest

from ullage.cli import main

pytestmark = pytest.mark.requirement("S3:models")


def test_the_table_has_a_line_for_every_model(capsys: pytest.CaptureFixture[str]):
    assert main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["model", "provider"]
    assert len(lines) > 300
    assert any(re.match(r"gpt-4o +openai +128,000 +16,384 +o200k_base", line) for line in lines)


def test_a_card_says_where_each_figure_comes_from(capsys: pytest.CaptureFixture[str]):
    assert main(["models", "anthropic/claude-3.5-sonnet"]) == 0
    out = capsys.readouterr().out
    assert "you wrote `anthropic/claude-3.5-sonnet`" in out
    assert re.search(r"window +200,000 tokens +\S+", out)
    assert re.search(r"price +USD per million tokens: 3 in, 15 out", out)


def test_json_has_the_card_and_its_price(capsys: pytest.CaptureFixture[str]):
    assert main(["models", "gpt-4o", "--json"]) == 0
    card = json.loads(capsys.readouterr().out)
    assert (card["id"], card["window"], card["tokenizer"]) == ("gpt-4o", 128_000, "o200k_base")
    assert card["price"]["input"] == "0.0000025"
    assert card["sources"]["window"]["name"]


def test_an_unknown_price_is_null(capsys: pytest.CaptureFixture[str]):
    assert main(["models", "allam-2-7b", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["price"] is None


def test_an_unknown_model_is_an_error_with_the_nearest(capsys: pytest.CaptureFixture[str]):
    assert main(["models", "gpt4o"]) == 2
    assert "`gpt-4o`" in capsys.readouterr().err
