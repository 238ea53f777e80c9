"""Which connection does a URL of MySQL ask for?

What weakens a lock (LOCAL INFILE, several statements, commands on connecting) cannot be asked for.
"""

from sqlalchemy import URL

from ullage.errors import BadConfiguration

__all__ = ["connect_options"]

_TEXTS = frozenset({"unix_socket", "ssl_ca", "ssl_cert", "ssl_key", "ssl_key_password", "bind_address", "charset"})
_SWITCHES = frozenset({"ssl_disabled", "ssl_verify_cert", "ssl_verify_identity"})
_TRUE = frozenset({"1", "true", "yes", "on"})
_PORT = 3306


def connect_options(url: URL) -> dict[str, object]:
    return {
        **{name: _option(name, value) for name, value in url.query.items()},
        "host": url.host or "localhost",
        "port": url.port or _PORT,
        "user": url.username,
        # The driver would write text as Latin-1, the server reads UTF-8.
        "password": str(url.password or "").encode(),
        "database": url.database or None,
        "charset": "utf8mb4",
    }


def _option(name: str, value: str | tuple[str, ...]) -> object:
    if isinstance(value, str) and name in _TEXTS:
        return value
    if isinstance(value, str) and name in _SWITCHES:
        return value.lower() in _TRUE
    raise BadConfiguration(f"`{name}` is no option of a MySQL database here", options=tuple(sorted(_TEXTS | _SWITCHES)))
