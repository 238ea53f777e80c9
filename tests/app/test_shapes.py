"""What a whole gateway learns of replies and shows in searches: nothing that is data, and nothing of another user."""

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from approving import load
from ullage.app.build_gateway import Gateway, open_gateway
from ullage.config import Flags, Loaded
from ullage.tool import Call, Caller, Json, Reply
from upstreams import scripted, tool, write_toml

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("U:shapes")]

READS = {"readOnlyHint": True}
GIVE = tool("give", "List the orders of a shop.", annotations=READS)
TYPED = tool("typed", "Weather of a town.", annotations=READS, outputSchema={
    "type": "object", "properties": {"temperature": {"type": "number"}, "humidity": {"type": "number"}},
})  # fmt: skip
SEARCH = '[gateway]\nmode = "search"\n[search]\nindex = "words"\n'
SECRETS = (
    "sk_live_51H8xkQ2eZvKYlo2C", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "AKIAIOSFODNN7EXAMPLE", "hunter2",
    "swordfish", "correcthorsebatterystaple", "ada@example.com", "alice", "Ada Lovelace", "2026-11-18",
    "DE89370400440532", "550e8400-e29b-41d4-a716-446655440000", "花子", "пароль", "eyJhbGciOiJIUzI1NiJ9",
)  # fmt: skip


def settings(work: Path, text: str = SEARCH) -> Loaded:
    write_toml(work / "ullage.toml", text, shop=scripted(GIVE, TYPED))
    return load(Flags(), os.environ, work)


async def ask(gateway: Gateway, name: str, principal: str = "ada", **arguments: Any) -> Reply:  # noqa: ANN401
    caller = Caller(principal=principal, session=f"of-{principal}")
    return await gateway.profile().source.call(Call(tool=name, arguments=arguments, caller=caller))


async def give(gateway: Gateway, value: Json, principal: str = "ada", *, is_text: bool = False) -> Reply:
    result: dict[str, Json] = {"content": [{"type": "text", "text": json.dumps(value)}]}
    if not is_text and isinstance(value, dict):
        result["structuredContent"] = value
    reply = await ask(gateway, "call_tool", principal, tool_name="shop__give", parameters={"result": result})
    await gateway.searches.shapes.settle()
    return reply


async def found(gateway: Gateway, query: str = "orders of a shop", principal: str = "ada", **more: Json) -> str:
    reply = await ask(gateway, "find_tool", principal, tool_description=query, **more)
    return str(reply.content[0]["text"])


async def test_a_search_shows_what_a_schema_declares_and_what_replies_taught(work: Path):
    async with open_gateway(settings(work), environment=os.environ) as gateway:
        before = json.loads(await found(gateway))["tools"][0]
        assert "returns" not in before
        assert (await give(gateway, {"orders": list[Json]([{"id": 1, "total": 2.5}] * 2)})).is_error is False
        after = json.loads(await found(gateway))
        assert after["tools"][0]["returns"] == "→ {orders[{id, total}]}"
        assert "→ {temperature, humidity}" in await found(gateway, "weather of a town")
    async with open_gateway(settings(work), environment=os.environ) as gateway:
        assert "→ {orders[{id, total}]}" in await found(gateway), "after a restart"


async def test_a_reply_with_shapes_keeps_its_budget(work: Path):
    async with open_gateway(settings(work), environment=os.environ) as gateway:
        await give(gateway, {"orders": [{"id": 1, "total": 2.5, "customer": {"name": "a"}}]})
        for most in (100, 120, 150, 200, 300, 1_000):
            reply = await ask(gateway, "find_tool", tool_description="orders of a shop", max_tokens=most)
            assert reply.meta["dev.ullage/meta"]["tokens"]["estimated"] <= most  # type: ignore[index,call-overload,operator]


async def test_secrets_in_values_and_in_keys_are_neither_stored_nor_shown(work: Path):
    loaded = settings(work)
    async with open_gateway(loaded, environment=os.environ) as gateway:
        for round_ in range(3):
            for is_text in (False, True):
                await give(gateway, {secret: {"id": round_} for secret in SECRETS}, is_text=is_text)
                await give(gateway, {"data": {secret: secret for secret in SECRETS}}, is_text=is_text)
                for secret in SECRETS:
                    await give(gateway, {"id": 1, "name": secret, "state": secret, secret: round_}, is_text=is_text)
                    records: list[Json] = [{secret: row, "id": row, "note": secret} for row in range(4)]
                    await give(gateway, {"rows": records}, is_text=is_text)
                    await give(gateway, records, is_text=True)
        said = await found(gateway, max_tokens=2_000)
        assert gateway.database is not None
        rows = gateway.database.read(lambda connection: connection.execute("SELECT * FROM ullage_shapes").all())
        stored = json.dumps([list(map(str, row)) for row in rows], ensure_ascii=False)
        assert len(rows) == 1
    for secret in SECRETS:
        assert secret not in said
        assert secret.casefold() not in stored.casefold()


async def test_concurrent_users_see_nothing_of_each_other(work: Path):
    words = {"ada": ["id", "total", "customer"], "bob": ["number", "title", "state"]}
    async with open_gateway(settings(work), environment=os.environ) as gateway:

        async def work_as(principal: str) -> None:
            other = words["bob" if principal == "ada" else "ada"]
            for _ in range(5):
                row: dict[str, Json] = dict.fromkeys(words[principal], 1)
                await give(gateway, {"rows": [row, row]}, principal)
                said = await found(gateway, principal=principal)
                assert f"→ {{rows[{{{', '.join(words[principal])}}}]}}" in said
                assert not any(f"{word}," in said.split('"returns"')[1].split("}")[0] for word in other)

        async with anyio.create_task_group() as tasks:
            for principal in words:
                tasks.start_soon(work_as, principal)
        assert "rows" not in await found(gateway, principal="eve")


async def test_switched_off_nothing_is_learnt_and_nothing_shown(work: Path):
    async with open_gateway(settings(work, SEARCH + "shapes = false\n"), environment=os.environ) as gateway:
        await give(gateway, {"orders": [{"id": 1}]})
        assert "→" not in await found(gateway)
        assert "→" not in await found(gateway, "weather of a town")
        assert gateway.database is not None
        rows = gateway.database.read(lambda connection: connection.execute("SELECT * FROM ullage_shapes").all())
        assert rows == []


async def test_an_invisible_character_in_a_key_reaches_no_model(work: Path):
    async with open_gateway(settings(work), environment=os.environ) as gateway:
        await give(gateway, {"orders": [{"id\u200b": 1, "na\u202eme": 2}]}, is_text=True)
        said = await found(gateway)
        assert not any(letter in said for letter in "\u200b\u202e")
