"""SQL over several held results: each of a principal's own handles is a table."""

import json
from collections.abc import AsyncIterator

import pytest

from gateway.results.bench_of_results import ADA, BOB, METER, REFERENCES, text
from ullage.app.build_sources import HeldTables
from ullage.errors import InvalidArguments, Refused, UnknownHandle
from ullage.gateway.results import READ, ResultReader, ResultRules, Vault
from ullage.gateway.results.held_result import Held, Part, survey
from ullage.gateway.tool_source import definition_text
from ullage.tokens import drain
from ullage.tool import Call, Caller, Json

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("U:join")]

ISSUES: Json = {"items": [{"number": one, "author": f"user{one % 3}", "open": one % 2 == 0} for one in range(30)]}
PEOPLE = "author,team\nuser0,core\nuser1,docs\nuser2,core\n-- 3 rows; complete"
LOG = "\n".join(json.dumps({"issue": one, "level": "error" if one % 5 == 0 else "info"}) for one in range(30))


class Desk:
    """Held results, and a reader of them with the real worker."""

    def __init__(self) -> None:
        self.vault = Vault()
        self.query = HeldTables()
        self.reader = ResultReader(
            vault=self.vault,
            rules=lambda: ResultRules(budget=2_000),
            meter=METER,
            reference=REFERENCES,
            query=self.query,
        )

    def keep(self, value: Json, caller: Caller = ADA) -> str:
        said = value if isinstance(value, str) else json.dumps(value)
        part = Part(text=said, layout=drain(survey(said)))
        return self.vault.keep(Held(principal=caller.principal, server="shop", tool="toy", parts=(part,)))

    async def ask(self, handle: str, sql: str, caller: Caller = ADA, **more: Json) -> str:
        arguments: dict[str, Json] = {"handle": handle, "sql": sql, **more}
        return text(await self.reader.call(Call(tool="read_result", arguments=arguments, caller=caller)))


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    desk = Desk()
    yield desk
    await desk.query.close()


async def test_three_results_are_joined_and_only_the_answer_is_read(desk: Desk):
    issues, people, log = desk.keep(ISSUES), desk.keep(PEOPLE), desk.keep(LOG)
    answer = await desk.ask(
        issues,
        f"SELECT p.team, count(*) AS n FROM result i JOIN {people} p USING (author) JOIN {log} l ON l.issue = i.number "
        "WHERE l.level = 'error' GROUP BY p.team ORDER BY p.team",
    )
    assert answer == "team,n\ncore,4\ndocs,2\n[2 rows]"
    separate = [await desk.ask(one, "SELECT * FROM result") for one in (issues, people, log)]
    assert METER.count(answer).tokens * 10 < sum(METER.count(one).tokens for one in separate)


async def test_a_quoted_name_may_go_on_with_the_path_of_a_list(desk: Desk):
    nested = desk.keep({"total": 2, "Deep": {"rows": [{"number": 4, "note": "four"}, {"number": 5, "note": "five"}]}})
    issues = desk.keep(ISSUES)
    for name in (f"{nested}.Deep.rows", f"{nested}$.Deep.rows"):
        answer = await desk.ask(issues, f'SELECT note FROM result JOIN "{name}" USING (number) ORDER BY note')
        assert answer == "note\nfive\nfour\n[2 rows]"


@pytest.mark.requirement("U:join")
async def test_the_handle_of_another_principal_is_as_unknown_as_one_that_never_was(desk: Desk):
    mine, theirs = desk.keep(ISSUES), desk.keep(ISSUES, BOB)
    for name in (theirs, f'"{theirs}.items"', theirs.upper(), "r123456789012345678", "r9999", "r1"):
        with pytest.raises(UnknownHandle):
            await desk.ask(mine, f"SELECT * FROM {name}")
        with pytest.raises(UnknownHandle):
            await desk.ask(
                mine, f"SELECT 1 FROM result WHERE EXISTS (WITH x AS (SELECT * FROM {name}) SELECT * FROM x)"
            )
    assert (await desk.ask(theirs, "SELECT count(*) AS n FROM result", BOB)).startswith("n\n30")


async def test_a_table_is_gone_with_the_statement_that_named_it(desk: Desk):
    issues, people = desk.keep(ISSUES), desk.keep(PEOPLE)
    await desk.ask(issues, f"SELECT * FROM {people}")
    bob = desk.keep(ISSUES, BOB)
    names = await desk.ask(bob, "SELECT count(*) AS n FROM result", BOB)
    assert names.startswith("n\n30")
    with pytest.raises(UnknownHandle):
        await desk.ask(bob, f"SELECT * FROM {people}", BOB)


async def test_at_most_eight_others_are_read_at_once(desk: Desk):
    issues = desk.keep(ISSUES)
    others = [desk.keep([{"a": one}, {"a": one}]) for one in range(9)]
    every = ", ".join(f"(SELECT max(a) FROM {one}) AS c{at}" for at, one in enumerate(others[:8]))
    assert (await desk.ask(issues, f"SELECT {every}")).splitlines()[1] == "0,1,2,3,4,5,6,7"
    joined = " UNION ALL ".join(f"SELECT a FROM {one}" for one in others)
    with pytest.raises(InvalidArguments, match="8 other results"):
        await desk.ask(issues, joined)


async def test_joined_tables_are_read_by_the_same_guard(desk: Desk):
    issues, people = desk.keep(ISSUES), desk.keep(PEOPLE)
    for harm in (f"DROP TABLE {people}", f"SELECT 1; DELETE FROM {people}", f"UPDATE {people} SET team = 'x'"):
        with pytest.raises(Refused):
            await desk.ask(issues, harm)


async def test_a_handle_within_a_text_or_as_an_alias_is_no_table(desk: Desk):
    issues = desk.keep(ISSUES)
    assert (await desk.ask(issues, "SELECT 'r123456789012345678' AS x LIMIT 1")).startswith("x\nr1234")
    assert (await desk.ask(issues, "SELECT count(*) AS n FROM result r12345")).startswith("n\n30")


async def test_schema_says_columns_types_and_the_number_of_rows(desk: Desk):
    rows: list[Json] = [{"n": 1, "x": 0.5, "who": "ann", "tags": ["a"], "gone": None}, {"n": 2, "x": 1, "ok": True}]
    answer = await desk.ask(desk.keep(rows), "schema")
    assert answer.splitlines()[:4] == ["column,type,rows", "n,integer,2", "x,number or integer,2", "who,text or null,2"]
    assert "tags,json or null,2" in answer
    assert "ok,null or boolean,2" in answer
    assert "ann" not in answer


def test_the_tools_description_grew_by_few_tokens():
    before = "Read more of a cut result: from offset, by grep (regex), JSON path, or SQL on table `result`."
    assert READ.description is not None
    assert METER.count(READ.description).tokens - METER.count(before).tokens <= 10
    assert READ.name in definition_text(READ)
