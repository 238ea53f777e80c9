import pytest

from ullage.config import ClientProfile, Gateway, Settings

SETTINGS = Settings(
    store="sqlite://",
    gateway=Gateway(model="gpt-4o", window=50_000, mode="search"),
    clients={
        "codex": ClientProfile(mode="direct", underscore_names=True),
        "claude": ClientProfile(model="claude-sonnet-4-5"),
        "small": ClientProfile(window=8_000),
    },
)


@pytest.mark.requirement("U:groups")
def test_a_client_without_a_profile_has_what_holds_for_all():
    assert SETTINGS.gateway_for(None) == SETTINGS.gateway_for("unheard-of") == SETTINGS.gateway


@pytest.mark.requirement("U:groups")
def test_a_profile_changes_only_what_it_says():
    assert SETTINGS.gateway_for("codex") == Gateway(model="gpt-4o", window=50_000, mode="direct", underscore_names=True)
    assert SETTINGS.gateway_for("small").window == 8_000


@pytest.mark.requirement("U:reference")
def test_a_clients_own_model_comes_with_its_own_window():
    assert SETTINGS.gateway_for("claude").window is None


def test_the_stores_address_is_never_shown():
    assert "s3cret" not in repr(Settings(store="postgresql://me:s3cret@host/db"))


@pytest.mark.requirement("U:groups")
def test_a_profile_sees_the_servers_of_its_groups_and_no_other():
    settings = Settings(
        store="sqlite://",
        groups={"work": ("mail", "wiki"), "home": ("lamp",), "all": ("mail", "lamp"), "empty": ()},
        clients={
            "one": ClientProfile(groups=("work",)),
            "two": ClientProfile(groups=("work", "all")),
            "odd": ClientProfile(groups=("nowhere", "home", "empty")),
            "nothing": ClientProfile(groups=()),
            "every": ClientProfile(mode="direct"),
        },
    )
    assert settings.servers_of("one") == {"mail", "wiki"}
    assert settings.servers_of("two") == {"mail", "wiki", "lamp"}
    assert settings.servers_of("odd") == {"lamp"}
    assert settings.servers_of("nothing") == frozenset()
    assert [settings.servers_of(client) for client in ("every", "unheard-of", None)] == [None, None, None]
