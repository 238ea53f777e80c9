"""What becomes of large answers, and what stays listed?"""

import json
import os
import re
import sqlite3
from pathlib import Path
from typing import Any, cast

import pytest

from approving import load
from ullage.app.build_gateway import open_gateway
from ullage.config import Flags
from ullage.gateway import META
from ullage.tool import Call, Caller, Reply

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("U:budget", "S0:sql:query")
async def test_an_answer_is_cut_at_a_row_unless_the_caller_wants_more_and_the_rest_can_be_asked_in_sql(work: Path):
    with sqlite3.connect(work / "shop.db") as connection:
        connection.execute("CREATE TABLE item (id INTEGER, name TEXT)")
        connection.executemany("INSERT INTO item VALUES (?, ?)", [(one, f"thing {one}") for one in range(900)])
    connection.close()
    (work / "ullage.toml").write_text(
        '[sources.shop]\ndatabase = "shop.db"\n[results]\nbudget = 400\n', encoding="utf-8"
    )
    async with open_gateway(load(Flags(), os.environ, work), environment=os.environ) as gateway:

        async def ask(tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:  # noqa: ANN401
            call = Call(tool=tool, arguments=arguments, caller=Caller(principal="me", session="s"))
            reply: Reply = await gateway.flagged(None).source.call(call)
            return str(reply.content[-1]["text"]), cast("dict[str, Any]", reply.meta[META])

        text, meta = await ask("query", sql="SELECT * FROM item")
        assert meta["tokens"]["estimated"] <= 400
        assert meta["data"]["truncated"] is True
        assert meta["data"]["rowCount"] == len(text.splitlines()) - 3
        assert text.splitlines()[-2].startswith("-- 900 rows; complete")
        assert f"[{meta['data']['rowCount']} of 900 rows shown: " in text.splitlines()[-1]
        handle = re.search(r'handle="(\w+)"', text)
        assert handle is not None
        total, _ = await ask("read_result", handle=handle[1], sql="SELECT sum(id) AS total FROM result")
        assert str(sum(range(900))) in total
        text, meta = await ask("query", sql="SELECT * FROM item", max_tokens=3_000)
        assert 400 < meta["tokens"]["estimated"] <= 3_000
        assert text.splitlines()[-2].startswith("-- 900 rows; complete")
        assert f"[{meta['data']['rowCount']} of 900 rows shown: " in text.splitlines()[-1]
        for tokens in (1, 20, 49):
            refusal, meta = await ask("query", sql="SELECT * FROM item", max_tokens=tokens)
            assert json.loads(refusal)["error_code"] == "INVALID_ARGUMENTS"
            assert "50" in json.loads(refusal)["message"]
            assert "handle" not in meta


@pytest.mark.requirement("U:budget")
async def test_passages_are_as_many_as_the_caller_has_room_for_whatever_other_results_may_have(work: Path):
    (work / "docs").mkdir()
    for number in range(40):
        said = f"# Kettle {number}\n\n" + f"A kettle of the kind {number} boils water. " * 20
        (work / "docs" / f"{number}.md").write_text(said, encoding="utf-8")
    (work / "ullage.toml").write_text(
        '[retrieve.docs]\nfolders = ["docs"]\n[results]\nbudget = 400\n', encoding="utf-8"
    )
    async with open_gateway(load(Flags(), os.environ, work), environment=os.environ) as gateway:
        asked = {"query": "which kettle boils water", "max_tokens": 3_000}
        call = Call(tool="retrieve.search", arguments=asked, caller=Caller(principal="me", session="s"))
        reply = await gateway.flagged(None).source.call(call)
    meta = cast("dict[str, Any]", reply.meta[META])
    assert 400 < meta["tokens"]["estimated"] <= 3_000
    assert "handle" not in meta


@pytest.mark.requirement("U:own")
async def test_the_tools_that_find_the_others_stay_listed_whatever_is_hidden(work: Path):
    (work / "ullage.toml").write_text(
        '[gateway]\nmode = "search"\n[own]\nhidden = ["find_tool", "count-tokens"]\n', encoding="utf-8"
    )
    async with open_gateway(load(Flags(), os.environ, work), environment=os.environ) as gateway:
        listed = [tool.name for tool in (await gateway.flagged(None).source.tools()).tools]
    assert listed == ["find_tool", "call_tool", "call_tool_write", "read_result"]
