import pytest

from delegate.sentences import OTHERS, SENTENCES, SHORT
from ullage.delegate import detect_language

pytestmark = pytest.mark.requirement("S4:route")


@pytest.mark.requirement("S4:route")
@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Escreva um poema sobre o mar", "pt"),
        ("Qual é a capital da França?", "pt"),
        ("Resuma este texto em três frases", "pt"),
        ("Preciso de uma função que não falhe quando a lista está vazia", "pt"),
        ("Write a poem about the sea", "en"),
        ("Explain this code", "en"),
        ("Why is the sky blue and not green?", "en"),
        ("Escribe un poema sobre el mar", "es"),
        ("¿Cuál es la capital de Francia?", "es"),
        ("Necesito una función que no falle cuando la lista está vacía", "es"),
    ],
)
def test_three_languages_are_distinguished(text: str, language: str):
    assert detect_language(text) == language


@pytest.mark.parametrize(
    "text", ["", "def f(x): return x", "bonjour le monde", "請解釋", "12345", "```\nthe of and is\n```"]
)
def test_what_is_not_clear_is_not_guessed(text: str):
    assert detect_language(text) is None


def test_code_and_addresses_do_not_decide():
    text = "Explique este código, por favor:\n```\nfor the in this: if not that: return the\n```\nhttps://the.of/and/is"
    assert detect_language(text) == "pt"


def test_only_the_beginning_is_looked_at():
    assert detect_language("Write the answer to this. " * 100 + "não é isso " * 1000) == "en"


@pytest.mark.requirement("S4:route")
def test_plain_sentences_in_eight_languages_are_detected_and_none_wrongly():
    told = [(language, detect_language(one)) for language, sentences in SENTENCES.items() for one in sentences]
    assert len(told) == 24
    assert sum(found == language for language, found in told) >= 22
    assert [one for one in told if one[1] not in (one[0], None)] == []


@pytest.mark.requirement("S4:route")
def test_short_sentences_are_detected_as_well_and_none_wrongly():
    told = [(language, detect_language(one)) for language, sentences in SHORT.items() for one in sentences]
    assert sum(found == language for language, found in told) >= len(told) * 22 / 24
    assert [one for one in told if one[1] not in (one[0], None)] == []


def test_languages_that_are_like_others_are_not_taken_for_them():
    told = [(language, detect_language(one)) for language, sentences in OTHERS.items() for one in sentences]
    assert [one for one in told if one[1] not in (one[0], None)] == []


@pytest.mark.parametrize(
    "text", ["ok", "README.md", "x = 1", "user@example.org", "https://example.org/das/ist/ein/test"]
)
def test_what_is_no_sentence_has_no_language(text: str):
    assert detect_language(text) is None
