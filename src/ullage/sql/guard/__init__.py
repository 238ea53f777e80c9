"""Judges whether a statement only reads, with a lexer and parser of SQL."""

from .guard import judge
from .lexer import Statement, read
from .parse_query import Passage, one_statement
from .table_rules import is_hidden_variable

__all__ = ["Passage", "Statement", "is_hidden_variable", "judge", "one_statement", "read"]
