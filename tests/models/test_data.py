"""The shipped table is whole: every card valid, every figure with a source, no name for two models."""

import json
from pathlib import Path

import pytest

import ullage.models
from ullage.models import shipped
from ullage.models.model_cards import fold

pytestmark = pytest.mark.requirement("S3:models")

FILE = Path(ullage.models.__file__).parent / "data" / "cards.json"
CARDS = list(shipped().cards())
TOKENIZERS = {
    "cl100k_base",
    "claude_2",
    "claude_3",
    "claude_4_7",
    "deepseek_v3",
    "gemma2",
    "gemma4",
    "glm4",
    "grok",
    "kimi_k2",
    "llama2",
    "llama3",
    "mistral_v1",
    "mistral_v2",
    "mistral_v3",
    "o200k_base",
    "o200k_harmony",
    "phi4",
    "qwen3",
    "qwen3_5",
}
ACCEPTED = {
    "audio",
    "images",
    "json_schema",
    "pdf",
    "prompt_caching",
    "reasoning",
    "temperature",
    "tools",
    "top_p",
    "video",
}


def test_no_answer_is_larger_than_the_window() -> None:
    assert [card.id for card in CARDS if card.window and (card.max_output or 0) > card.window] == []


def test_there_are_a_few_hundred_cards_of_every_great_maker() -> None:
    makers = {card.provider for card in CARDS}
    assert len(CARDS) >= 300
    assert makers >= {
        "openai",
        "anthropic",
        "google",
        "mistral",
        "deepseek",
        "qwen",
        "meta",
        "moonshot",
        "zai",
        "xai",
    }


def test_every_card_is_valid() -> None:
    for card in CARDS:
        assert card.id, card
        assert card.id == card.id.strip().lower(), card.id
        assert card.provider, card.id
        assert card.family, card.id
        assert card.window is None or 0 < card.window <= 10_000_000, card.id
        assert card.max_output is None or 0 < card.max_output <= 2_000_000, card.id
        assert card.tokenizer is None or card.tokenizer in TOKENIZERS, card.id
        assert set(card.accepts) <= ACCEPTED, card.id


def test_no_name_stands_for_two_models() -> None:
    owner: dict[str, str] = {}
    for card in CARDS:
        for name in (card.id, *card.aliases):
            for spelt in {fold(name), fold(name.rpartition("/")[2])}:
                assert owner.setdefault(spelt, card.id) == card.id, name


def test_every_id_and_alias_finds_its_own_card() -> None:
    for card in CARDS:
        for name in (card.id, *card.aliases):
            assert shipped().find(name).card is card, name


def test_what_replaces_a_model_exists() -> None:
    ids = {card.id for card in CARDS}
    assert all(card.replaced_by is None or card.replaced_by in ids for card in CARDS)


def test_every_figure_has_a_source_and_every_source_a_figure() -> None:
    for card in CARDS:
        given = {
            figure
            for figure in ("window", "max_output", "tokenizer", "retired", "replaced_by")
            if getattr(card, figure) is not None
        }
        assert given | ({"accepts"} if card.accepts else set()) == {
            figure for figure in card.sources if not figure.startswith("accepts.")
        }, card.id
        assert {figure.removeprefix("accepts.") for figure in card.sources if "." in figure} <= set(card.accepts)


def test_the_file_holds_one_card_a_line_in_a_stable_order() -> None:
    lines = FILE.read_text(encoding="utf-8").splitlines()
    cards = [json.loads(line.removesuffix(",")) for line in lines if line.startswith('{"id"')]
    assert [card["id"] for card in cards] == [card.id for card in CARDS]
    assert [card["provider"] for card in cards] == sorted(card["provider"] for card in cards)


def test_reasoning_models_of_openai_and_new_claudes_refuse_a_temperature() -> None:
    for name in ("o1", "o3-mini", "gpt-5", "gpt-5.4", "gpt-5.6-sol", "claude-opus-4-7", "claude-sonnet-5"):
        assert shipped().find(name).card.accepts["temperature"] is False, name
    for name in ("gpt-4o", "gpt-4.1", "claude-sonnet-4-5", "gemini-2.5-flash"):
        assert shipped().find(name).card.accepts["temperature"] is True, name


def test_tokenizers_change_where_the_makers_changed_them() -> None:
    expected = {
        "gpt-4": "cl100k_base",
        "gpt-4-turbo": "cl100k_base",
        "gpt-3.5-turbo": "cl100k_base",
        "gpt-4o": "o200k_base",
        "gpt-oss-20b": "o200k_harmony",
        "claude-2": "claude_2",
        "claude-haiku-4-5": "claude_3",
        "claude-opus-4-6": "claude_3",
        "claude-opus-4-7": "claude_4_7",
        "gemini-2.0-flash": "gemma2",
        "gemini-2.5-flash": "gemma4",
        "deepseek-r1-distill-llama-70b": "llama3",
        "mistral-large-2411": "mistral_v2",
        "mistral-large-2512": "mistral_v3",
        "llama-4-scout": None,
    }
    assert {name: shipped().find(name).card.tokenizer for name in expected} == expected
