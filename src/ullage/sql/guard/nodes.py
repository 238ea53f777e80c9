"""Which parts may the tree of a query have?

A list of what may be, so that what nobody thought of is refused. A function that the parser knows by a class of its own
was written as a call, and calls are judged by their names; only classes that are no call are named here.
"""

from sqlglot import exp

from .calls import check_function
from .functions.tsql import HINTS
from .kinds import check_type
from .statement import Terms
from .wording import refusal
from .wordlist import words

__all__ = ["check_node"]

_KNOWN = words(
    """
Add Adjacent Alias Aliases All Any AtIndex AtTimeZone Between BitString BitwiseAnd BitwiseLeftShift BitwiseNot
BitwiseOr BitwiseRightShift BitwiseXor Boolean Bracket ByteString CharacterSet CollateProperty Column
ColumnConstraint ColumnDef Comprehension Connect Cube DPipe DataType DataTypeParam DefaultColumnConstraint Distance
Distinct Div Dot EQ Escape Except ExtendsLeft ExtendsRight Fetch Filter Final ForClause ForIn FormatJson From
FromTimeZone GT GTE Glob Group GroupingSets Having HavingMax Heredoc HexString HistoricalData ILike Identifier
IgnoreNulls In IndexTableHint IntDiv Intersect Interval IntervalSpan Introducer Is JSON JSONColumnDef
JSONExtractQuote JSONKeyValue JSONPath JSONPathFilter JSONPathKey JSONPathPart JSONPathRecursive JSONPathRoot
JSONPathScript JSONPathSelector JSONPathSlice JSONPathSubscript JSONPathUnion JSONPathWildcard JSONSchema JSONValue
Join JoinHint Kwarg LT LTE Lambda Lateral Like Limit LimitOptions Literal Match MatchRecognize MatchRecognizeMeasure
Mod Mul NEQ National Nearest Neg NestedJSONSelect Not Null NullSafeEQ NullSafeNEQ ObjectIdentifier Offset
OnCondition OpenJSONColumnDef Operator Order Ordered OverflowTruncateBehavior Overlaps Paren Partition
PathColumnConstraint Pivot PivotAlias PivotAny PositionalColumn Prior PropertyEQ PseudoType Pseudocolumn Qualify
QueryOption RawString RecursiveWithSearch RespectNulls Rollup Schema Select SessionParameter SimilarTo Slice Sort
Star Sub Subquery Table TableAlias TableColumn TableFromRows TableSample Tuple Unary Union UnpivotColumns Values Var
Variadic Version Where Window WindowSpec With WithTableHint WithinGroup XMLKeyValueOption XMLNamespace
"""
)

_UNSAFE_FUNCTIONS = frozenset({"NextValueFor", "AnonymousAggFunc", "CombinedAggFunc", "ParameterizedAgg"})

_LOCKS = "Select without locking: nothing here can be changed."
_REASONS = {
    "Placeholder": ("?", "stands for a value that is not given", "Write the value itself."),
    "Parameter": ("@", "is a variable, and none is set here", "Write the value itself."),
}


def check_node(node: exp.Expr, terms: Terms) -> None:
    name = type(node).__name__
    if not _may_stand(node, name, terms):
        construct, reason, suggestion = _REASONS.get(name, (name, "is no part of a query that only reads", _PLAIN))
        raise refusal(construct, reason, suggestion)
    if isinstance(node, exp.Anonymous) and not isinstance(node.parent, exp.WithTableHint):
        check_function(node.name.lower(), _qualifier(node), terms)
    elif isinstance(node, exp.DataType):
        check_type(node, terms)
    elif isinstance(node, exp.WithTableHint) or (
        isinstance(node, exp.QueryOption) and not isinstance(node.parent, exp.ForClause)
    ):
        _check_hint(node)


_PLAIN = "Write a plain SELECT: joins, filters, groups, windows, WITH and set operations."


def _may_stand(node: exp.Expr, name: str, terms: Terms) -> bool:
    if isinstance(node, exp.Func):
        return name not in _UNSAFE_FUNCTIONS
    if isinstance(node, exp.Summarize | exp.Describe):
        return isinstance(node.this, exp.Table | exp.Query)
    if isinstance(node, exp.CTE):
        return isinstance(node.this, exp.Query | exp.Values | exp.Pivot | exp.Summarize | exp.Describe)
    if isinstance(node, exp.Parameter):
        return terms.dialect in ("mysql", "tsql")
    return name in _KNOWN


def _qualifier(node: exp.Anonymous) -> str | None:
    """What stands before the name's dot."""
    parent = node.parent
    if isinstance(parent, exp.Dot) and parent.expression is node:
        return parent.this.name.lower()
    if isinstance(parent, exp.Table) and parent.this is node:
        return parent.db.lower() or None
    return None


def _check_hint(node: exp.WithTableHint | exp.QueryOption) -> None:
    written = node.expressions if isinstance(node, exp.WithTableHint) else [node.this]
    for hint in written:
        words = [one.name for one in hint.find_all(exp.Var, exp.Anonymous)] or [hint.name]
        if not {word.lower() for word in " ".join(words).split()} <= HINTS:
            raise refusal(words[0].upper(), "is a hint that locks or changes how the server works", _LOCKS)
