import sys
from pathlib import Path

import pytest

from ullage.errors import BadConfiguration, UnreadableFile
from ullage.wire import TOKENS_VARIABLE, Tokens
from ullage.wire.serve.request_handlers import InferredSessions

ADAS, EVES = "a" * 20 + "==", "e" * 20


def of(text: str, file: Path | None = None) -> Tokens:
    return Tokens.read({TOKENS_VARIABLE: text}, file)


@pytest.mark.parametrize("text", [f"ada:{ADAS},eve:{EVES}", f"# who\n ada : {ADAS}\n\neve:{EVES}\n"])
def test_each_token_has_a_name(text: str):
    tokens = of(text)
    assert tokens.name_of(f"Bearer {ADAS}") == "ada"
    assert tokens.name_of(f"bearer  {EVES}") == "eve"


@pytest.mark.parametrize("header", [None, "", "Bearer", f"Basic {ADAS}", "Bearer wrong", ADAS, f"Bearer {ADAS[:-1]}"])
def test_whoever_carries_no_known_token_is_nobody(header: str | None):
    assert of(f"ada:{ADAS}").name_of(header) is None


def test_a_single_token_needs_no_name():
    assert of(ADAS).name_of(f"Bearer {ADAS}") == "token"


def test_the_settings_may_name_more():
    tokens = Tokens.read({TOKENS_VARIABLE: f"ada:{ADAS}"}, named={"eve": EVES})
    assert tokens.name_of(f"Bearer {EVES}") == "eve"
    with pytest.raises(BadConfiguration, match="second token named `ada`"):
        Tokens.read({TOKENS_VARIABLE: f"ada:{ADAS}"}, named={"ada": EVES})


def test_without_tokens_there_are_none():
    assert not Tokens.read({})
    assert of(ADAS)


def test_neither_a_token_nor_its_hash_is_ever_shown():
    assert ADAS not in repr(of(f"ada:{ADAS}"))
    assert "sha" not in repr(of(f"ada:{ADAS}"))
    assert "b'" not in repr(of(f"ada:{ADAS}"))


@pytest.mark.parametrize(
    "text", ["ada:short", f"a b:{ADAS}", f"ada:{ADAS}é", f"ada:{ADAS},ada:{EVES}", f"{ADAS},{EVES}", f":{ADAS}"]
)
def test_what_cannot_be_a_token_is_refused_without_repeating_it(text: str):
    with pytest.raises(BadConfiguration) as caught:
        of(text)
    assert caught.value.suggestion
    for secret in (ADAS, EVES, "short"):
        assert f"{secret}`" not in caught.value.message
        assert secret not in caught.value.message.replace("is shorter than", "")


def test_tokens_are_read_from_a_file_beside_the_variable(tmp_path: Path):
    file = tmp_path / "tokens"
    file.write_text(f"eve:{EVES}\n", encoding="utf-8")
    file.chmod(0o600)
    tokens = of(f"ada:{ADAS}", file)
    assert (tokens.name_of(f"Bearer {ADAS}"), tokens.name_of(f"Bearer {EVES}")) == ("ada", "eve")
    assert tokens.warnings == ()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such modes")
def test_a_file_that_others_may_read_is_warned_of(tmp_path: Path):
    file = tmp_path / "tokens"
    file.write_text(f"eve:{EVES}\n", encoding="utf-8")
    file.chmod(0o640)
    assert "chmod 600" in Tokens.read({}, file).warnings[0]


def test_a_file_that_cannot_be_read_is_said_to_be_so(tmp_path: Path):
    with pytest.raises(UnreadableFile, match="No such file"):
        Tokens.read({}, tmp_path / "none")
    (tmp_path / "odd").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(UnreadableFile, match="not text"):
        Tokens.read({}, tmp_path / "odd")


@pytest.mark.requirement("U:ledger")
def test_a_pause_of_half_an_hour_begins_another_session():
    sessions = InferredSessions()
    first = sessions.of("ada", "codex", 1000.0)
    assert sessions.of("ada", "codex", 1000.0 + 1800) == first
    assert sessions.of("ada", "codex", 1000.0 + 3600) == first
    assert sessions.of("ada", "codex", 1000.0 + 3600 + 1801) != first


@pytest.mark.requirement("U:ledger")
def test_another_principal_or_client_has_another_session():
    sessions = InferredSessions()
    found = {sessions.of(*who, 0.0) for who in (("ada", None), ("ada", "codex"), ("eve", None))}
    assert len(found) == 3


@pytest.mark.requirement("U:ledger")
def test_so_many_sessions_are_remembered_and_the_longest_silent_is_forgotten():
    sessions = InferredSessions(kept=2)
    first = sessions.of("a", None, 0.0)
    sessions.of("b", None, 1.0)
    assert sessions.of("a", None, 2.0) == first
    sessions.of("c", None, 3.0)
    assert sessions.of("a", None, 4.0) == first
    assert sessions.of("b", None, 5.0) == "b/-@5"
