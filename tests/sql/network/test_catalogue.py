"""What is known of a server's tables and functions?"""

import pytest

from sql.network.servers import NAME, Stage
from ullage.sql import Column, Engine, ForeignKey, Index, Routine, Structure, Table

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S0:sql:schema")]


def table(structure: Structure, name: str, schema: str | None = None) -> Table:
    return next(one for one in structure.tables if (one.name, one.schema) == (name, schema))


async def test_tables_are_described_whole(stage: Stage) -> None:
    engine = stage.engine(stage.owner)
    structure = await engine.structure()
    await engine.close()
    assert structure.name == NAME
    assert [one.name for one in structure.tables] == sorted(one.name for one in structure.tables)
    orders, customers, large = (table(structure, name) for name in ("orders", "customers", "large"))
    assert orders.primary_key == ("id",)
    assert orders.foreign_keys == (
        ForeignKey(
            columns=("customer_id",),
            table="customers",
            to=("id",),
            name="bought_by",
            on_update="NO ACTION" if stage.kind == "postgresql" else "RESTRICT",
            on_delete="CASCADE",
        ),
    )
    assert Index(name="by_note", columns=("note", "total")) in orders.indexes
    assert not any("id" in index.columns and index.unique for index in orders.indexes)
    assert any("total" in check and ">=" in check for check in orders.checks)
    assert (large.kind, large.rows) == ("view", None)
    assert "50" in (large.definition or "")
    assert [column.name for column in customers.columns] == ["id", "name", "email"]
    assert customers.columns[1].nullable is False
    assert "none" in (customers.columns[2].default or "")
    (trigger,) = [one for one in orders.triggers if one.name == "watch"]
    assert (trigger.timing, (trigger.event or "").split()[0]) == ("BEFORE", "INSERT")
    assert trigger.statement


async def test_postgresql_tells_what_only_it_has(postgresql: Stage) -> None:
    engine = postgresql.engine()
    structure = await engine.structure()
    customers, odd = table(structure, "customers"), table(structure, 'odd " name', "other")
    assert (customers.rows, customers.comment) == (3, "who buys")
    assert customers.columns[2].comment == "may be none"
    assert odd.rows is None
    assert {column.name: column.generated for column in odd.columns} == {
        **dict.fromkeys(("id", "twice", "number"), True),
        **dict.fromkeys(("parent", "tags"), False),
    }
    assert odd.columns[4].type == "text[]"
    assert odd.foreign_keys[0].table == "customers"
    assert any("EXCLUDE" in check for check in odd.checks)
    assert table(structure, "large").triggers[0].timing == "INSTEAD OF"
    assert Routine(name="p_write", kind="procedure", arguments="IN a integer DEFAULT 1") in structure.routines
    assert Routine(name="f_write", kind="function", arguments="", returns="integer") in structure.routines
    assert not any(routine.name in ("f_trigger", "dblink", "citext") for routine in structure.routines)
    await engine.close()


async def test_mysql_tells_what_only_it_has(mysql: Stage) -> None:
    engine = mysql.engine(mysql.owner)
    structure = await engine.structure()
    keywords = table(structure, "keywords")
    assert keywords.columns[1] == Column(
        name="number", type="int(11)", nullable=False, generated=True, comment="counts"
    )
    assert keywords.columns[2].generated
    assert Routine(name="p_write", kind="procedure", arguments="IN a int(11), OUT b int(11)") in structure.routines
    assert Routine(name="f_one", kind="function", arguments="a int(11)", returns="int(11)") in structure.routines
    await engine.close()


async def test_without_a_database_all_of_the_users_are_described(mysql: Stage) -> None:
    engine = mysql.engine(mysql.reader.set(database=""))
    structure = await engine.structure()
    assert structure.name is None
    assert table(structure, "orders", NAME).foreign_keys[0].table == f"{NAME}.customers"
    assert "mysql" not in {one.schema for one in structure.tables}
    await engine.close()


async def test_functions_are_as_stable_as_the_least_stable_of_their_name(postgresql: Stage) -> None:
    engine = postgresql.engine()
    functions = await engine.functions()
    assert (functions["lower"], functions["now"], functions["random"]) == ("immutable", "stable", "volatile")
    # What users wrote says of itself what it likes; an extension's word is taken.
    assert functions["f_definer"] == "made"
    assert functions["max"] == "immutable"
    assert await engine.functions() is functions
    await engine.close()


async def test_mysql_cannot_tell_of_its_functions(mysql: Stage) -> None:
    engine: Engine = mysql.engine()
    assert await engine.functions() == {}
    assert engine.dialect == "mysql"
    await engine.close()
