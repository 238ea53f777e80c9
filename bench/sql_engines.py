"""Do the locks behind the parser hold, with the parser's lock open?

Each engine gets a shop of its own and, where it has roles, the role whose SQL its own probe prints. Every attack is
then asked of the engine as if it had been allowed, and somebody with all rights looks for what changed, and the next
question for what was left behind in its session.
"""

import secrets
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import anyio

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "sql"))

from fuzz.cases import Case
from fuzz.effects import CANARIES, SESSION
from fuzz.stage import Stage, connect_mysql, connect_postgres
from fuzz.traces import Traces, Watch, changes, watch

from ullage.errors import DeadlinePassed, QueryFailed, Refused, UllageError
from ullage.sql import DatabaseSettings, Dialect, Engine, Limits, Question, Stability
from ullage.sql.embedded import EmbeddedEngine
from ullage.sql.guard import judge
from ullage.sql.network import network_engine

LIMITS = Limits(seconds=2.0)
SLACK = 1.0
"""Beyond the deadline, on a machine that does other things too."""
READER = "ullage_reader"
"""As the generated SQL names the role; here it bears a number, so that two runs do not meet."""
EXCEPTIONS: dict[tuple[str, str], str] = {}
"""What may change though nothing should: engine and trace, with the reason."""


@dataclass(slots=True)
class Outcome:
    engine: str
    ends: Counter[str] = field(default_factory=Counter[str])
    """How questions ended: `refused`, `failed`, `answered`, `deadline`, `lost`."""
    changed: list[str] = field(default_factory=list[str])
    left: list[str] = field(default_factory=list[str])
    told: list[str] = field(default_factory=list[str])
    """Answers that held what lies outside the database."""
    late: list[str] = field(default_factory=list[str])
    excused: Counter[str] = field(default_factory=Counter[str])

    @property
    def failures(self) -> list[str]:
        groups = {"changed": self.changed, "left behind": self.left, "late": self.late}
        return [f"{self.engine} {name}: {each}" for name, group in groups.items() for each in group]


@asynccontextmanager
async def reading(stage: Stage) -> AsyncIterator[Engine]:
    """The engine as somebody opens it who did what the probe advises."""
    if stage.folder is not None:
        dialect: Any = stage.engine
        path = Path(stage.url.partition(":///")[2])
        engine: Engine = EmbeddedEngine(path, dialect=dialect, limits=LIMITS)
        async with _closing(engine):
            yield engine
        return
    owner = network_engine(DatabaseSettings(name="owner", url=stage.url, limits=LIMITS))
    async with _closing(owner):
        setup = (await owner.probe()).setup_sql
    with _role(stage, setup) as url:
        async with _closing(network_engine(DatabaseSettings(name="reader", url=url, limits=LIMITS))) as engine:
            assert not (await engine.probe()).can_write, "the generated role can write"
            yield engine


@asynccontextmanager
async def _closing(engine: Engine) -> AsyncIterator[Engine]:
    try:
        yield engine
    finally:
        await engine.close()


@contextmanager
def _role(stage: Stage, setup: str) -> Iterator[str]:
    name, password = f"{READER}_{secrets.token_hex(4)}", secrets.token_hex(8)
    lines = [line for line in setup.splitlines() if not line.startswith("--")]
    script = "\n".join(lines).replace(READER, name).replace("<password>", f"'{password}'")
    parts = urlsplit(stage.url)
    address = parts._replace(netloc=f"{name}:{password}@{parts.netloc.rpartition('@')[2]}").geturl()
    made = _postgres_role if stage.engine == "postgres" else _mysql_role
    with made(stage, script, name):
        yield address


@contextmanager
def _postgres_role(stage: Stage, script: str, name: str) -> Iterator[None]:
    with connect_postgres(stage.url) as owner:
        owner.execute(script.encode())
        try:
            yield
        finally:
            owner.execute(f"DROP OWNED BY {name}; DROP ROLE {name}".encode())


@contextmanager
def _mysql_role(stage: Stage, script: str, name: str) -> Iterator[None]:
    with connect_mysql(stage.url) as owner, owner.cursor() as cursor:
        for statement in script.split(";\n"):
            if statement.strip():
                cursor.execute(statement)
        try:
            yield
        finally:
            cursor.execute(f"DROP USER '{name}'@'%'")


async def attack(stage: Stage, cases: Sequence[Case], *, guarded: bool) -> Outcome:
    """Every case asked of the engine; judged first where it is guarded."""
    outcome, watcher = Outcome(stage.engine), watch(stage)
    try:
        async with reading(stage) as engine:
            known = await engine.functions()
            session = await _session(engine)
            before = watcher.traces()
            for number, case in enumerate(cases, 1):
                _progress(stage.engine, number, len(cases))
                if guarded and _is_refused(case, known):
                    outcome.ends["refused"] += 1
                    continue
                await _ask(engine, case, outcome)
                before = await _look(watcher, before, case, outcome)
                session = await _look_behind(engine, session, case, outcome)
    finally:
        watcher.close()
    return outcome


def _is_refused(case: Case, known: Mapping[str, Stability]) -> bool:
    try:
        judge(case.sql, cast("Dialect", case.dialect), functions=known)
    except Refused:
        return True
    return False


async def _ask(engine: Engine, case: Case, outcome: Outcome) -> None:
    started = time.monotonic()
    try:
        answer = await engine.ask(Question(sql=case.sql, rows=LIMITS.rows, seconds=LIMITS.seconds))
        end, shown = "answered", str(answer.rows)
    except UllageError as error:
        end, shown = _named(error), error.message
    outcome.ends[end] += 1
    if any(each in shown and each not in case.sql for each in CANARIES):
        outcome.told.append(f"{case.id} {case.sql!r}")
    if (took := time.monotonic() - started) > LIMITS.seconds + SLACK:
        outcome.late.append(f"{case.id} took {took:.1f} s: {case.sql!r}")


def _named(error: UllageError) -> str:
    return "deadline" if isinstance(error, DeadlinePassed) else "failed" if isinstance(error, QueryFailed) else "lost"


async def _look(watcher: Watch, before: Traces, case: Case, outcome: Outcome) -> Traces:
    """Twice where something changed: what was ended at its deadline may still be on its way out."""
    after = watcher.traces()
    if changes(before, after):
        await anyio.sleep(SLACK)
        after = watcher.traces()
    for change in changes(before, after):
        reason = EXCEPTIONS.get((outcome.engine, change))
        if reason:
            outcome.excused[f"{change}: {reason}"] += 1
        else:
            outcome.changed.append(f"{change} by {case.id} {case.sql!r}")
    return after


async def _look_behind(engine: Engine, before: list[str], case: Case, outcome: Outcome) -> list[str]:
    after = await _session(engine)
    if after != before:
        outcome.left.append(f"{case.id} {case.sql!r}: {after}, which was {before}")
    return after


async def _session(engine: Engine) -> list[str]:
    """What the next question finds in its session; what may not be asked there says so."""
    return [await _answer(engine, sql) for sql in SESSION[engine.dialect]]


async def _answer(engine: Engine, sql: str) -> str:
    try:
        return str((await engine.ask(Question(sql=sql, rows=10, seconds=LIMITS.seconds))).rows)
    except QueryFailed as error:
        return error.message


def _progress(engine: str, number: int, total: int) -> None:
    if sys.stderr.isatty() or number % 50 == 0:
        print(f"\r{engine}: {number} of {total}", end="" if number < total else "\n", file=sys.stderr, flush=True)
