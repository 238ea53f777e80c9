import logging
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from approving import load
from ullage.app.build_gateway import follow, until_restart
from ullage.config import ClientProfile, Flags, Gateway, Loaded, Results, Settings, Token
from ullage.errors import BadConfiguration
from upstreams import scripted, tool, write_toml

pytestmark = pytest.mark.requirement("S1:live")

BEFORE = Settings(store="sqlite:///a", clients={"one": ClientProfile(model="gpt-4"), "gone": ClientProfile()})


@pytest.mark.parametrize(
    ("after", "keys"),
    [
        (BEFORE, ()),
        (replace(BEFORE, store="postgresql://me:secret@host/b"), ("store.url",)),
        (replace(BEFORE, tokens=(Token(name="ada", env="ADA"),)), ("http.tokens",)),
        (replace(BEFORE, results=Results(keep_hours=1, budget=5)), ("results.keep_hours",)),
        (replace(BEFORE, gateway=Gateway(window=1000, mode="direct")), ("gateway.window",)),
        (
            replace(
                BEFORE, clients={"one": ClientProfile(underscore_names=True), "new": ClientProfile(model="gpt-4o")}
            ),
            ("clients.one.model", "clients.one.underscore_names"),
        ),
    ],
)
def test_what_was_settled_at_the_start_is_named(after: Settings, keys: tuple[str, ...]):
    assert until_restart(BEFORE, after) == keys


@pytest.mark.anyio
async def test_each_change_is_compared_with_the_one_before(work: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING)
    file = write_toml(work / "ullage.toml")
    adopted: list[Loaded] = []

    def again(before: Loaded | None = None) -> Loaded:
        del before
        return load(Flags(), {}, work)

    async def adopt(loaded: Loaded) -> None:
        adopted.append(loaded)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow, again(), again, adopt)
        for number, text in enumerate(
            ('[gateway]\nmodel = "gpt-4"\n', '[gateway]\nmodel = "gpt-4"\nmode = "direct"\n')
        ):
            write_toml(file, text, notes=scripted(tool("echo")))
            with anyio.fail_after(20):
                while len(caplog.messages) <= number:
                    await anyio.sleep(0.02)
        tasks.cancel_scope.cancel()
    assert [loaded.settings.gateway.mode for loaded in adopted] == ["auto", "direct"]
    assert caplog.messages == [
        "the settings were changed and taken over; from the next start on: gateway.model",
        "the settings were changed and taken over",
    ]


@pytest.mark.anyio
@pytest.mark.parametrize("error", [BadConfiguration("it cannot be"), ValueError("nobody foresaw it")])
async def test_what_fails_to_be_taken_over_is_said_and_ends_nothing(
    work: Path, caplog: pytest.LogCaptureFixture, error: Exception
):
    caplog.set_level(logging.WARNING)
    file = write_toml(work / "ullage.toml")
    adopted: list[Loaded] = []

    def again(before: Loaded | None = None) -> Loaded:
        del before
        return load(Flags(), {}, work)

    async def adopt(loaded: Loaded) -> None:
        adopted.append(loaded)
        if len(adopted) == 1:
            raise error

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow, again(), again, adopt)
        await anyio.sleep(0.05)
        for number in range(2):
            write_toml(file, f"[gateway]\nwindow = {number + 1000}\n")
            with anyio.fail_after(20):
                while len(caplog.messages) <= number:
                    await anyio.sleep(0.02)
        tasks.cancel_scope.cancel()
    assert caplog.messages[0].startswith("the settings were changed and not taken over")
    assert caplog.messages[1].startswith("the settings were changed and taken over")
