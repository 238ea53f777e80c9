from typing import Any

import pytest

from ullage.gateway import Server
from ullage.wire.upstream.child_env import redacted, secrets_of

pytestmark = pytest.mark.requirement("U:errors")


def shown(text: str, inherited: dict[str, str] | None = None, **settings: Any) -> str:  # noqa: ANN401 - any of them
    server = Server(**{"name": "one", "transport": "stdio", **settings})
    return redacted(text, secrets_of(server, inherited or {}))


def test_secrets_are_told_by_their_names():
    settings = {"API_TOKEN": "abcdef", "MODE": "verbose", "PASSWORD": "a"}
    assert shown("verbose abcdef a", environment=settings) == "verbose [secret] a"


@pytest.mark.parametrize("name", ["GH_TOKEN", "OPENAI_API_KEY", "DB_PASS", "PGPASSWORD", "AUTHORIZATION", "AWS_SECRET"])
def test_what_a_server_inherits_is_no_less_secret(name: str):
    assert shown("bad key ghp_inherited123456", {name: "ghp_inherited123456"}) == "bad key [secret]"


@pytest.mark.parametrize("name", ["DESKTOP_SESSION", "SSH_ASKPASS", "GIT_AUTHOR_NAME", "BASE_URL", "HOME"])
def test_what_everybody_inherits_is_no_secret(name: str):
    assert shown("an everyday word", {name: "everyday"}) == "an everyday word"


def test_a_short_word_that_is_inherited_is_no_secret():
    assert shown("see the sample", {"KEY": "sample"}) == "see the sample"


def test_what_the_settings_say_of_a_variable_counts_and_not_what_it_would_have_been():
    assert shown("outer-token inner-token", {"A_KEY": "outer-token"}, environment={"A_KEY": "inner-token"}) == (
        "outer-token [secret]"
    )


def test_a_header_is_secret_by_the_word():
    headers = {"Authorization": "Bearer abcdef", "Cookie": "one=ghijkl; two=mnopqr"}
    assert shown("got abcdef, ghijkl, mnopqr; a Bearer is wanted", headers=headers) == (
        "got [secret], [secret], [secret]; a Bearer is wanted"
    )


def test_the_passwords_of_addresses_are_secret_whatever_they_are_named():
    environment = {"DATABASE": "postgres://user:dbsecret55@host/x"}
    assert shown("no user with dbsecret55 at host", environment=environment) == "no user with [secret] at host"
    assert shown("dbsecret55", environment) == "[secret]"
    assert shown("key urlsecret123", url="http://host/mcp?key=urlsecret123&a=b") == "key [secret]"
    assert shown("pwsecret99", arguments=("http://user:pwsecret99@host/mcp",)) == "[secret]"
    assert shown("http://[half", arguments=("http://[half",)) == "[secret]"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--token", "a1b2c3"),
        ("--api-key=a1b2c3",),
        ("-token", "a1b2c3"),
        ("run", "-e", "API_KEY=a1b2c3", "image"),
        ("--header", "Authorization: Bearer a1b2c3"),
    ],
)
def test_a_secret_among_arguments_is_told_by_its_option(arguments: tuple[str, ...]):
    assert shown("it is a1b2c3", arguments=arguments) == "it is [secret]"


@pytest.mark.parametrize("argument", ["ghp_Ab3dEf6hIj9lMn2p", "argsecret12345", "sk-ant-0a1b2c3d4e5f6g7h"])
def test_a_long_run_of_letters_and_digits_is_taken_for_a_secret(argument: str):
    assert shown(f"arg {argument}", arguments=("-y", argument)) == "arg [secret]"


@pytest.mark.parametrize(
    "argument", ["/home/user/documents", "@scope/server-filesystem", "verbose", "--read-only", "8080"]
)
def test_plain_arguments_are_shown(argument: str):
    assert shown(f"arg {argument}", arguments=(argument,)) == f"arg {argument}"


def test_a_key_of_many_lines_is_secret_by_the_line():
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\n-----END KEY-----"
    assert shown("read MIIEvQIBADANBgkq", {"SIGNING_KEY": key}) == "read [secret]"


def test_the_longer_of_two_secrets_is_taken_out_first():
    environment = {"A_KEY": "abcdef", "B_KEY": "abcdefghij"}
    assert shown("abcdefghij abcdef", environment=environment) == "[secret] [secret]"


def test_the_working_folder_is_no_secret():
    text = "no such file: /home/someone/project/server.py"
    folders = {"PWD": "/home/someone/project", "OLDPWD": "/home/someone"}
    assert redacted(text, secrets_of(Server(name="a", transport="stdio", command="x"), folders)) == text
    hidden = redacted(
        text,
        secrets_of(Server(name="a", transport="stdio", command="x"), {**folders, "DB_PWD": "/home/someone/project"}),
    )
    assert "project" not in hidden


@pytest.mark.parametrize(
    ("settings", "inherited", "length"),
    [
        ({"environment": {"API_KEY": "SECRET"}}, {}, 6),
        ({"environment": {"PLACE": "x://u:SECRET@h/"}}, {}, 6),
        ({"headers": {"Authorization": "Bearer SECRET"}}, {}, 6),
        ({"headers": {"X-Any": "SECRET"}}, {}, 6),
        ({"arguments": ("--token", "SECRET")}, {}, 6),
        ({"arguments": ("--token=SECRET",)}, {}, 6),
        ({"arguments": ("-e", "API_KEY=SECRET")}, {}, 6),
        ({"arguments": ("--header", "Authorization: Bearer SECRET")}, {}, 6),
        ({"url": "https://u:SECRET@host/mcp"}, {}, 6),
        ({"url": "https://host/mcp?a=b&key=SECRET"}, {}, 6),
        ({}, {"API_KEY": "SECRET"}, 8),
        ({}, {"DATABASE": "x://u:SECRET@h/"}, 8),
    ],
)
def test_a_secret_is_taken_out_from_its_least_length_on(
    settings: dict[str, Any], inherited: dict[str, str], length: int
):
    def put(value: object, secret: str) -> Any:  # noqa: ANN401
        if isinstance(value, dict):
            return {key: put(one, secret) for key, one in value.items()}
        if isinstance(value, tuple):
            return tuple(put(one, secret) for one in value)
        return str(value).replace("SECRET", secret)

    for secret, expected in (("zq" * 9)[:length], "[secret]"), (("zq" * 9)[: length - 1], None):
        made = {name: put(value, secret) for name, value in settings.items()}
        assert shown(f"<{secret}>", put(inherited, secret), **made) == f"<{expected or secret}>"


def test_an_option_makes_only_the_next_argument_a_secret():
    arguments = ("--token", "aaaaaa", "bbbbbb", "--token", "--mode", "cccccc", "--mode=dddddd", "--x-key=eeeeee")
    assert shown("aaaaaa bbbbbb cccccc dddddd eeeeee", arguments=arguments) == "[secret] bbbbbb cccccc dddddd [secret]"


def test_of_a_plain_address_only_its_query_is_a_secret():
    assert shown("host-name a-user some-path value-1", url="https://a-user@host-name/some-path?k=value-1#x") == (
        "host-name a-user some-path [secret]"
    )


def test_the_order_of_secrets_is_by_length_and_then_by_letter():
    server = Server(name="one", transport="stdio", headers={"A": "bbbbbb", "B": "aaaaaa", "C": "ccccccc"})
    assert secrets_of(server, {}) == ("ccccccc", "aaaaaa", "bbbbbb")
