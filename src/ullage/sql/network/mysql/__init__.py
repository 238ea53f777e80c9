"""How are MySQL and MariaDB asked?"""

from .session import MySQLSession

__all__ = ["MySQLSession"]
