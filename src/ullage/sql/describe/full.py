"""What is everything that is known of a table?

One line a column, key, index, constraint and trigger, in the words that SQL has for them.
"""

from ..structure import Column, ForeignKey, Index, Routine, Table, Trigger
from .words import full_name, on_one_line, rounded

__all__ = ["full", "routine_line"]

_ALLOWED = frozenset({None, "", "NO ACTION"})
"""What a foreign key does where nobody said otherwise."""


def full(table: Table) -> str:
    lines = [
        *(_column(column, table) for column in table.columns),
        *_key(table),
        *(_foreign_key(foreign) for foreign in table.foreign_keys),
        *(_index(index) for index in table.indexes),
        *(on_one_line(check) for check in table.checks),
        *(_trigger(trigger) for trigger in table.triggers),
        *([f"as {on_one_line(table.definition)}"] if table.definition else []),
    ]
    return "\n".join([_head(table), *(f"  {one}" for one in lines)])


def routine_line(routine: Routine) -> str:
    arguments = on_one_line(routine.arguments or "")
    returns = f" returns {on_one_line(routine.returns)}" if routine.returns else ""
    return f"{routine.kind} {full_name(routine)}({arguments}){returns}"


def _head(table: Table) -> str:
    size = "" if table.rows is None else f" {rounded(table.rows)} rows"
    return f"{table.kind} {full_name(table)}{size}{_comment(table.comment)}"


def _column(column: Column, table: Table) -> str:
    alone = table.primary_key == (column.name,)
    marks = (
        on_one_line(column.name),
        on_one_line(column.type),
        "primary key" if alone else "",
        "" if column.nullable or alone else "not null",
        f"default {on_one_line(column.default)}" if column.default is not None else "",
        "generated" if column.generated else "",
    )
    return " ".join(mark for mark in marks if mark) + _comment(column.comment)


def _comment(comment: str | None) -> str:
    return f" -- {on_one_line(comment)}" if comment else ""


def _key(table: Table) -> list[str]:
    """Where one column is the key, it says so itself."""
    return [f"primary key ({_listed(table.primary_key)})"] if len(table.primary_key) > 1 else []


def _foreign_key(foreign: ForeignKey) -> str:
    target = on_one_line(foreign.table) + (f"({_listed(foreign.to)})" if foreign.to else "")
    rules = (("on update", foreign.on_update), ("on delete", foreign.on_delete))
    said = "".join(f" {word} {rule.lower()}" for word, rule in rules if rule and rule not in _ALLOWED)
    return f"foreign key ({_listed(foreign.columns)}) references {target}{said}"


def _index(index: Index) -> str:
    return f"{'unique ' if index.unique else ''}index {on_one_line(index.name)} ({_listed(index.columns)})"


def _trigger(trigger: Trigger) -> str:
    when = " ".join(word.lower() for word in (trigger.timing, trigger.event) if word)
    return f"trigger {on_one_line(trigger.name)} {when}".rstrip()


def _listed(columns: tuple[str, ...]) -> str:
    return ", ".join(map(on_one_line, columns))
