"""The judgement whether a statement only reads, and the reader of SQL that it is made with."""

from .judge import judge
from .lexer import read
from .passage import Passage, one_statement
from .settings import is_hidden_variable
from .statement import Statement

__all__ = ["Passage", "Statement", "is_hidden_variable", "judge", "one_statement", "read"]
