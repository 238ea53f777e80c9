"""Where can a client read what is in a database, without calling a tool?

`sql://NAME/schema` for all of it and `sql://NAME/tables/TABLE` for one table. Addresses only; what is read there is
told elsewhere.
"""

from urllib.parse import quote, unquote

from ullage.errors import UnknownResource
from ullage.tool import JsonObject

__all__ = ["resource_of", "table_of", "template_of"]

_PLAIN = "text/plain"


def resource_of(name: str) -> JsonObject:
    return {
        "uri": _schema(name),
        "name": f"{name} schema",
        "description": f"The tables and columns of the database `{name}`",
        "mimeType": _PLAIN,
    }


def template_of(name: str) -> JsonObject:
    return {
        "uriTemplate": f"{_tables(name)}{{table}}",
        "name": f"{name} table",
        "description": f"One table of the database `{name}` in full",
        "mimeType": _PLAIN,
    }


def table_of(name: str, uri: str) -> str | None:
    """The table that an address means, None for the whole schema; raises for any other address."""
    if uri == _schema(name):
        return None
    table = unquote(uri.removeprefix(_tables(name)))
    if not uri.startswith(_tables(name)) or not table:
        raise UnknownResource(f"nothing is at `{uri}`", options=(_schema(name), f"{_tables(name)}{{table}}"))
    return table


def _schema(name: str) -> str:
    return f"sql://{quote(name, safe='')}/schema"


def _tables(name: str) -> str:
    return f"sql://{quote(name, safe='')}/tables/"
