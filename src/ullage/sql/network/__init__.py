"""Databases behind a server: PostgreSQL, MySQL and any that SQLAlchemy reaches."""

from .opening import network_engine, warning

__all__ = ["network_engine", "warning"]
