"""Rules for the nodes and function calls of a query.

`check_node` is an allow-list of nodes, so that anything unforeseen is refused. A function for which the parser has a
class is still written as a call, and calls are judged by name; the list contains only classes that are not calls.

`check_type` accepts only built-in types of the engine and types that the user allows, because the check of a domain is
a user-defined function.

`check_calls` treats every name before a parenthesis as a call, whatever the parser takes it for, because the text is
what runs. Grammar words, types and names of column lists are distinguished from calls; the tree is used only to find
column lists.

`check_bomb` limits sizes that are written as constants: a length, or a product of lengths. Sizes that depend on table
data are limited by the deadline and the engine.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Set

from sqlglot import exp

from ..database import Dialect
from .allowed_functions import CATALOGUES, HINTS, STANDARD_NAMES
from .lexer import ALWAYS_GRAMMAR, BEFORE_PARENTHESIS, TYPES, Terms, refusal, words
from .parse_query import Passage
from .table_rules import ASKING, check_setting, check_table_name

__all__ = ["check_bomb", "check_calls", "check_function", "check_node", "check_type", "is_search_table"]

_OWN_SCHEMA = "pg_catalog"
_FORMATS = frozenset({"format", "printf", "sformat"})
_NO_CALLS = BEFORE_PARENTHESIS | TYPES
_WITHOUT_ARGUMENTS = {"mysql": frozenset({"last_insert_id"})}
"""Functions that set something if called with an argument."""
_BARE_HINTS = frozenset({"nolock", "readuncommitted", "readpast"})
"""Hints of SQL Server that may follow a table without WITH; a call of the same name is still found in the tree."""
_SCHEMAS = frozenset({"dbo", "sys", "guest", "information_schema", "master", "msdb"})
"""Schemas of SQL Server; a function qualified by one is not a method of a value."""
_ASKS_XML = frozenset({"xmltable", "xmlquery", "xmlexists"})
_FETCHES = re.compile(r"(?:doc|collection|available|view|resource|text|lines)\s*\(\s*[\"'$\w]", re.IGNORECASE)
"""XQuery functions that read external documents."""
_PLAIN_STRING = re.compile(r"[en]?'([\w. ]+)'|(\$\w*\$)([\w. ]+)\2", re.IGNORECASE)
_ASKS_A_TABLE = frozenset({"pragma_show", "pragma_table_info", "pragma_storage_info"})
"""DuckDB functions that take a table's name as a string."""


def check_calls(passage: Passage, terms: Terms, lists: Set[int]) -> None:
    """Check every call of a query; `lists` are the indexes of tokens that name a column list."""
    for number, token in enumerate(passage.tokens):
        if token.is_name and passage.mark(number + 1) == "(" and number not in lists:
            _check_call(passage, number, terms)


def _check_call(passage: Passage, number: int, terms: Terms) -> None:
    token = passage.tokens[number]
    qualifier = _qualifier(passage, number)
    if qualifier is None and token.kind == "word" and token.name in _NO_CALLS and not _is_made(passage, number, terms):
        return
    if _is_clause(passage, number, terms):
        return
    check_function(token.name, qualifier, terms)
    if qualifier is None and _has_user_function(token.name, terms) and not _is_special(passage, number):
        # The server would choose whichever function fits the arguments best; with its schema, only its own is possible.
        terms.edits.append((token.start, "pg_catalog."))
    if token.name in _FORMATS and _is_escaped(passage, number + 2):
        raise refusal(f"{token.text}()", "has a format with escapes", "Write the format as a plain '…' string.")
    if token.name in _WITHOUT_ARGUMENTS.get(terms.dialect, ()) and passage.mark(number + 2) != ")":
        raise refusal(f"{token.text}(…)", "with an argument sets it", f"Call {token.text}() without one.")
    if terms.dialect == "oracle" and token.name in _ASKS_XML:
        _check_xquery(passage)
    if token.name in ASKING:
        check_setting(_literal(passage, number + 2))
    if terms.dialect == "duckdb" and token.name in _ASKS_A_TABLE:
        function = token.name
        table = _literal(passage, number + 2)
        if table is None:
            raise refusal(f"{function}()", "asks for a table that is not written out", "Name it in a plain '…' string.")
        check_table_name(table.split("."), terms)


def _is_clause(passage: Passage, number: int, terms: Terms) -> bool:
    """Return whether a name before a parenthesis is part of a clause that only some engines have."""
    if passage.word(number) in ("first", "next") and passage.word(number - 1) == "fetch":
        return True
    if passage.mark(number + 3) != ")":
        return False
    is_outer = terms.dialect == "oracle" and passage.mark(number + 2) == "+"
    return is_outer or (terms.dialect == "tsql" and passage.word(number + 2) in _BARE_HINTS)


def _is_made(passage: Passage, number: int, terms: Terms) -> bool:
    """Return whether a word that is also a type or a grammar word calls a user-defined function of that name."""
    name = passage.word(number)
    is_type = passage.mark(number - 1) == "::" or passage.word(number - 1) == "as"
    return terms.functions.get(name) == "made" and name not in ALWAYS_GRAMMAR and not is_type


def _has_user_function(name: str, terms: Terms) -> bool:
    """Return whether a user has defined a function with the name of a built-in function of PostgreSQL."""
    return (
        terms.dialect == "postgres"
        and terms.functions.get(name) == "made"
        and f"{_OWN_SCHEMA}.{name}" in terms.functions
        and name not in terms.allowed
    )


def _is_special(passage: Passage, number: int) -> bool:
    """Return whether a call has words between its arguments, as in `substring(a FROM 2)`.

    That is always a built-in function of PostgreSQL, and may not be qualified with its schema.
    """
    depth = 0
    for place in range(number + 1, len(passage.tokens)):
        depth += (passage.mark(place) == "(") - (passage.mark(place) == ")")
        if depth == 0:
            return False
        if depth == 1 and passage.word(place) in ("from", "for", "placing", "in", "similar"):
            return True
    return False


def _is_escaped(passage: Passage, number: int) -> bool:
    """Return whether a string has escapes, so that its value may differ from its text."""
    token = passage.tokens[number] if number < len(passage.tokens) else None
    return token is not None and token.kind == "string" and token.text[:1].lower() in ("e", "u") and "\\" in token.text


def _check_xquery(passage: Passage) -> None:
    for token in passage.tokens:
        if token.kind == "string" and _FETCHES.search(token.text):
            raise refusal(token.text, "fetches what it names", "Query the XML that is given with PASSING.")


def _qualifier(passage: Passage, number: int) -> str | None:
    """Return the name before the dot; None if there is no dot, empty if a value precedes it."""
    if passage.mark(number - 1) != ".":
        return None
    before = passage.tokens[number - 2] if number >= 2 else None
    return before.name if before is not None and before.is_name else ""


def _literal(passage: Passage, number: int) -> str | None:
    """Return the value of a plain string without escapes; None for anything else."""
    token = passage.tokens[number]
    found = _PLAIN_STRING.fullmatch(token.text) if token.kind == "string" else None
    if found is None or passage.mark(number + 1) not in (")", ","):
        return None
    return found[1] or found[3]


def check_function(name: str, qualifier: str | None, terms: Terms) -> None:
    """Refuse a function that is not known to only read."""
    catalogue = CATALOGUES[terms.dialect]
    full = f"{qualifier}.{name}" if qualifier else name
    if {name, full} & terms.allowed or full in catalogue.packages:
        return
    if qualifier in (None, "main") and is_search_table(name, terms):
        return
    if qualifier is not None:
        if name in catalogue.methods and qualifier not in _SCHEMAS:
            return
        if catalogue.schemas is not None and qualifier not in catalogue.schemas:
            raise refusal(f"{full}()", "is a user-defined function", _YOURS)
    own = terms.functions.get(f"{_OWN_SCHEMA}.{name}") if qualifier in (None, _OWN_SCHEMA) else None
    if own is not None and catalogue.knows(name, {name: own}):
        return
    if terms.functions.get(name) == "made":
        raise refusal(f"{full}()", "is or may be a user-defined function of this database", _YOURS)
    if not catalogue.knows(name, terms.functions):
        known = catalogue.denied.fullmatch(name) is not None
        raise refusal(
            f"{full}()",
            "may do more than read" if known else "is not known to only read",
            _REWRITE if known else _YOURS,
            () if known else _similar_functions(name, terms),
        )


def is_search_table(name: str, terms: Terms) -> bool:
    """Return whether a name is a full-text table of SQLite, which may be written as a call in FROM: `docs('words')`.

    Other dialects have no such function.
    """
    if f"from:{name}" not in terms.functions:
        return False
    catalogue = CATALOGUES[terms.dialect]
    return name not in terms.functions and name not in catalogue.certain and not catalogue.denied.fullmatch(name)


def _similar_functions(name: str, terms: Terms) -> tuple[str, ...]:
    """Return allowed functions with similar names."""
    catalogue = CATALOGUES[terms.dialect]
    listed = catalogue.certain | catalogue.names | STANDARD_NAMES
    near = difflib.get_close_matches(name, sorted(terms.allowed), cutoff=0.7)
    near += difflib.get_close_matches(name, sorted(listed), n=8, cutoff=0.7)
    near += difflib.get_close_matches(name, sorted(one for one in terms.functions if one.isidentifier()), cutoff=0.7)
    known = [
        one
        for one in dict.fromkeys(near)
        if one in terms.allowed or catalogue.knows(one, terms.functions) or _has_user_function(one, terms)
    ]
    return tuple(known[:3])


_REWRITE = "Leave the call out: here a statement may only compute from the tables it reads."
_YOURS = "Use a built-in function; one of your own must be named under `functions` in the settings of this database."

_HARMLESS = frozenset({"sqlite", "duckdb", "mysql"})
"""Dialects whose types run nothing."""


def check_type(node: exp.DataType, terms: Terms) -> None:
    """Refuse a type that is neither built in nor allowed by the user."""
    kind = node.args.get("kind")
    if terms.dialect in _HARMLESS or not isinstance(kind, exp.Expr) or node.this != exp.DType.USERDEFINED:
        return
    parts = [one.name.lower() for one in kind.find_all(exp.Identifier)] or [kind.name.lower()]
    name, schema = parts[-1], parts[-2] if len(parts) > 1 else None
    if {name, ".".join(parts)} & terms.allowed or f"::{'.'.join(parts)}" in terms.functions:
        return
    if schema in (CATALOGUES[terms.dialect].schemas or ()) or (schema is None and name in TYPES):
        return
    raise refusal(
        ".".join(parts),
        "is a user-defined type, whose checks may run anything",
        "Compare without the cast, or name the type under `functions` in the settings of this database.",
    )


_LARGEST = 1_000_000
"""Maximum characters, bytes or elements that one call may create from constants."""

_LENGTHS = words(
    """
repeat replicate lpad rpad space zeroblob randomblob random_bytes gen_random_bytes normal_rand str list_resize
array_resize repeat_row array_fill bitstring bar to_base export_set
"""
)
"""Functions with a length among their arguments; its position differs when they are called as methods."""
_REPEATING = frozenset({"repeat", "replicate"})
_SERIES = frozenset({"range", "generate_series"})
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
    """Refuse a call that would create a value of more than `_LARGEST` characters or elements."""
    if isinstance(node, exp.Repeat | exp.Pad | exp.Space | exp.Format | exp.Anonymous | exp.GenerateSeries):
        size = max(_estimate_size(node), _count_elements(node) if dialect == "duckdb" else 1)
        if size > _LARGEST:
            raise refusal(f"{_name(node)}()", f"is to make more than {_LARGEST} at once", "Write a smaller length.")


def _name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous) or not isinstance(node, exp.Func):
        return node.name.lower()
    return node.sql_name().lower()


def _estimate_size(node: exp.Expr) -> float:
    """Return how many characters or elements an expression creates, as far as constants determine it."""
    if isinstance(node, exp.Literal):
        return max(1, len(node.name)) if node.is_string else 1
    if isinstance(node, exp.Repeat):
        return _estimate_size(node.this) * _length(node.args.get("times"))
    if isinstance(node, exp.Pad):
        return _length(node.expression)
    if isinstance(node, exp.Space):
        return _length(node.this)
    within = max((_estimate_size(one) for one in node.iter_expressions()), default=1)
    if isinstance(node, exp.Replace):
        factor = max(1, len(node.args["replacement"].name) if node.args.get("replacement") else 1)
    else:
        factor = 2 if isinstance(node, exp.Hex) else 1
    name = _name(node) if isinstance(node, exp.Func) else ""
    if name in _FORMATS:
        # The width is from the format's own digits, or from the arguments for its stars.
        first, *rest = [*([node.this] if isinstance(node, exp.Format) else []), *node.expressions] or [exp.Null()]
        widths = [float(digits) for digits in _WIDTH.findall(first.name)]
        call_length = max([*widths, *(_length(one) for one in rest if "*" in first.name)], default=1)
    elif name not in _LENGTHS or not isinstance(node, exp.Anonymous):
        call_length = 1
    else:
        given = [*node.expressions, *([node.parent.this] if isinstance(node.parent, exp.Dot) else [])]
        times = max((_estimate_size(one) for one in given), default=1) if name in _REPEATING else 1
        call_length = times * max((_length(one) for one in given), default=1)
    return max(within * factor, call_length)


def _count_elements(node: exp.Expr) -> float:
    """Return the elements of a list in DuckDB.

    In FROM, and in every other engine, elements are streamed and limited by the deadline.
    """
    if isinstance(node.parent, exp.Table | exp.Lateral | exp.TableFromRows):
        return 1
    if isinstance(node, exp.GenerateSeries):
        bounds = [node.args.get(name) for name in ("start", "end", "step")]
    elif not isinstance(node, exp.Anonymous) or _name(node) not in _SERIES:
        bounds = []
    else:
        # The series may be qualified with a schema, or called as a method of its start.
        start = node.parent.this if isinstance(node.parent, exp.Dot) else None
        given = [*([] if _constant(start) is None else [start]), *node.expressions]
        bounds = [None, *given] if len(given) == 1 else given
    start, end, step = (_constant(one) for one in (*bounds, None, None, None)[:3])
    return 1 if end is None else abs(end - (start or 0)) / max(abs(step or 1), 1)


def _length(node: object) -> float:
    """Return a length, at least 1; for a list of lengths, their product."""
    if isinstance(node, exp.Array):
        product = 1.0
        for one in node.expressions:
            product = min(product * _length(one), _LARGER_THAN_ANY)
        return product
    return max(1.0, _constant(node) or 1.0)


def _constant(node: object) -> float | None:
    if isinstance(node, exp.Literal):
        text = node.name
        try:
            return min(float(text), _LARGER_THAN_ANY)
        except ValueError:
            return None
    if isinstance(node, exp.Paren | exp.Cast):
        return _constant(node.this)
    if isinstance(node, exp.Neg):
        inner = _constant(node.this)
        return None if inner is None else -inner
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
    "Placeholder": ("?", "is a placeholder for a value that is not given", "Write the value itself."),
    "Parameter": ("@", "is a variable, and none is set here", "Write the value itself."),
}


def check_node(node: exp.Expr, terms: Terms) -> None:
    """Refuse a node of the tree that is not known to only read."""
    name = type(node).__name__
    if not _is_allowed_node(node, name, terms):
        construct, reason, suggestion = _REASONS.get(name, (name, "is no part of a query that only reads", _PLAIN))
        raise refusal(construct, reason, suggestion)
    if isinstance(node, exp.Anonymous) and not isinstance(node.parent, exp.WithTableHint):
        if terms.dialect == "postgres":
            # PostgreSQL reserves these words for the quantifier of a comparison with an array.
            compared = isinstance(node.parent, exp.Binary) and node.parent.expression is node
            if compared and isinstance(node.this, str) and node.this.lower() in ("all", "some"):
                return
        check_function(node.name.lower(), _nodes_qualifier(node), terms)
    elif isinstance(node, exp.DataType):
        check_type(node, terms)
    elif isinstance(node, exp.WithTableHint) or (
        isinstance(node, exp.QueryOption) and not isinstance(node.parent, exp.ForClause)
    ):
        written = node.expressions if isinstance(node, exp.WithTableHint) else [node.this]
        for hint in written:
            words = [one.name for one in hint.find_all(exp.Var, exp.Anonymous)] or [hint.name]
            if not {word.lower() for word in " ".join(words).split()} <= HINTS:
                raise refusal(words[0].upper(), "is a hint that locks or changes how the server works", _LOCKS)


_PLAIN = "Write a plain SELECT: joins, filters, groups, windows, WITH and set operations."


def _is_allowed_node(node: exp.Expr, name: str, terms: Terms) -> bool:
    if isinstance(node, exp.Func):
        return name not in _UNSAFE_FUNCTIONS
    if isinstance(node, exp.Summarize | exp.Describe):
        return isinstance(node.this, exp.Table | exp.Query)
    if isinstance(node, exp.CTE):
        return isinstance(node.this, exp.Query | exp.Values | exp.Pivot | exp.Summarize | exp.Describe)
    if isinstance(node, exp.Parameter):
        return terms.dialect in ("mysql", "tsql")
    return name in _KNOWN


def _nodes_qualifier(node: exp.Anonymous) -> str | None:
    """Return the name before the dot of a call."""
    parent = node.parent
    if isinstance(parent, exp.Dot) and parent.expression is node:
        return parent.this.name.lower()
    if isinstance(parent, exp.Table) and parent.this is node:
        return parent.db.lower() or None
    return None
