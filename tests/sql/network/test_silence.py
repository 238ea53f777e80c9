"""Do deadlines hold when a server says nothing at all?"""

import threading
import time
from dataclasses import replace

import anyio
import pytest

from sql.network.servers import PORTS, Stage, nothing_runs
from sql.network.silence import between
from ullage.errors import DeadlinePassed, QueryFailed, SourceFailed
from ullage.sql import Answer, Limits, Question
from ullage.sql.network.database_pool import Pool, SeverableSession, _Opening

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S0:sql:engines")]

ONE = Question(sql="SELECT 1", rows=10, seconds=20)


async def test_a_server_that_falls_silent_is_left_at_the_deadline(stage: Stage) -> None:
    with between(stage.reader.host or "127.0.0.1", stage.reader.port or PORTS[stage.kind]) as silent:
        engine = stage.engine(stage.reader.set(host="127.0.0.1", port=silent.port), concurrency=1)
        await engine.ask(ONE)
        silent.fall_silent()
        for _ in range(2):
            started = time.monotonic()
            with pytest.raises(DeadlinePassed):
                await engine.ask(replace(ONE, seconds=0.3))
            assert time.monotonic() - started < 10
        silent.speak()
        assert (await engine.ask(ONE)).rows == ((1,),)
        with stage.looking() as look:
            await nothing_runs(look, stage.kind)
        await engine.close()


class Fake:
    """A session that does what it is told to, and says when it was closed."""

    def __init__(self, *, begins: Exception | None = None, cleans_after: float = 0.0, is_clean: bool = True) -> None:
        self.closed = threading.Event()
        self.interrupted = threading.Event()
        self._begins = begins
        self._cleans_after = cleans_after
        self._is_clean = is_clean

    def begin(self, seconds: float, rows: int | None) -> None:
        if self._begins is not None:
            raise self._begins

    def ask(self, question: Question, limits: Limits) -> Answer:
        return Answer(columns=(), rows=(), more=False)

    def clean(self) -> bool:
        time.sleep(self._cleans_after)
        return self._is_clean

    def interrupt(self) -> None:
        self.interrupted.set()

    def fileno(self) -> None:
        return None

    def close(self) -> None:
        self.closed.set()


def pool_of(*sessions: Fake) -> Pool:
    left = list(sessions)
    return Pool(lambda _: left.pop(0), size=1, shown="shop")  # pyright: ignore[reportArgumentType]


async def asked(pool: Pool, *, seconds: float = 20) -> Answer:
    return await pool.use(lambda session: session.ask(ONE, Limits()), seconds=seconds, rows=10)


async def test_a_connection_that_comes_too_late_is_closed(anyio_backend: str) -> None:
    session, started = Fake(), threading.Event()

    def open_late(_: float) -> Fake:
        started.set()
        time.sleep(0.3)
        return session

    pool = Pool(open_late, size=1, shown="shop")  # pyright: ignore[reportArgumentType]
    with pytest.raises(DeadlinePassed):
        await asked(pool, seconds=0.1)
    assert started.is_set()
    assert await anyio.to_thread.run_sync(session.closed.wait, 20)


async def test_a_connection_on_which_nothing_can_begin_is_closed() -> None:
    session = Fake(begins=QueryFailed("no"))
    with pytest.raises(QueryFailed):
        await asked(pool_of(session))
    assert session.closed.is_set()


async def test_an_answer_is_given_though_its_connection_cannot_be_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ullage.sql.network.database_pool._GRACE", 1.0)
    slow, dirty, clean = Fake(cleans_after=1.5), Fake(is_clean=False), Fake()
    pool = pool_of(slow, dirty, clean)
    for _ in range(3):
        assert not (await asked(pool)).more
    assert slow.interrupted.is_set()
    assert await anyio.to_thread.run_sync(slow.closed.wait, 20)
    assert dirty.closed.is_set()
    assert not clean.closed.is_set()
    await pool.close()
    assert clean.closed.is_set()


async def test_a_connection_that_lay_idle_for_long_is_not_used_again() -> None:
    first, second = Fake(), Fake()
    pool = pool_of(first, second)
    await asked(pool)
    pool._idle = [(held, since - 61) for held, since in pool._idle]
    await asked(pool)
    assert first.closed.is_set()
    await pool.close()


async def test_a_pool_that_is_closed_meanwhile_keeps_no_connection() -> None:
    session = Fake(cleans_after=0.1)
    pool = pool_of(session)
    async with anyio.create_task_group() as group:
        group.start_soon(asked, pool)
        await anyio.sleep(0.05)
        await pool.close()
    assert session.closed.is_set()
    with pytest.raises(SourceFailed):
        await asked(pool)


def test_a_session_is_closed_once_and_used_no_more() -> None:
    session = Fake()
    held = SeverableSession(session)  # pyright: ignore[reportArgumentType]
    held.sever()
    assert session.closed.is_set()
    session.closed.clear()
    held.sever()
    assert not session.closed.is_set()
    with pytest.raises(SourceFailed):
        held.run(lambda one: one.clean())


async def test_a_connection_that_came_in_the_moment_of_giving_up_is_closed() -> None:
    session = Fake()
    opening = _Opening(lambda _: session, 1.0)  # pyright: ignore[reportArgumentType]
    opening.run()
    opening.abandon()
    assert session.closed.is_set()


async def test_an_unforeseen_error_ends_the_connection() -> None:
    session = Fake(begins=ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await asked(pool_of(session))
    assert session.closed.is_set()
