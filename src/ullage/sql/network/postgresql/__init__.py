"""How is PostgreSQL asked?"""

from .session import PostgreSQLSession

__all__ = ["PostgreSQLSession"]
