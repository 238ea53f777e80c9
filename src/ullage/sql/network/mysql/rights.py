"""What could a MySQL user do if every other lock were open?

What `SHOW GRANTS` says, less what only reads; and the SQL for a user who can only read.
"""

import re
from collections.abc import Mapping

from ullage.table import Row

from ...engine import Limits, Probe
from .queries import INNER

__all__ = ["READER", "RIGHTS", "probe"]

READER = "ullage_reader"
_SPARE = 3
"""Connections for each question at one time: one that is ending, one that is beginning, one to end another."""
_READING = frozenset({"USAGE", "SELECT", "SHOW VIEW", "SHOW DATABASES"})
_GRANT = re.compile(r"GRANT (?P<rights>.+?) ON (?P<place>.+?) TO (?P<rest>.+)", re.DOTALL)
_ROLE = re.compile(r"GRANT (?P<roles>[^()]+?) TO .+", re.DOTALL)
_COLUMNS = re.compile(r" ?\([^)]*\)")

RIGHTS = {
    "role": "SELECT CURRENT_USER()",
    "grants": "SHOW GRANTS",
    "databases": "SELECT schema_name FROM information_schema.schemata WHERE schema_name = DATABASE() "
    f"OR DATABASE() IS NULL AND schema_name NOT IN {INNER} ORDER BY 1",
}


def probe(found: Mapping[str, list[Row]], limits: Limits) -> Probe:
    said = [word for (grant,) in found["grants"] for word in _words(str(grant))]
    return Probe(
        role=str(found["role"][0][0]),
        can_write=tuple(dict.fromkeys(said)),
        setup_sql=_setup_sql([str(name) for (name,) in found["databases"]], limits),
    )


def _words(grant: str) -> list[str]:
    found = _GRANT.fullmatch(grant)
    if found is None:
        # Neither rights nor a role: the line that says which role is active.
        role = _ROLE.fullmatch(grant)
        return [] if role is None else [f"may act as {role['roles']}"]
    named = [right.strip() for right in _COLUMNS.sub("", found["rights"]).split(",")]
    writing = [right for right in named if right.upper() not in _READING]
    said = [f"may use {', '.join(writing)} on {found['place']}"] if writing else []
    return [*said, f"may grant its rights on {found['place']}"] if "WITH GRANT OPTION" in found["rest"] else said


def _setup_sql(databases: list[str], limits: Limits) -> str:
    lines = [
        "-- A user who can only read. Replace <password> by a password in quotes and % by this machine's address, and",
        "-- run this as an administrator.",
        f"CREATE USER '{READER}'@'%' IDENTIFIED BY <password> WITH MAX_USER_CONNECTIONS {_SPARE * limits.concurrency};",
        *(f"GRANT SELECT, SHOW VIEW ON {_quoted(name)}.* TO '{READER}'@'%';" for name in databases),
    ]
    return "\n".join(lines) + "\n"


def _quoted(name: str) -> str:
    """In a grant, _ and % stand for any character."""
    return "`" + re.sub(r"([_%\\])", r"\\\1", name).replace("`", "``") + "`"
