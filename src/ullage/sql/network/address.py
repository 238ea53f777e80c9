"""Which server does a URL mean, and what may be said of it?

A URL becomes an `Address` whose secrets stay in `url`. Nothing is opened here.
"""

from dataclasses import dataclass, field
from typing import Literal

from sqlalchemy import URL

from ullage.store import read_url

from ..dialect import served_dialect
from ..engine import Dialect

__all__ = ["Address"]

Kind = Literal["postgresql", "mysql", "other"]

_KINDS: dict[str, Kind] = {"postgresql": "postgresql", "postgres": "postgresql", "mysql": "mysql", "mariadb": "mysql"}
_ACCEPTED = ("postgresql://user@host/database", "mysql://user@host/database")
_SECRET_PARTS = ("password", "secret", "token", "key")
"""What the name of a URL's parameter holds whose value is nobody's business."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    url: URL = field(repr=False)
    """Whole, with its password."""
    shown: str
    """For people: no user, no password, no query."""
    kind: Kind
    dialect: Dialect

    @classmethod
    def of(cls, where: str) -> "Address":
        url = read_url(where, _ACCEPTED)
        name = url.get_backend_name()
        shown = URL.create(name, host=url.host, port=url.port, database=url.database)
        return cls(
            url=url,
            shown=shown.render_as_string(),
            kind=_KINDS.get(name, "other"),
            dialect=served_dialect(name),
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no text may repeat, longest first."""
        named = [
            value
            for name, value in self.url.query.items()
            if isinstance(value, str) and any(part in name.lower() for part in _SECRET_PARTS)
        ]
        # SQLAlchemy lets a password be any object that becomes text.
        found = {str(self.url.password or ""), *named} - {""}
        return tuple(sorted(found, key=lambda secret: (-len(secret), secret)))
