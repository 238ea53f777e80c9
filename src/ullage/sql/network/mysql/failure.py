"""What does an error of MySQL mean to the one who asked?"""

import pymysql

from ullage.errors import QueryFailed, UllageError

from ..address import Address
from ..wording import LOCKED, REACH, first_line, late, lost, unreached, without_data, without_secrets

__all__ = ["about_question", "not_opened"]

_TIMED_OUT = frozenset({1969, 3024})
_GONE = frozenset({0, 1053, 1079, 1080, 1927, 2006, 2013, 2014, 2055, 4031})
_LOCKED = frozenset({1205, 1213})
# Their quoted words are names, or the statement's own: unknown columns, tables and functions, rights, syntax.
_OF_NAMES = frozenset(
    {1044, 1046, 1049, 1052, 1054, 1055, 1060, 1064, 1066, 1109, 1140, 1142, 1143, 1146, 1222, 1227, 1235, 1247, 1248}
    | {1176, 1290, 1305, 1370, 1792, 4166}
)
_REMEDIES = {
    1045: "Check the user and the password in the database's URL.",
    1698: "Check the user and the password in the database's URL.",
    1044: "Check the name of the database in its URL, and that the user may use it.",
    1049: "Check the name of the database in its URL.",
    1040: "Wait for other clients to leave, or allow the server more connections.",
    1203: "Wait for other clients to leave, or allow the user more connections.",
    1226: "Wait for other clients to leave, or allow the user more connections.",
}


def about_question(error: "pymysql.err.Error", sql: str) -> UllageError:
    number = _number(error)
    if number in _TIMED_OUT:
        return late()
    if number is None or number in _GONE:
        return lost()
    said = first_line(_said(error))
    message = said if number in _OF_NAMES else without_data(said, sql, "'")
    return QueryFailed(f"{number}: {message}", suggestion=LOCKED if number in _LOCKED else "")


def not_opened(error: Exception, address: Address) -> UllageError:
    said = without_secrets(first_line(_said(error)), address.secrets)
    return unreached(address.shown, said, _REMEDIES.get(_number(error) or 0, REACH))


def _said(error: BaseException) -> str:
    return str(error.args[-1]) if error.args else type(error).__name__


def _number(error: BaseException) -> int | None:
    """The server's, or one of the client's from 2000 on."""
    number = error.args[0] if error.args else None
    return number if isinstance(number, int) else None
