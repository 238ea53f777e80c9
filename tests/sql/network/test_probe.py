"""What does a role's probe say, and does the SQL that it prints make one that only reads?"""

import pytest

from sql.network.servers import NAME, Stage, run
from ullage.sql import Limits
from ullage.sql.network.mysql import probe as of_grants

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S0:sql:read-only")]


async def test_the_role_that_our_sql_makes_can_only_read(stage: Stage) -> None:
    engine = stage.engine()
    probe = await engine.probe()
    assert probe.can_write == ()
    assert (probe.role or "").split("@")[0] == stage.reader.username
    await engine.close()


async def test_who_may_do_everything_is_told_so(stage: Stage) -> None:
    engine = stage.engine(stage.owner)
    said = (await engine.probe()).can_write
    assert {"postgresql": "is a superuser", "mysql": "may use ALL PRIVILEGES on *.*"}[stage.kind] in said
    await engine.close()


async def test_the_sql_for_a_reader_runs_only_with_a_password_of_the_users_own(stage: Stage) -> None:
    engine = stage.engine(stage.owner)
    sql = (await engine.probe()).setup_sql
    await engine.close()
    assert "<password>" in sql
    with stage.looking() as look, pytest.raises(Exception, match="syntax"):
        look(sql.partition(";\n")[0])


async def test_every_right_of_a_postgresql_role_is_named(postgresql: Stage) -> None:
    role = f"{NAME}_writer"
    run(
        postgresql.owner,
        f"CREATE ROLE {role} LOGIN CREATEDB CREATEROLE BYPASSRLS NOINHERIT PASSWORD 'x'",
        f"GRANT pg_signal_backend, {postgresql.owner.username} TO {role}",
    )
    try:
        engine = postgresql.engine(postgresql.owner.set(username=role, password="x"))
        said = (await engine.probe()).can_write
        await engine.close()
        assert said[:3] == ("may create databases", "may create roles", "sees rows that row security hides")
        assert "may act as `pg_signal_backend`" in said
        assert f"may act as the superuser `{postgresql.owner.username}`" in said
        run(postgresql.owner, f"REVOKE {postgresql.owner.username} FROM {role}")
        for grant in (
            "INSERT (name) ON customers",
            "DELETE, TRUNCATE ON orders, customers, keywords, large",
            "CREATE ON SCHEMA other",
            f"CREATE, TEMPORARY ON DATABASE {NAME}",
            "USAGE ON SEQUENCE seq1",
            "EXECUTE ON FUNCTION f_definer(), lo_create(oid)",
        ):
            run(postgresql.owner, f"GRANT {grant} TO {role}")
        engine = postgresql.engine(postgresql.owner.set(username=role, password="x"))
        said = (await engine.probe()).can_write
        await engine.close()
        assert said[4:] == (
            "may create schemas",
            "may create temporary tables",
            "may create tables in other",
            "may make and change large objects",
            "may INSERT into public.customers",
            "may DELETE in public.customers, public.keywords, public.large and 1 more tables",
            "may TRUNCATE in public.customers, public.keywords, public.large and 1 more tables",
            "may advance public.seq1",
            "may call public.f_definer, which acts as its owner",
        )
    finally:
        run(postgresql.owner, f"DROP OWNED BY {role}", f"DROP ROLE {role}")


@pytest.mark.parametrize(
    ("grant", "said"),
    [
        ("GRANT USAGE ON *.* TO `a`@`%` IDENTIFIED BY PASSWORD '*1'", ()),
        ("GRANT SELECT (a, b), INSERT (c) ON `d`.`t` TO `a`@`%`", ("may use INSERT on `d`.`t`",)),
        ("GRANT SELECT, SHOW VIEW ON `d`.* TO `a`@`%`", ()),
        ("GRANT FILE, PROCESS, SUPER ON *.* TO `a`@`%`", ("may use FILE, PROCESS, SUPER on *.*",)),
        ("GRANT SELECT ON `d`.* TO `a`@`%` WITH GRANT OPTION", ("may grant its rights on `d`.*",)),
        ("GRANT `admin` TO `a`@`%`", ("may act as `admin`",)),
        ("SET DEFAULT ROLE `admin` FOR `a`@`%`", ()),
    ],
)
def test_grants_of_mysql_are_put_into_words(grant: str, said: tuple[str, ...]) -> None:
    probe = of_grants({"role": [("a@%",)], "grants": [(grant,)], "databases": [("a_b`c",)]}, Limits())
    assert probe.can_write == said
    assert "ON `a\\_b``c`.* TO" in probe.setup_sql
