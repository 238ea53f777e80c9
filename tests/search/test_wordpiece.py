import pytest

from ullage.search.encoder import WordPiece

pytestmark = pytest.mark.requirement("S1:hybrid")

VOCABULARY = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "send", "a", "mail", "##box", "##es", "don", "t", "'", "!", "."),
    *("cafe", "天", "气", "x", "##x", "5", "##€", "[", "]", "mask", "_", "一", "σοφος", "σοφοσ", "—"),
]


def pieces(text: str, most: int = 128) -> list[str]:
    return [VOCABULARY[number] for number in WordPiece(VOCABULARY).numbers(text, most)]


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("Send a mail!", "send a mail !"),
        ("mailboxes", "mail ##box ##es"),
        ("don't", "don ' t"),
        ("send_mail", "send _ mail"),
        ("mailzzz a", "[UNK] a"),
        ("CAFÉ cafe\u0301", "cafe cafe"),
        ("a天气x", "a 天 气 x"),
        ("5€", "5 ##€"),
        ("send—mail", "send — mail"),
        ("s\u00aden\x07d\u200b \ufffda", "send a"),
        ("\x1fsend\x0b", "send"),
        ("send\tmail\r\na\u3000x", "send mail a x"),
        ("x" * 100, " ".join(["x"] + ["##x"] * 99)),
        ("x" * 101, "[UNK]"),
        ("ΣΟΦΟΣ", "σοφοσ"),
        ("", ""),
    ],
)
def test_a_text_is_cut_as_uncased_bert_cuts_it(text: str, cut: str):
    assert pieces(text) == ["[CLS]", *cut.split(), "[SEP]"]


def test_a_text_cannot_forge_the_marks():
    assert pieces("[MASK]") == ["[CLS]", "[", "mask", "]", "[SEP]"]


def test_no_more_pieces_are_given_than_asked_for_and_the_marks_count():
    assert pieces("send a mail", 4) == ["[CLS]", "send", "a", "[SEP]"]
    assert pieces("send mailboxes", 4) == ["[CLS]", "send", "mail", "[SEP]"]
    assert pieces("send a", 4) == ["[CLS]", "send", "a", "[SEP]"]


def test_no_more_words_are_remembered_than_a_bound():
    cutter = WordPiece(VOCABULARY)
    for number in range(40_000):
        cutter.numbers(f"x{number}x", 16)
    assert len(cutter._known) <= 32_768


def test_what_is_too_long_for_a_word_is_not_remembered():
    cutter = WordPiece(VOCABULARY)
    assert cutter.numbers("x" * 10_000, 16) == cutter.numbers("mailzzz", 16)
    assert [*cutter._known] == ["mailzzz"]
