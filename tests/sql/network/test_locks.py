"""Does nothing change when nobody judges what is asked?

Every attack of `attacks.jsonl` goes straight to the engine, without the guard. What a second, all-powerful connection
sees is compared before and after, and what the next question over the same connection sees.
"""

import json
import re
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pymysql
import pytest

from sql.network.servers import NAME, Stage, nothing_runs
from ullage.errors import UllageError
from ullage.sql import Engine, Question
from ullage.table import Row

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S0:sql:read-only")]

ATTACKS = [json.loads(line) for line in (Path(__file__).parent / "attacks.jsonl").read_text("utf-8").splitlines()]
LONG = re.compile("sleep|benchmark|generate_series", re.IGNORECASE)
"""What would take all the time it is given."""
# Statistics that reading moves too, and whatever is said of databases and roles that are not ours.
MOVING = ("relpages", "reltuples", "relallvisible", "relfrozenxid", "relminmxid", "datfrozenxid", "datminmxid")
OURS = f"LIKE '{NAME}%'"
CATALOGUES = {
    **dict.fromkeys(("pg_class", "pg_proc", "pg_namespace", "pg_operator", "pg_extension", "pg_trigger"), "true"),
    **dict.fromkeys(("pg_rewrite", "pg_largeobject_metadata", "pg_default_acl", "pg_foreign_server"), "true"),
    **dict.fromkeys(("pg_replication_slots", "pg_tablespace", "pg_auth_members"), "true"),
    "pg_attribute": "attrelid >= 16384",
    "pg_database": f"datname {OURS}",
    "pg_prepared_xacts": f"database {OURS}",
}

# After each attack, and the rest once all are done.
SEEN_AT_ONCE = {
    "postgresql": {
        **{
            name: f"SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {name} t"
            for name in ("customers", "orders", "keywords", "pg_sequences", "pg_file_settings")
        },
        "users": "SELECT string_agg(r::text || s::text, '|' ORDER BY rolname) FROM pg_authid r "
        f"JOIN pg_db_role_setting s ON s.setrole = r.oid WHERE rolname {OURS} OR rolname = 'postgres'",
        "tables": "SELECT string_agg(relname, '|' ORDER BY relname) FROM pg_class WHERE oid >= 16384",
        "locks": "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
        f"WHERE locktype = 'advisory' AND datname {OURS}",
    },
    "mysql": {
        **{
            name: f"SELECT group_concat({columns} ORDER BY 1) FROM {name}"
            for name, columns in {"customers": "id, name", "orders": "id, total, note", "keywords": "number"}.items()
        },
        "users": "SELECT group_concat(host, user, priv ORDER BY host, user) FROM mysql.global_priv "
        f"WHERE user {OURS} OR user IN ('root', 'a')",
        "sequences": "SELECT next_not_cached_value FROM seq1",
        "tables": "SELECT group_concat(table_name, create_time ORDER BY table_name) FROM information_schema.tables "
        "WHERE table_schema = DATABASE()",
    },
}
SEEN_AT_LAST = {
    "postgresql": {
        **{
            name: f"SELECT md5(string_agg((to_jsonb(t) - '{{{','.join(MOVING)}}}'::text[])::text, '|' "
            f"ORDER BY (to_jsonb(t) - '{{{','.join(MOVING)}}}'::text[])::text)) FROM {name} t WHERE {ours}"
            for name, ours in CATALOGUES.items()
        },
        "settings": "SELECT md5(string_agg(name || setting, '|' ORDER BY name)) FROM pg_settings",
    },
    "mysql": {
        "grants": f"SELECT grantee, privilege_type FROM information_schema.schema_privileges WHERE table_schema {OURS}",
        "settings": "SELECT variable_name, variable_value FROM information_schema.global_variables "
        "WHERE variable_name NOT IN ('TIMESTAMP', 'GTID_BINLOG_POS') ORDER BY 1",
        "plugins": "SELECT count(*) FROM information_schema.plugins",
    },
}
# The first block in PL/pgSQL loads it, and it stays, with settings of its own at their defaults.
SETTINGS = (
    "SELECT md5(string_agg(name || setting, '|' ORDER BY name)) FROM pg_settings WHERE name NOT LIKE 'plpgsql.%' "
    "AND name NOT IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout')"
)
# A new session shows its user's limit of connections, a reset one the server's.
VARIABLES = (
    "SELECT md5(group_concat(variable_name, variable_value ORDER BY variable_name)) "
    "FROM information_schema.session_variables WHERE variable_name NOT IN ('TIMESTAMP', 'PSEUDO_THREAD_ID', "
    "'RAND_SEED1', 'RAND_SEED2', 'LAST_GTID', 'GTID_BINLOG_POS', 'INSERT_ID', 'LAST_INSERT_ID', "
    "'MAX_USER_CONNECTIONS', 'MAX_STATEMENT_TIME', 'LOCK_WAIT_TIMEOUT', 'INNODB_LOCK_WAIT_TIMEOUT')"
)
SEEN_FROM_WITHIN = {
    "postgresql": f"SELECT ({SETTINGS}), current_user, session_user, current_schema(), pg_my_temp_schema(), "
    "(SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_cursors WHERE name <> ''), "
    "(SELECT count(*) FROM pg_listening_channels())",
    "mysql": f"SELECT ({VARIABLES}), DATABASE(), CURRENT_USER(), CURRENT_ROLE(), @a, LAST_INSERT_ID(), "
    "IS_USED_LOCK('a'), @@tx_read_only, @@autocommit, @@sql_mode, @@character_set_client, @@in_transaction",
}

# What holds where only one lock does: categories of attacks, and those that change something all the same.
HELD_BY_READ_ONLY = {
    "postgresql": (
        *("multi_statement", "txn_control", "dml", "cte_write", "select_into", "ddl", "sequence"),
        *("explain_exec", "session_state", "user_code"),
    ),
    "mysql": ("multi_statement", "executable_comment", "write"),
}
EXCEPTIONS = {
    "all locks": {"postgresql": {}, "mysql": {}},
    # Who may write files of the server may do so in a transaction that only reads.
    "read-only": {"postgresql": {}, "mysql": {"mysql-011": ["files"]}},
    # Everybody may change the password and the settings of their own role.
    "role": {"postgresql": {"own-001": ["users"], "own-002": ["users"]}, "mysql": {"mysql-074": ["users"]}},
}


@pytest.fixture
def loot() -> Generator[Path]:
    """A folder that a server could write to."""
    with TemporaryDirectory(prefix=NAME) as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@dataclass(frozen=True)
class Watch:
    """What a second connection sees."""

    look: Callable[[str], list[Any]]
    kind: str
    loot: Path

    def attacks(self, *categories: str) -> list[tuple[str, str]]:
        return [
            (attack["id"], attack["sql"].replace("/tmp/sqlsec", str(self.loot)))
            for attack in ATTACKS
            if self.kind.startswith(attack["engine"]) and (not categories or attack["category"] in categories)
        ]

    def now(self) -> dict[str, Any]:
        seen = SEEN_AT_ONCE[self.kind]
        (row,) = self.look(f"SELECT {', '.join(f'({sql})' for sql in seen.values())}")
        return {**dict(zip(seen, row, strict=True)), "files": sorted(path.name for path in self.loot.iterdir())}

    def at_last(self) -> dict[str, Any]:
        return {name: self.look(sql) for name, sql in SEEN_AT_LAST[self.kind].items()}


async def within(engine: Engine, kind: str) -> list[Row]:
    return list((await engine.ask(Question(sql=SEEN_FROM_WITHIN[kind], rows=10, seconds=20))).rows)


def seconds_for(sql: str) -> float:
    return 0.15 if LONG.search(sql) else 20


async def tried(engine: Engine, sql: str) -> str:
    try:
        await engine.ask(Question(sql=sql, rows=10, seconds=seconds_for(sql)))
    except UllageError as error:
        return error.code
    return "answered"


def differing(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [name for name in before if before[name] != after[name]]


async def test_no_attack_changes_anything_that_others_or_the_next_question_could_see(
    stage: Stage, engine: Engine, loot: Path
) -> None:
    changed, answered = {}, 0
    with stage.looking() as look:
        watch = Watch(look, stage.kind, loot)
        last, before, mine = watch.at_last(), watch.now(), await within(engine, stage.kind)
        for attack, sql in watch.attacks():
            answered += await tried(engine, sql) == "answered"
            await nothing_runs(look, stage.kind)
            after, then = watch.now(), await within(engine, stage.kind)
            if (after, then) != (before, mine):
                changed[attack] = differing(before, after) or then
            before, mine = after, then
        assert changed == EXCEPTIONS["all locks"][stage.kind]
        assert watch.at_last() == last
    # The attacks do arrive: some are answered, and still leave nothing behind.
    assert answered > 10


async def test_a_transaction_that_only_reads_holds_a_role_that_may_do_everything(stage: Stage, loot: Path) -> None:
    engine, changed = stage.engine(stage.owner, concurrency=1), {}
    with stage.looking() as look:
        watch = Watch(look, stage.kind, loot)
        last, before = watch.at_last(), watch.now()
        for attack, sql in watch.attacks(*HELD_BY_READ_ONLY[stage.kind]):
            await tried(engine, sql)
            after = watch.now()
            if after != before:
                changed[attack] = differing(before, after)
            before = after
        await engine.close()
        assert changed == EXCEPTIONS["read-only"][stage.kind]
        assert watch.at_last() == last


@pytest.mark.parametrize("name", ["postgresql", "mysql"])
def test_the_role_alone_keeps_everything_from_changing(name: str, request: pytest.FixtureRequest, loot: Path) -> None:
    stage: Stage = request.getfixturevalue(name)
    changed = {}
    with stage.looking() as look:
        watch = Watch(look, stage.kind, loot)
        last, before = watch.at_last(), watch.now()
        for attack, sql in watch.attacks():
            without_other_locks(stage, sql)
            wait_for_the_end_of(look, stage)
            after = watch.now()
            if after != before:
                changed[attack] = differing(before, after)
                stage.renew()
                after = watch.now()
            before = after
        assert changed == EXCEPTIONS["role"][stage.kind]
        assert watch.at_last() == last


def wait_for_the_end_of(look: Callable[[str], list[Any]], stage: Stage) -> None:
    """What a session holds, it holds until the server has noticed that it is over."""
    sessions = {
        "postgresql": f"SELECT pid FROM pg_stat_activity WHERE usename = '{stage.reader.username}'",
        "mysql": f"SELECT id FROM information_schema.processlist WHERE user = '{stage.reader.username}'",
    }
    for _ in range(2_000):
        if not look(sessions[stage.kind]):
            return
        time.sleep(0.01)
    raise AssertionError("sessions of the reader are left")


def without_other_locks(stage: Stage, sql: str) -> None:
    seconds = seconds_for(sql)
    opening = {
        "postgresql": f"SET default_transaction_read_only = off; SET statement_timeout = {round(seconds * 1000)}",
        "mysql": f"SET max_statement_time = {seconds}",
    }
    with suppress(psycopg.Error, pymysql.err.Error), stage.looking(stage.reader) as look:
        look(opening[stage.kind])
        look(sql)
