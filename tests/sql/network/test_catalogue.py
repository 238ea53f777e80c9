"""What is known of a server's tables and functions?"""

import pytest

from sql.network.servers import NAME, Stage, run
from ullage.sql import Column, ForeignKey, Index, Routine, Structure, Table

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S0:sql:schema")]

HOSTILE = """
CREATE SCHEMA made;
CREATE FUNCTION made.lower(name) RETURNS text LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$reached$$; END';
CREATE FUNCTION made.obj_description(oid, text) RETURNS text LANGUAGE plpgsql
  AS 'BEGIN RAISE EXCEPTION $$reached$$; END';
CREATE FUNCTION made.pg_get_viewdef(oid, boolean) RETURNS text LANGUAGE plpgsql
  AS 'BEGIN RAISE EXCEPTION $$reached$$; END';
CREATE FUNCTION made.has_database_privilege(oid, name, text) RETURNS boolean LANGUAGE plpgsql
  AS 'BEGIN RAISE EXCEPTION $$reached$$; END';
CREATE FUNCTION made.full_name(public.customers) RETURNS text LANGUAGE sql AS 'SELECT $1.name';
CREATE FUNCTION made.same(oid, oid) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$reached$$; END';
CREATE OPERATOR made.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = made.same);
CREATE TYPE made.mood AS ENUM ('good', 'bad');
CREATE TABLE made.pg_class (oid oid);
"""


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


async def test_the_structure_of_postgresql_has_its_own_features(postgresql: Stage) -> None:
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


async def test_the_structure_of_mysql_has_its_own_features(mysql: Stage) -> None:
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


async def test_mysql_lists_only_user_defined_functions_that_the_role_may_see(mysql: Stage) -> None:
    engine, owner = mysql.engine(), mysql.engine(mysql.owner)
    assert await engine.functions() == {}
    made = await owner.functions()
    assert {name for name in made if not name.startswith("shows:")} == {"f_one"}
    assert engine.dialect == "mysql"
    await engine.close()
    await owner.close()


async def test_what_users_made_counts_where_a_name_without_its_schema_can_mean_it(postgresql: Stage) -> None:
    run(postgresql.owner, HOSTILE)
    engine = postgresql.engine(postgresql.owner.update_query_dict({"options": "-csearch_path=made,public,pg_catalog"}))
    near, other = await engine.functions(), postgresql.engine(postgresql.owner)
    far = await other.functions()
    assert [near[name] for name in ("lower", "obj_description", ".full_name", "=", "::mood")] == ["made"] * 4 + [
        "immutable"
    ]
    assert [far.get(name) for name in ("lower", "full_name", ".full_name", "=")] == ["immutable", None, None, None]
    assert "::made.mood" in far
    # Our own questions reach none of them, though they lie before PostgreSQL's own.
    assert table(await engine.structure(), "customers", "public").comment == "who buys"
    assert (await engine.probe()).can_write
    await engine.close()
    await other.close()
    run(postgresql.owner, "DROP SCHEMA made CASCADE")
