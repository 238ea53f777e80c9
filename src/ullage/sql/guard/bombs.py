"""Does a constant in this query ask for more than any answer can hold?

Only what is written out is weighed: a length, or what is multiplied from such. What comes from the tables is for the
deadline and the limits of the engine.
"""

import re
from collections.abc import Callable, Mapping

from sqlglot import exp

from ..engine import Dialect
from .wording import refusal
from .wordlist import words

__all__ = ["check_bomb"]

_LARGEST = 1_000_000
"""Characters, bytes or elements that one call may make of a constant."""

_LENGTHS = words(
    """
repeat replicate lpad rpad space zeroblob randomblob random_bytes gen_random_bytes normal_rand str list_resize
array_resize repeat_row array_fill bitstring bar to_base export_set
"""
)
"""Functions one of whose arguments is a length; which one differs where they are called of a value."""
_REPEATING = frozenset({"repeat", "replicate"})
_SERIES = frozenset({"range", "generate_series"})
_FORMATS = frozenset({"format", "printf", "sformat"})
_WIDTH = re.compile(r"\d{5,}")
_ARITHMETIC: Mapping[type[exp.Expr], Callable[[float, float], float]] = {
    exp.Add: lambda left, right: left + right,
    exp.Sub: lambda left, right: left - right,
    exp.Mul: lambda left, right: left * right,
    exp.Div: lambda left, right: left / right,
    exp.Pow: lambda left, right: left**right,
    exp.BitwiseLeftShift: lambda left, right: left * 2**right,
}
_LARGER_THAN_ANY = 1e300


def check_bomb(node: exp.Expr, dialect: Dialect) -> None:
    if isinstance(node, exp.Repeat | exp.Pad | exp.Space | exp.Format | exp.Anonymous | exp.GenerateSeries):
        size = max(_size(node), _elements(node) if dialect == "duckdb" else 1)
        if size > _LARGEST:
            raise refusal(f"{_name(node)}()", f"is to make more than {_LARGEST} at once", "Write a smaller length.")


def _name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous) or not isinstance(node, exp.Func):
        return node.name.lower()
    return node.sql_name().lower()


def _size(node: exp.Expr) -> float:
    """How many characters or elements the expression makes, as far as constants tell."""
    if isinstance(node, exp.Literal):
        return max(1, len(node.name)) if node.is_string else 1
    if isinstance(node, exp.Repeat):
        return _size(node.this) * _length(node.args.get("times"))
    if isinstance(node, exp.Pad):
        return _length(node.expression)
    if isinstance(node, exp.Space):
        return _length(node.this)
    within = max((_size(one) for one in node.iter_expressions()), default=1)
    return max(within * _factor(node), _named(node))


def _factor(node: exp.Expr) -> float:
    if isinstance(node, exp.Replace):
        return max(1, len(node.args["replacement"].name) if node.args.get("replacement") else 1)
    return 2 if isinstance(node, exp.Hex) else 1


def _named(node: exp.Expr) -> float:
    name = _name(node) if isinstance(node, exp.Func) else ""
    if name in _FORMATS:
        return _width(node)
    if name not in _LENGTHS or not isinstance(node, exp.Anonymous):
        return 1
    given = [*node.expressions, *([node.parent.this] if isinstance(node.parent, exp.Dot) else [])]
    times = max((_size(one) for one in given), default=1) if name in _REPEATING else 1
    return times * max((_length(one) for one in given), default=1)


def _width(node: exp.Expr) -> float:
    """Of a format: its own digits, and the numbers given to its stars."""
    first, *rest = [*([node.this] if isinstance(node, exp.Format) else []), *node.expressions] or [exp.Null()]
    widths = [float(digits) for digits in _WIDTH.findall(first.name)]
    return max([*widths, *(_length(one) for one in rest if "*" in first.name)], default=1)


def _elements(node: exp.Expr) -> float:
    """Of a list in DuckDB. In FROM, and in every other engine, they are streamed, and the deadline is for them."""
    if isinstance(node.parent, exp.Table | exp.Lateral | exp.TableFromRows):
        return 1
    start, end, step = (_constant(one) for one in (*_bounds(node), None, None, None)[:3])
    return 1 if end is None else abs(end - (start or 0)) / max(abs(step or 1), 1)


def _bounds(node: exp.Expr) -> list[exp.Expr | None]:
    """Start, end and step. With a schema before its name, or as a value's method, a series is a call like any other."""
    if isinstance(node, exp.GenerateSeries):
        return [node.args.get(name) for name in ("start", "end", "step")]
    if not isinstance(node, exp.Anonymous) or _name(node) not in _SERIES:
        return []
    value = [node.parent.this] if isinstance(node.parent, exp.Dot) and _constant(node.parent.this) is not None else []
    given = [*value, *node.expressions]
    return [None, *given] if len(given) == 1 else given


def _length(node: object) -> float:
    """At least 1; of a list of lengths, their product."""
    if isinstance(node, exp.Array):
        product = 1.0
        for one in node.expressions:
            product = min(product * _length(one), _LARGER_THAN_ANY)
        return product
    return max(1.0, _constant(node) or 1.0)


def _constant(node: object) -> float | None:
    if isinstance(node, exp.Literal):
        return _number(node.name)
    if isinstance(node, exp.Paren | exp.Cast):
        return _constant(node.this)
    if isinstance(node, exp.Neg):
        inner = _constant(node.this)
        return None if inner is None else -inner
    return _computed(node)


def _computed(node: object) -> float | None:
    compute = _ARITHMETIC.get(type(node)) if isinstance(node, exp.Binary | exp.Pow) else None
    if compute is None or not isinstance(node, exp.Expr):
        return None
    left, right = _constant(node.this), _constant(node.expression)
    if left is None or right is None:
        return None
    try:
        result = compute(left, right)
    except ZeroDivisionError:
        return None
    except OverflowError:
        return _LARGER_THAN_ANY
    return result if isinstance(result, float) else _LARGER_THAN_ANY


def _number(text: str) -> float | None:
    try:
        return min(float(text), _LARGER_THAN_ANY)
    except ValueError:
        return None
