"""Databases behind a server: PostgreSQL, MySQL and any that SQLAlchemy reaches."""

from .open_network import network_engine, warning

__all__ = ["network_engine", "warning"]
