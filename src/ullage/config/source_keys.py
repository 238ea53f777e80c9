"""Which keys may a source of `ullage.toml` have?

Those of a database, which is the only kind of source there is. What a key does is told where its field is declared.
"""

from .key import Key
from .kinds import AMOUNT, DATABASE, FLAG, NAMES, SECONDS, TEXT, WAIT, WHOLE

__all__ = ["LIMITS", "SOURCE"]

_WITHIN_LIMITS = (
    Key(
        name="max_rows",
        kind=WHOLE,
        means="Rows of one answer at most, whatever a call asks for.",
        default="1000",
        field="rows",
    ),
    Key(
        name="timeout",
        kind=SECONDS,
        means="Seconds from a question to its last row, then it is ended.",
        default="30",
        field="seconds",
    ),
    Key(
        name="max_cell",
        kind=WHOLE,
        means="Characters of one value; the rest is cut and counted.",
        default="20000",
        field="cell",
    ),
    Key(
        name="max_megabytes",
        kind=AMOUNT,
        means="Megabytes of all values of an answer.",
        default="16",
        field="bytes",
    ),
    Key(name="concurrency", kind=WHOLE, means="Questions at one time; others wait.", default="4"),
)
LIMITS = tuple(key.target for key in _WITHIN_LIMITS)
"""Of these keys, those that are fields of `Limits`."""

SOURCE = (
    Key(
        name="database",
        kind=DATABASE,
        means="Which database; a path from this file's folder, `~` allowed. `sample` is a small shop to try it with.",
        field="url",
    ),
    Key(
        name="default",
        kind=FLAG,
        means="Whether `query` and `schema` without a prefix mean this one.",
        default="false; where none says so, the first",
    ),
    Key(name="description", kind=TEXT, means="One line that tells the model what is to be found here."),
    *_WITHIN_LIMITS,
    Key(
        name="max_tokens",
        kind=WHOLE,
        means="Tokens of one answer at most, whatever a call asks for.",
        default="the budget of every result",
    ),
    Key(
        name="masked",
        kind=NAMES,
        means="Columns whose values nobody sees, as `table.column` or with patterns such as `*.password`.",
    ),
    Key(
        name="functions",
        kind=NAMES,
        means="Functions of the database's own making that a question may call. You vouch that they change nothing.",
    ),
    Key(
        name="cache",
        kind=WAIT,
        means="Seconds in which the same question is answered from memory; 0 for never.",
        default="0",
    ),
    Key(
        name="schema_cache",
        kind=WAIT,
        means="Seconds in which descriptions of tables are answered from memory; 0 for never.",
        default="300",
    ),
)
