"""What a user is shown of a project's file before approving it."""

from decimal import Decimal

import pytest

from ullage.config.entries import Documents
from ullage.config.layers import USER_ONLY_VALUES, Delegation, Layer
from ullage.config.permissions import Withheld
from ullage.config.project_trust import effects_of, is_secret_name, masked_url, other_settings
from ullage.config.settings import Budget, ClientProfile, Folders, ProviderSettings, Token
from ullage.options import DatabaseSettings, Rules, Server

pytestmark = pytest.mark.requirement("U:project", "U:groups")


def effects(**parts: object) -> list[str]:
    return list(effects_of([Layer(source="ullage.toml", **parts)]))  # pyright: ignore[reportArgumentType]


def of_server(**settings: object) -> list[str]:
    made = Server(**{"name": "fs", "transport": "stdio", **settings})  # pyright: ignore[reportArgumentType]
    return effects(servers={"fs": made, "gone": None})


def test_a_server_is_shown_with_its_whole_command_and_all_it_gets():
    assert of_server(
        command="npx",
        arguments=("-y", "a b", "${TOKEN}"),
        directory="/w/${PLACE}",
        disabled=True,
        environment={"MODE": "x", "API_KEY": "abc", "KEEP_TOKEN": "${TOKEN}"},
        inherit_env=("*",),
        definition_changes="accept",
    ) == [
        "start     `npx -y 'a b' '${TOKEN}'` in `/w/${PLACE}` (server `fs`, disabled)",
        "set       variable API_KEY=(hidden, 3 characters, digest ba7816bf) for server `fs`",
        "set       variable KEEP_TOKEN=${TOKEN} for server `fs`",
        "set       variable MODE=x for server `fs`",
        "receive   your variable TOKEN (server `fs`)",
        "receive   your variable PLACE (server `fs`)",
        "ignored   servers.fs.inherit_env: never read from a project's file",
        "ignored   servers.fs.definition_changes: never read from a project's file",
    ]
    assert of_server(command="x") == ["start     `x` (server `fs`)"]


def test_a_server_at_an_address_is_shown_with_what_is_sent_to_it():
    assert of_server(
        transport="http",
        url="https://host/mcp?key=${A}&token=abc",
        headers={"X-Plain": "1", "Authorization": "Bearer ${B}", "X-Api-Key": "Bearer abc"},
    ) == [
        "contact   https://host/mcp?key=${A}&token=…(ba7816bf) (server `fs`)",
        "send      header Authorization: Bearer ${B} to server `fs`",
        "send      header X-Api-Key: (hidden, 10 characters, digest c355dce9) to server `fs`",
        "send      header X-Plain: 1 to server `fs`",
        "receive   your variable A (server `fs`)",
        "receive   your variable B (server `fs`)",
    ]


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("sample", "open      the sample shop (database `shop`)"),
        ("/data/x.db", "read      /data/x.db (database `shop`)"),
        ("sqlite:///x.db", "read      sqlite:///x.db (database `shop`)"),
        ("duckdb:///x.db", "read      duckdb:///x.db (database `shop`)"),
        ("postgresql://h/x", "contact   postgresql://h/x (database `shop`)"),
        (
            "postgresql://u:${PW}@h/x?sslkey=${K}",
            "contact   postgresql://u:…@h/x?sslkey=${K} (database `shop`, receiving your variable PW, K)",
        ),
    ],
)
def test_a_database_is_read_or_contacted(url: str, line: str):
    assert effects(databases={"shop": DatabaseSettings(name="shop", url=url), "gone": None}) == [line]


def test_folders_files_and_included_files_are_named():
    folders = Folders(name="docs", folders=("/a", "/b"), files=("/c.md",))
    assert effects(retrieves={"docs": folders}, include=("~/x.json",)) == [
        "read      `/a`, `/b`, `/c.md` (collection `docs`, for `retrieve.search` and `files`)",
        "read      the servers of `~/x.json`",
    ]


def test_delegation_is_shown_with_providers_models_and_budgets():
    provider = ProviderSettings(
        name="mine", kind="openai", base_url="https://u:p@h/v1", variables=frozenset({"B", "A"})
    )
    plain = ProviderSettings(name="local", kind="openai", base_url="http://h/v1")
    tables = {"aliases": {"b": "m2", "a": "m1"}, "models": {"m3": {}, "m1": {}}}
    policy = Documents(tables=tables, place=lambda _: None)  # pyright: ignore[reportArgumentType]
    delegation = Delegation(
        providers={"mine": provider, "local": plain, "gone": None},
        policy=policy,
        budgets={"day": Budget(dollars=Decimal("1.5")), "call": Budget()},
    )
    lines = effects(delegation=delegation)
    assert lines[0].startswith("contact   https://…:…(")
    assert lines[0].endswith(
        ")@h/v1 with prompts (provider `mine`; ignored unless your own settings allow it to receive A, B)"
    )
    assert lines[1:] == [
        "contact   http://h/v1 with prompts (provider `local`)",
        "choose    models by its own policy: m1, m2, m3",
        "restrict  one day to dollars 1.5",
    ]
    assert effects(delegation=Delegation(providers={"openai": provider})) == [
        "ignored   providers.openai: a project's file does not change a provider of yours"
    ]
    rules = Documents(tables={"routing": {}}, place=lambda _: None)  # pyright: ignore[reportArgumentType]
    assert effects(delegation=Delegation(policy=rules)) == ["choose    models by its own policy: rules only"]


def test_settings_profiles_and_rules_are_shown_and_what_is_ignored_is_said():
    profile = ClientProfile(model="gpt-4o", window=9, underscore_names=True, groups=("g", "h"))
    rules = Rules(deny=("a", "b"), ask=("c",), hidden=("d",), allow=("e",), read_only=("f",), pinned=("g",))
    assert effects(
        clients={"codex": profile, "none": ClientProfile()},
        values={"search.learn": False, "own.ask": ("x", "y"), "gateway.mode": "direct", "store.url": "x"},
        withheld=Withheld(rules={"fs": rules, "none": Rules()}),
        tokens={"ada": Token(name="ada", env="A")},
    ) == [
        "set       the profile of client `codex`: model gpt-4o, window 9, underscore_names true, groups [g, h]",
        "set       the profile of client `none`: nothing",
        "set       gateway.mode = direct",
        "set       own.ask = [x, y]",
        "set       search.learn = false",
        "restrict  server `fs`: deny a, b",
        "restrict  server `fs`: ask c",
        "restrict  server `fs`: hidden d",
        "set       server `fs`: allow e",
        "set       server `fs`: read_only f",
        "set       server `fs`: pinned g",
        "ignored   store.url: never read from a project's file",
        "ignored   http.tokens.ada: never read from a project's file",
    ]
    assert effects(values=dict.fromkeys(USER_ONLY_VALUES, 1)) == [
        f"ignored   {key}: never read from a project's file" for key in USER_ONLY_VALUES
    ]


def test_a_line_is_shown_once_and_cut_only_where_it_starts_contacts_or_reads_nothing():
    layer = Layer(source="x", include=("a",))
    assert effects_of([layer, layer]) == ("read      the servers of `a`",)
    whole = "set       a.b = "
    for length, is_cut in ((2_000 - len(whole), False), (2_001 - len(whole), True)):
        (line,) = effects(values={"a.b": "x" * length})
        assert line.startswith(whole + "x" * (2_000 - len(whole)))
        assert ("… (2001 characters, digest " in line) is is_cut
    (read,) = effects(include=("x" * 3_000,))
    assert read == f"read      the servers of `{'x' * 3_000}`"
    assert len(of_server(command="x" * 3_000)[0]) > 3_000


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host/a?b=c#d", "https://host/a?b=c#d"),
        ("https://host:81/", "https://host:81/"),
        ("/a/path@x", "/a/path@x"),
        ("host/a", "host/a"),
        ("postgresql://ada@h/x", "postgresql://ada@h/x"),
        ("postgresql://ada:${PW}@h/x", "postgresql://ada:…@h/x"),
        ("postgresql://${WHO}@h/x", "postgresql://${WHO}@h/x"),
        ("https://h/?api_key=abc", "https://h/?api_key=…(ba7816bf)"),
        ("https://h/?api_key=", "https://h/?api_key="),
        ("https://h/?api_key", "https://h/?api_key"),
        ("https://h/?a=1&secret=${X}&b", "https://h/?a=1&secret=${X}&b"),
        ("http://[half", "(an address that cannot be read, digest 9d32f876)"),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, shown: str):
    assert masked_url(url) == shown


@pytest.mark.parametrize("url", ["https://ada@h/", "https://ada:pw@h/", "postgresql://ada:pw@h/x"])
def test_credentials_in_an_address_are_shown_as_a_digest(url: str):
    shown = masked_url(url)
    assert "pw" not in shown
    assert ("ada" in shown) is url.startswith("postgresql")
    other = masked_url(url.replace("ada", "eve"))
    assert shown != other, "a change is visible"


@pytest.mark.parametrize(
    ("document", "tables", "lines"),
    [
        ({"include": ["x"], "gateway": {"mode": "x"}, "http": {"a": 1}}, (), []),
        (
            {"servers": {"fs": {"command": "x", "timeout": 5, "deny": ["a"], "env": {"A": "b"}, "shared": True}}},
            (),
            ["set       servers.fs.timeout = 5", "set       servers.fs.shared = true"],
        ),
        (
            {"mcpServers": {"fs": {"command": "x", "note": "y"}}, "other": {"a": {"b": 1}}},
            ("mcpServers",),
            ["set       mcpServers.fs.note = y"],
        ),
        ({"sources": {"shop": {"database": "x", "rows": 9}}}, (), ["set       sources.shop.rows = 9"]),
        (
            {"retrieve": {"docs": {"folders": ["a"], "exclude": ["b", "c"]}}},
            (),
            ["set       retrieve.docs.exclude = [b, c]"],
        ),
        ({"clients": {"codex": {"model": "m", "groups": ["g"]}}}, (), ["set       clients.codex.groups = [g]"]),
        ({"providers": {"p": {"base_url": "x", "api_key": "abc"}}}, (), [
            "set       providers.p.api_key = (hidden, 3 characters, digest ba7816bf)"]),
        ({"log": {"level": "debug"}, "plain": 3}, (), ["set       log.level = debug", "set       plain = 3"]),
        ({"servers": {"command": "x"}}, (), ["set       servers.command = x"]),
        ({"delegate": {"models": {"m": {"max_output_tokens": 10}}}}, (), [
            "set       delegate.models.m.max_output_tokens = 10"]),
        (
            {
                "servers": {"fs": {"inherit_env": True, "definition_changes": "accept", "shared": True}},
                "telemetry": {"endpoint": "http://h", "export": True, "headers": {"k": "v"}},
                "delegate": {"file_roots": ["/"], "project_keys": ["A"], "cut": True},
                "providers": {"openai": {"headers": {"k": "v"}}},
            },
            (),
            ["set       servers.fs.shared = true", "set       delegate.cut = true"],
        ),
    ],
)  # fmt: skip
def test_every_key_that_has_an_effect_and_no_line_of_its_own_is_shown(
    document: dict[str, object], tables: tuple[str, ...], lines: list[str]
):
    assert list(other_settings(document, tables)) == lines


def test_names_of_secrets_are_known():
    assert all(map(is_secret_name, ("API_KEY", "token", "Authorization", "DB_PASSWORD")))
    assert not any(map(is_secret_name, ("MODE", "PATH", "url")))
