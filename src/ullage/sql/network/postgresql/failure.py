"""What does an error of PostgreSQL mean to the one who asked?

A question that PostgreSQL refuses is `QueryFailed` with its SQLSTATE, place and hint; a connection that is no more is
`SourceFailed`. Its DETAIL is never passed on: it quotes rows.
"""

import psycopg

from ullage.errors import QueryFailed, UllageError

from ..address import Address
from ..wording import LOCKED, REACH, first_line, unreached, without_data, without_secrets

__all__ = ["CANCELED", "about_question", "is_loss", "not_opened"]

CANCELED = "57014"
_GONE = ("08", "57P")
"""Classes of SQLSTATE that end a connection."""
_LOCKED = "55P03"
_OF_NAMES = "42"
"""Class of SQLSTATE of syntax, rights and names; values that cannot be converted are of class 22."""
_REMEDIES = (
    ("password authentication failed", "Check the user and the password in the database's URL."),
    ("no password supplied", "Put the password into the database's URL."),
    ("no pg_hba.conf entry", "Allow this machine and role in the server's pg_hba.conf."),
    ("does not exist", "Check the names of the database and the role in the database's URL."),
    ("too many", "Wait for other clients to leave, or allow the role more connections."),
)


def is_loss(error: psycopg.Error, *, is_closed: bool) -> bool:
    return is_closed or (error.sqlstate or "").startswith(_GONE)


def about_question(error: psycopg.Error, sql: str) -> UllageError:
    diagnostic = error.diag
    primary = diagnostic.message_primary or first_line(str(error)) or type(error).__name__
    code = f"{error.sqlstate}: " if error.sqlstate else ""
    place = f" (at character {diagnostic.statement_position})" if diagnostic.statement_position else ""
    hint = diagnostic.message_hint or ""
    if error.sqlstate == _LOCKED:
        hint = LOCKED
    # What the server quotes where it cannot understand a statement is a name, also one that it completed itself.
    said = primary if (error.sqlstate or "").startswith(_OF_NAMES) else without_data(primary, sql, '"')
    return QueryFailed(code + said + place, suggestion=hint)


def not_opened(error: psycopg.Error, address: Address) -> UllageError:
    said = without_secrets(first_line(str(error)), address.secrets)
    remedy = next((remedy for sign, remedy in _REMEDIES if sign in said), REACH)
    return unreached(address.shown, said, remedy)
