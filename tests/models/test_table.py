"""A name as people write it finds its card, and nonsense finds none."""

import subprocess
import sys
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ullage.errors import UnsupportedModel
from ullage.models import CURRENT_MODEL, DEFAULT_WINDOW, Window, shipped
from ullage.models.model_cards import ModelTable, forms, prefixes, strip_release_suffixes

pytestmark = pytest.mark.requirement("S3:models")

TABLE = shipped()


@pytest.mark.parametrize(
    ("name", "identity", "host", "how"),
    [
        ("gpt-4o", "gpt-4o", None, "id"),
        (" GPT-4o ", "gpt-4o", None, "id"),
        ("gpt-4o-2024-08-06", "gpt-4o", None, "alias"),
        ("gpt-35-turbo", "gpt-3.5-turbo", None, "alias"),
        ("claude-3.5-sonnet", "claude-3-5-sonnet", None, "id"),
        ("gpt-4-1", "gpt-4.1", None, "id"),
        ("claude-3-5-sonnet-20241022", "claude-3-5-sonnet", None, "alias"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5", None, "alias"),
        ("claude-4-opus", "claude-opus-4-0", None, "alias"),
        ("mistral-small-latest", "mistral-small-2603", None, "alias"),
        ("text-embedding-3-small", "text-embedding-3-small", None, "id"),
    ],
)
def test_an_id_or_alias_is_found_whatever_its_case_and_separators(
    name: str, identity: str, host: str | None, how: str
) -> None:
    match = TABLE.find(name)
    assert (match.asked, match.card.id, match.host, match.how) == (name, identity, host, how)


@pytest.mark.parametrize(
    ("name", "identity", "host"),
    [
        ("azure/gpt-4o", "gpt-4o", "azure"),
        ("openai/gpt-4o", "gpt-4o", "openai"),
        ("anthropic:claude-3-5-sonnet", "claude-3-5-sonnet", "anthropic"),
        ("openrouter/anthropic/claude-3.5-sonnet", "claude-3-5-sonnet", "openrouter"),
        ("openrouter:openai/gpt-4o:free", "gpt-4o", "openrouter"),
        ("bedrock/us.anthropic.claude-3-5-sonnet-20240620-v1:0", "claude-3-5-sonnet", "bedrock"),
        ("anthropic.claude-v2:1", "claude-2.1", "bedrock"),
        (
            "arn:aws:bedrock:us-east-1:012345678901:inference-profile/us.anthropic.claude-3-7-sonnet-20250219-v1:0",
            "claude-3-7-sonnet",
            "bedrock",
        ),
        ("us.amazon.nova-lite-v1:0", "nova-lite", "bedrock"),
        ("models/gemini-2.0-flash", "gemini-2.0-flash", "google"),
        ("vertex_ai/gemini-2.5-flash", "gemini-2.5-flash", "google-vertex"),
        ("google-vertex:gemini-2.5-flash", "gemini-2.5-flash", "google-vertex"),
        ("groq/meta-llama/Llama-3.3-70B-Instruct", "llama-3.3-70b-instruct", "groq"),
        ("together_ai/openai/gpt-oss-120b", "gpt-oss-120b", "together"),
        ("accounts/fireworks/models/llama-v3p1-8b-instruct", "llama-3.1-8b", "fireworks"),
        ("databricks-claude-opus-4", "claude-opus-4-0", "databricks"),
        ("ollama/llama3.1:8b", "llama-3.1-8b", "ollama"),
        ("ft:gpt-4o-mini-2024-07-18:acme::a1b2", "gpt-4o-mini", "openai"),
    ],
)
def test_the_outermost_host_of_a_prefixed_name_is_kept(name: str, identity: str, host: str) -> None:
    match = TABLE.find(name)
    assert (match.card.id, match.host) == (identity, host)


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.3-70b-instruct"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("Qwen/Qwen3-32B", "qwen3-32b"),
        ("deepseek-ai/DeepSeek-R1", "deepseek-r1"),
        ("somebody/gpt-4o", "gpt-4o"),
    ],
)
def test_a_publisher_before_a_name_is_no_host(name: str, identity: str) -> None:
    match = TABLE.find(name)
    assert (match.card.id, match.host) == (identity, None)


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("llama3.1:8b", "llama-3.1-8b"),
        ("llama3.1", "llama-3.1-8b"),
        ("llama3.1:8b-instruct-q4_K_M", "llama-3.1-8b"),
        ("qwen3:4b", "qwen3-4b"),
        ("qwen3.6:latest", "qwen3.6-35b-a3b"),
        ("gpt-oss:20b", "gpt-oss-20b"),
        ("mistral", "mistral-7b-v0.3"),
        ("mistral:7b", "open-mistral-7b"),
        ("mistral:7b-instruct-v0.3-q4_0", "mistral-7b-v0.3"),
        ("ollama/mistral:7b", "open-mistral-7b"),
        ("/models/llama-3.1-8b-instruct.Q4_K_M.gguf", "llama-3.1-8b"),
        (r"C:\models\gemma-3-4b-it-Q8_0.gguf", "gemma-3-4b-it"),
        ("phi-4.IQ3_XS.gguf", "phi-4"),
        ("accounts/x/models/llama-v3p1-8b-instruct#accounts/x/deployments/abc", "llama-3.1-8b"),
        ("azure/gpt-4o.ft-a1b2c3", "gpt-4o"),
        ("in.anthropic.claude-3-haiku-20240307-v1:0", "claude-3-haiku"),
    ],
)
def test_the_tag_of_a_local_model_is_part_of_its_name(name: str, identity: str) -> None:
    assert TABLE.find(name).card.id == identity


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("gpt-4o-2031-01-01", "gpt-4o"),
        ("o3-2031-01-01", "o3"),
        ("claude-sonnet-4-5-20990101", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20990101", "claude-sonnet-4-5"),
        ("gemini-2.5-pro-preview-12-31", "gemini-2.5-pro"),
        ("gemini-2.0-flash-009", "gemini-2.0-flash"),
        ("us.anthropic.claude-opus-4-8-20990101-v3:0", "claude-opus-4-8"),
    ],
)
def test_a_release_of_a_day_not_in_the_table_is_that_model(name: str, identity: str) -> None:
    match = TABLE.find(name)
    assert (match.card.id, match.how) == (identity, "dated")


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("gpt-4o-anything", "gpt-4o"),
        ("gpt-4o-mini-anything", "gpt-4o-mini"),
        ("Llama-3.3-70B-Instruct-Turbo", "llama-3.3-70b-instruct"),
        ("claude-sonnet-4-thinking", "claude-sonnet-4-0"),
        ("claude-*", "claude-sonnet-5-5"),
        ("claude-of-tomorrow", "claude-sonnet-5-5"),
    ],
)
def test_a_variant_is_found_by_the_longest_name_it_begins_with(name: str, identity: str) -> None:
    match = TABLE.find(name)
    assert (match.card.id, match.how) == (identity, "family")


@pytest.mark.requirement("S3:models", "S2:window")
@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("claude-opus-4-9", "claude-opus-4-8"),
        ("claude-opus-99", "claude-opus-5-5"),
        ("claude-sonnet-6", "claude-sonnet-5-5"),
        ("anthropic/claude-sonnet-6", "claude-sonnet-5-5"),
        ("claude-sonnet-6@20270101", "claude-sonnet-5-5"),
        ("eu.anthropic.claude-sonnet-6-20270101-v1:0", "claude-sonnet-5-5"),
        ("claude-3-9-sonnet", "claude-3-7-sonnet"),
        ("claude-99", "claude-sonnet-5-5"),
    ],
)
def test_a_version_without_a_card_is_counted_as_the_nearest_and_this_is_reported(name: str, identity: str) -> None:
    match = TABLE.find(name)
    assert (match.card.id, match.how, match.is_guess) == (identity, "version", True)
    assert match.warning is not None
    assert name in match.warning
    assert identity in match.warning
    window = TABLE.window(name)
    assert (window.tokens, window.resolved) == (match.card.window, False)


@pytest.mark.parametrize(
    ("name", "identity", "window"),
    [
        ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5", 1_000_000),
        ("claude-sonnet-4@20250514[1m]", "claude-sonnet-4-0", 1_000_000),
        ("anthropic.claude-3-sonnet-20240229-v1:0:28k", "claude-3-sonnet", 28_000),
        ("anthropic.claude-v2:0:18k", "claude-2", 18_000),
        ("us.anthropic.claude-3-opus-20240229-v1:0:200k", "claude-3-opus", 200_000),
    ],
)
def test_a_window_in_the_name_is_the_window(name: str, identity: str, window: int) -> None:
    assert (TABLE.find(name).card.id, TABLE.window(name)) == (identity, Window(window, resolved=True))


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        *(("gpt-5.6-sol-mini", "gpt-5.6-sol"), ("qwen3.6-max", "qwen3.6-35b-a3b"), ("claude-v9", "claude-sonnet-5-5")),
        *(
            ("qwen3-coder:30b", "qwen3-coder-480b-a35b-instruct"),
            ("gemma2:2b", "gemma-2-9b"),
            ("deepseek-r1:8b", "deepseek-r1"),
        ),
    ],
)
def test_another_size_or_version_is_a_guess(name: str, identity: str) -> None:
    match = TABLE.find(name)
    assert (match.card.id, match.is_guess, TABLE.window(name).resolved) == (identity, True, False)


def test_a_model_put_into_another_has_not_its_vocabulary() -> None:
    assert TABLE.find("deepseek-r1:7b").card.tokenizer == TABLE.find("deepseek-r1-distill-qwen-7b").card.tokenizer
    assert TABLE.get("deepseek-r1-0528-qwen3-8b") is None


def test_a_variant_of_a_known_version_is_reported_and_has_its_window() -> None:
    match = TABLE.find("gpt-4o-prod")
    assert match.warning == "`gpt-4o-prod` has no card of its own: counted as `gpt-4o`"
    assert TABLE.window("gpt-4o-prod").resolved
    assert TABLE.find("gpt-4o").warning is None


def test_an_unknown_release_of_a_model_is_reported() -> None:
    for name, identity in (("gpt-4o-2031-01-01", "gpt-4o"), ("mistral-large-2999", "mistral-large-2512")):
        warning = TABLE.find(name).warning
        assert warning == f"`{name}` is a release without a card of its own: counted as `{identity}`"
    for name in ("gpt-4o-2024-08-06", "gpt-4o-latest", "claude-opus-4@20250514", "gemini-2.5-pro@001"):
        assert TABLE.find(name).warning is None


def test_plain_claude_is_the_newest_sonnet() -> None:
    newest = TABLE.find("claude").card
    sonnets = [card for card in TABLE.cards() if card.id.startswith("claude-sonnet-")]
    assert newest == max(sonnets, key=lambda card: card.id.split("-")[2:])


@pytest.mark.requirement("S3:unsupported")
@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "gpt",
        "foo",
        "gpt-44",
        "gpt4o",
        "gpt-4.9",
        "gpt-5-99",
        "llama",
        "mistral-foo",
        "claudette",
        "/",
        ":",
        "-",
    ],
)
def test_nonsense_is_not_matched(name: str) -> None:
    assert TABLE.get(name) is None
    with pytest.raises(UnsupportedModel):
        TABLE.find(name)


@pytest.mark.requirement("S3:unsupported")
def test_an_unknown_name_is_answered_with_the_default_and_the_nearest() -> None:
    with pytest.raises(UnsupportedModel) as caught:
        TABLE.find("gtp-4o-mini")
    error = caught.value
    assert "`gtp-4o-mini`" in error.message
    assert "`gpt-4`" in error.suggestion
    assert "`gpt-4o-mini`" in error.suggestion
    assert error.options[:4] == ("gpt-4", "gpt-3.5-turbo", "gpt-4o", "claude")
    assert "gpt-4o-mini" in error.options[4:]
    assert len(error.options) == len(set(error.options)) <= 20


@pytest.mark.requirement("S3:unsupported")
def test_the_nearest_names_begin_with_the_likest() -> None:
    assert TABLE.nearest("gpt4o")[0] == "gpt-4o"
    assert TABLE.nearest("openrouter/anthropic/cluade-haiku-4.5")[0] == "claude-haiku-4-5"
    assert TABLE.nearest("") == ()


@pytest.mark.requirement("S3:unsupported")
@pytest.mark.parametrize(
    ("name", "start"), [("sonnet", "claude-"), ("gemini", "gemini-"), ("chatgpt", "chatgpt-"), ("o4", "o4-mini")]
)
def test_a_part_of_a_name_has_the_names_it_is_part_of_nearest(name: str, start: str) -> None:
    near = TABLE.nearest(name)
    assert near
    assert all(each.startswith(start) for each in near)


@pytest.mark.requirement("S3:unsupported")
@pytest.mark.parametrize("word", ["sonnet", "gemini", "mini"])
def test_ids_with_the_word_come_first_and_of_those_the_current_ones(word: str) -> None:
    cards = {card.id: card for card in shipped().cards()}
    near = shipped().nearest(word, len(cards))
    whole = [word in identity.replace(".", "-").split("-") for identity in near]
    assert whole == sorted(whole, reverse=True)
    assert sum(whole) == sum(word in identity.replace(".", "-").split("-") for identity in cards)
    gone = [cards[identity].retired is not None for identity in near[: sum(whole)]]
    assert gone == sorted(gone)
    assert set(gone) == {False, True}
    assert shipped().nearest(word, 2) == near[:2]


@pytest.mark.requirement("S3:unsupported")
def test_one_letter_is_no_word_and_a_name_like_no_other_has_no_nearest() -> None:
    assert shipped().nearest("o", 20) == ("o1", "o3")
    assert shipped().nearest("zzzzqqqq", 20) == ()


@pytest.mark.requirement("S3:unsupported", "S3:models")
def test_an_error_offers_four_names_and_the_sixteen_nearest_and_cuts_a_long_name() -> None:
    with pytest.raises(UnsupportedModel) as caught:
        shipped().find("flash")
    assert caught.value.options == (
        "gpt-4",
        "gpt-3.5-turbo",
        "gpt-4o",
        "claude",
        *shipped().nearest("flash", 16),
    )
    assert len(caught.value.options) == 20
    assert ", ".join(f"`{each}`" for each in caught.value.options[4:7]) in str(caught.value.suggestion)
    assert f"`{caught.value.options[7]}`" not in str(caught.value.suggestion)
    for length, shown in ((256, "x" * 256), (257, "x" * 256 + "…")):
        with pytest.raises(UnsupportedModel, match=f"`{shown}`"):
            shipped().find("x" * length)


@pytest.mark.requirement("S3:unsupported")
def test_every_name_an_error_offers_is_known() -> None:
    with pytest.raises(UnsupportedModel) as caught:
        TABLE.find("gpt5mini")
    assert all(TABLE.get(name) for name in caught.value.options)


@pytest.mark.requirement("S2:window", "U:one-meter")
def test_the_window_is_the_override_else_the_cards_else_the_default() -> None:
    assert TABLE.window("anthropic/claude-3.5-sonnet") == Window(200_000, resolved=True)
    assert TABLE.window("openai/gpt-4o") == Window(128_000, resolved=True)
    assert TABLE.window("openai/gpt-4o", override=9_000) == Window(9_000, resolved=True)
    assert TABLE.window("nobody/knows") == Window(DEFAULT_WINDOW, resolved=False)
    assert TABLE.window("") == Window(DEFAULT_WINDOW, resolved=False)


@pytest.mark.requirement("S2:window")
def test_a_model_whose_window_nobody_published_has_the_default_unresolved() -> None:
    assert TABLE.find("qwen3-0.6b").card.window is None
    assert TABLE.window("qwen3-0.6b") == Window(DEFAULT_WINDOW, resolved=False)


PIECES = st.sampled_from(
    ["gpt", "claude", "4o", "3.5", "openrouter", "/", ":", "-", "us.", "anthropic.", "@", "2024", "v1"]
)
NAMES = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=12).map("".join))


@pytest.mark.requirement("S3:unsupported")
@settings(max_examples=1_000, deadline=None)
@given(NAMES)
def test_no_name_breaks_the_look_up(name: str) -> None:
    match = TABLE.get(name)
    assert match is None or (match.asked == name and match.how in {"id", "alias", "dated", "family", "version"})


@pytest.mark.requirement("S3:unsupported")
@settings(max_examples=200, deadline=None)
@given(NAMES)
def test_no_name_breaks_the_error(name: str) -> None:
    try:
        TABLE.find(name)
    except UnsupportedModel as error:
        assert len(error.options) <= 20  # noqa: PT017 - some names are found


def test_importing_the_room_loads_neither_prices_nor_a_client() -> None:
    check = "import sys, ullage.models as m; m.shipped().find('gpt-4o'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout.split()
    assert not {"genai_prices", "pydantic", "httpx", "httpx2", "mcp"} & set(loaded)


@pytest.mark.parametrize("name", ["a/" * 50_000, "gpt-4o" + "-2024-01-01" * 5_000, "x" * 10_000_000])
def test_a_name_no_model_could_have_is_refused_at_once_and_not_repeated_whole(name: str) -> None:
    with pytest.raises(UnsupportedModel) as caught:
        shipped().find(name)
    assert len(caught.value.message) < 400


def test_a_release_is_never_taken_for_a_newer_one() -> None:
    table = shipped()
    assert table.find("mistral-small-2402").card.id == "mistral-small-2402"
    assert table.find("mistral-small-2411").card.id == "mistral-small-2409"
    assert table.find("mistral-large-2403").card.id == "mistral-large-2402"
    assert table.find("magistral-small-2507").card.id == "magistral-small-2506"
    assert table.find("mistral-small-latest").card.id == table.find("mistral-small").card.id


@pytest.mark.parametrize(
    "name", ["ministral-14b-2410", "command-r7b-03-2024", "pixtral-large-2401", "gpt-4o-2024-01-31"]
)
def test_a_release_older_than_all_models_of_its_name_is_unknown(name: str) -> None:
    assert shipped().get(name) is None


def test_a_date_before_and_after_the_releases_of_one_model_is_that_model() -> None:
    for name in ("claude-opus-4-5-20240101", "claude-opus-4-5-20310101", "gpt-4.1-2031-01-01"):
        assert name.startswith(shipped().find(name).card.id)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("ministral-8b-2410", "ministral-8b-2410"),
        ("mistral-small-2501", "mistral-small-24b-instruct-2501"),
        ("command-r-03-2024", "command-r-03-2024"),
        ("cohere.command-r-plus-v1:0", "command-r-plus-04-2024"),
        ("amazon.titan-embed-text-v2:0", "titan-embed-text-v2"),
        ("claude-haiku-3-5", "claude-3-5-haiku"),
        ("claude-opus-3-20240229", "claude-3-opus"),
    ],
)
def test_an_old_release_has_a_card_of_its_own(name: str, model: str) -> None:
    assert shipped().find(name).card.id == model


@pytest.mark.parametrize(
    "name",
    [
        "gpt-4o-mini-tts",
        "gpt-4o-transcribe",
        "gemini-2.5-flash-preview-tts",
        "gemini-2.0-flash-live-001",
        "gemini-2.5-pro-image-generation",
        "grok-2-image-1212",
        "qwen3-reranker-8b",
        "qwen3-livetranslate-flash",
        "gpt-4.1-embedding",
    ],
)
def test_models_that_speak_listen_or_draw_are_not_their_flagship(name: str) -> None:
    assert shipped().get(name) is None


def test_a_kind_of_a_model_that_draws_is_that_model() -> None:
    assert shipped().find("gemini-2.5-flash-image-something").card.id == "gemini-2.5-flash-image"


def test_gpt_5_takes_no_more_input_than_its_limit() -> None:
    assert {shipped().find(name).card.window for name in ("gpt-5", "gpt-5-mini", "gpt-5-pro", "gpt-5.1")} == {272_000}
    assert {shipped().find(name).card.window for name in ("gpt-5.4", "gpt-5.6-sol", "gpt-6.1-sol")} == {922_000}


def test_gpt_6_is_counted_with_its_own_vocabulary() -> None:
    assert {shipped().find(name).card.tokenizer for name in ("gpt-6-luna", "gpt-6.1-sol")} == {"o200k_base"}


def test_the_current_model_is_sold_today() -> None:
    card = shipped().find(CURRENT_MODEL).card
    assert card.retired is None
    assert card.window is not None


@pytest.mark.requirement("S2:window")
@pytest.mark.parametrize(
    ("name", "families"),
    [
        ("gpt-4o-mini-anything", ["gpt-4o-mini", "gpt-4o"]),
        ("gpt-4.1-turbo-x", ["gpt-4.1-turbo", "gpt-4.1"]),
        ("a-1.2-3b", ["a-1.2"]),
        ("o1-x", ["o1"]),
        ("gpt-5-7", []),
        ("gpt-5-10.2.1", []),
        ("gpt-5-100", ["gpt-5"]),
        ("mistral-large", []),
        ("mistral-large-x", ["mistral-large"]),
        ("x", []),
    ],
)
def test_families_of_a_name_come_longest_first_and_no_other_version_is_one(name: str, families: list[str]) -> None:
    assert list(prefixes(name)) == families


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("gpt-4o", [(None, "gpt-4o")]),
        (" ~x ", [(None, "x")]),
        ("qwen3:4b", [(None, "qwen3:4b")]),
        ("ollama:qwen3:4b", [("ollama", "qwen3:4b")]),
        ("meta-llama/Llama", [(None, "meta-llama/Llama"), (None, "Llama")]),
        ("databricks-claude-x", [(None, "databricks-claude-x"), ("databricks", "claude-x")]),
        ("us.anthropic.claude-x:0", [("bedrock", "anthropic.claude-x:0"), ("bedrock", "claude-x:0")]),
        (
            "openrouter/anthropic/claude-3.5:free",
            [
                (None, "openrouter/anthropic/claude-3.5"),
                ("openrouter", "anthropic/claude-3.5"),
                ("openrouter", "claude-3.5"),
            ],
        ),
        (
            "azure/eu.openai.gpt-4o",
            [(None, "azure/openai.gpt-4o"), ("azure", "openai.gpt-4o"), ("azure", "gpt-4o")],
        ),
        (
            "hf.co/unsloth/qwen3:4b",
            [(None, "hf.co/unsloth/qwen3:4b"), (None, "unsloth/qwen3:4b"), (None, "qwen3:4b")],
        ),
    ],
)
def test_a_name_loses_one_prefix_after_another(name: str, found: list[tuple[str | None, str]]) -> None:
    assert list(forms(name)) == found


def test_an_arn_of_bedrock_names_its_host() -> None:
    *_, last = forms("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-x")
    assert last == ("bedrock", "claude-x")


@pytest.mark.parametrize(
    ("name", "stems"),
    [
        ("gpt-4o-2024-05-13", ["gpt-4o"]),
        ("claude-3-opus-latest-preview", ["claude-3-opus-latest", "claude-3-opus"]),
        ("x-05-2024", ["x"]),
        ("gpt-4-0613", ["gpt-4"]),
        ("-latest", []),
        ("gpt-4o", []),
    ],
)
def test_a_name_loses_one_suffix_of_a_release_after_another(name: str, stems: list[str]) -> None:
    assert list(strip_release_suffixes(name)) == stems


def _made_up(*cards: tuple[str, list[str]], **more: object) -> ModelTable:
    raw: list[Any] = [
        {"id": name, "provider": "toys", "family": "toy", "aliases": aliases, **more} for name, aliases in cards
    ]
    return ModelTable({"sources": [("a page", "2026-01-01")], "cards": raw})


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("toy-small-2401", None),
        ("toy-small-2402", "toy-small-2402"),
        ("toy-small-2406", "toy-small-2402"),
        ("toy-small-2407", "toy-small-2407"),
        ("toy-small-2408", "toy-small-2407"),
        ("toy-small-240", "toy-small-2407"),
        ("toy-small-latest", "toy-small-2407"),
        ("toy-small-2024-06-01", "toy-small-2407"),
        ("toy-small-2406x", "toy-small-2407"),
    ],
)
def test_a_release_is_the_newest_one_that_is_no_newer(name: str, identity: str | None) -> None:
    table = _made_up(("toy-small-2402", []), ("toy-small-2407", ["toy-small"]), ("other", []))
    match = table.get(name)
    assert (match and match.card.id) == identity


def test_a_release_before_all_known_ones_is_the_oldest_where_they_are_one_model() -> None:
    one = _made_up(("toy-1", ["toy-1-0305", "toy-1-0613"]))
    assert [_found(one, f"toy-1-{day}") for day in ("0301", "0401", "0701")] == [("toy-1", "dated")] * 3
    apart = _made_up(("toy-1", []), ("toy-1-0613", []))
    assert _found(apart, "toy-1-0301") == ("toy-1", "dated"), "the name alone is a model of its own"
    assert _found(apart, "toy-1-0613") == ("toy-1-0613", "id")


def _found(table: ModelTable, name: str) -> tuple[str, str] | None:
    match = table.get(name)
    return None if match is None else (match.card.id, match.how)


def test_a_date_after_a_single_word_matches_nothing() -> None:
    assert _found(_made_up(("toy", [])), "toy-2401") is None
    assert _found(_made_up(("toy2", [])), "toy2-2401") == ("toy2", "dated")


def test_a_name_with_a_publisher_is_found_without_it_unless_another_has_that_name() -> None:
    table = _made_up(("makers/toy-1", []), ("toy-2", []), ("others/toy-2", ["x/y/toy-3"]))
    assert _found(table, "toy-1") == ("makers/toy-1", "alias")
    assert _found(table, "toy-2") == ("toy-2", "id")
    assert _found(table, "others/toy-2") == ("others/toy-2", "id")
    assert _found(table, "toy-3") == ("others/toy-2", "alias")


def test_a_variant_that_speaks_is_not_its_family() -> None:
    table = _made_up(("toy-1", []))
    assert _found(table, "toy-1-fast") == ("toy-1", "family")
    assert [_found(table, f"toy-1-{word}") for word in ("tts", "audio-x", "fast-live", "image2")] == [None] * 4


def test_a_claude_is_the_one_with_its_words_or_the_newest_that_begins_with_most_of_them() -> None:
    cards = ("claude-haiku-4-5", []), ("claude-haiku-3", []), ("claude-opus-5", ["claude-opus-latest"])
    table = _made_up(*cards, ("claude-sonnet-5", ["claude"]))
    assert _found(table, "claude-4-5-haiku") == ("claude-haiku-4-5", "alias")
    assert _found(table, "claude-5-opus-2026-01-01") == ("claude-opus-5", "alias")
    assert _found(table, "claude-haiku-7") == ("claude-haiku-4-5", "version")
    assert _found(table, "claude-tiny") == ("claude-sonnet-5", "family")
    assert _found(table, "claudette-1") is None


def test_a_card_has_what_the_table_says_of_it() -> None:
    more = {"accepts": "tools -images", "retired": "2026-05-01", "window": 9, "max_output": 5, "sources": {"window": 0}}
    (card,) = _made_up(("toy-1", ["t1"]), **more).cards()
    assert (card.accepts, card.retired) == ({"tools": True, "images": False}, date(2026, 5, 1))
    assert (card.window, card.max_output, card.aliases, card.provider, card.family) == (9, 5, ("t1",), "toys", "toy")
    assert card.sources["window"].date == date(2026, 1, 1)
    (bare,) = _made_up(("toy-1", [])).cards()
    assert (bare.accepts, bare.retired, bare.window, bare.max_output) == ({}, None, None, None)


@pytest.mark.requirement("S3:unsupported")
def test_a_single_letter_is_no_word_of_a_name() -> None:
    table = _made_up(("toy-r", []), ("toy-rr", []))
    assert table.nearest("r", 5) == ()
    assert table.nearest("rr", 5) == ("toy-rr",)
    assert table.nearest("makers/toy-q", 5) == ("toy-r", "toy-rr")
    assert table.nearest("toy-q", 1) == ("toy-r",)
    assert len(_made_up(*((f"toy-{n}", []) for n in range(9))).nearest("toy-x")) == 3


@pytest.mark.parametrize("name", ["phi4:14b", "deepseek-v3:671b", "command-r:35b", "mistral-nemo:12b", "qwen3-8b-4bit"])
def test_the_size_of_a_model_itself_is_no_guess(name: str) -> None:
    assert not TABLE.find(name).is_guess


def test_a_folder_called_models_is_no_host() -> None:
    assert TABLE.find("accounts/x/models/gpt-oss-20b").host is None
    assert TABLE.find("/models/gpt-oss-20b.gguf").host is None
    assert TABLE.find("models/gemini-2.5-pro").host == "google"
