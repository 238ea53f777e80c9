"""What do results cost in one form and another, and what does it cost to say so?

Run by `make bench-results`. Weighs the same result sets as pretty and compact JSON, in the shape of the system that
this one replaces, as columns and rows, as Markdown, and as `query` answers; then a schema of 24 tables as that system
told it and as `schema` does; then what `Metered` adds to a reply of a kilobyte. `result_handles` adds what one
question about three held results costs as one join and as three queries, and what it costs to learn from hostile
replies what a tool returns. `DATA` names a folder of other result sets, one JSON file each with an array of objects.
Prints tables, then what fell short of a floor, then one line of figures; fails where a floor is missed: rows at 0.40 of
pretty JSON (geometric mean), the schema at 0.15, 0.2 ms of CPU a reply, a join at 0.2 of three queries, 5 ms of CPU for
any hostile reply.
"""

import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from result_handles import Joins, milliseconds_to_learn, weigh_joins
from result_metered import milliseconds_added
from result_schema import warehouse
from result_sets import ResultSet, other_sets, read_sets, result_sets

from ullage.models import shipped
from ullage.sql import Answer
from ullage.sql.describe import describe, schema_json
from ullage.sql.sql_source import shape
from ullage.sql.sql_tools import Format, QueryAsked
from ullage.table import dump_value, records_json, row_line
from ullage.tokens import Meter

MODEL = "gpt-4o"
ROWS_FLOOR, SCHEMA_FLOOR, MILLISECONDS_FLOOR = 0.40, 0.15, 0.2
JOIN_FLOOR, LEARN_FLOOR = 0.2, 5.0
SQL = "SELECT * FROM the_table ORDER BY 1 LIMIT 100"


def main() -> int:
    folder = os.environ.get("DATA")
    sets = read_sets(Path(folder)) if folder else result_sets()
    if not sets:
        print(f"no data: `{folder}` holds no JSON file with an array of objects", file=sys.stderr)
        return 2
    meter = Meter(shipped())
    print(f"Tokens ({MODEL})\n{'result set':16}{'rows':>6}" + "".join(f"{name:>18}" for name in forms(sets[0])))
    rows = weigh_sets(sets, meter)
    if not folder:
        print("beside")
        weigh_sets(other_sets(), meter)
    schema = weigh_schema(meter)
    added = milliseconds_added()
    print(f"\nMetered adds {added:.3f} ms of CPU to a reply of a kilobyte")
    joins = weigh_joins(meter)
    print(
        f"\nA question about three held results of {joins.whole:,} tokens: {joins.joined:,} tokens as one join, "
        f"{joins.separate:,} as three queries (statements and answers)"
    )
    learn = milliseconds_to_learn()
    print(f"\nCPU to learn a shape from a hostile reply, in ms (limit {LEARN_FLOOR:g})")
    for name, milliseconds in learn.items():
        print(f"  {name:38}{milliseconds:8.2f}")
    return conclude(rows, schema, added, joins, learn)


def weigh_sets(sets: Sequence[ResultSet], meter: Meter) -> dict[str, float]:
    """Prints a line a set; the geometric mean of each form's share of pretty JSON."""
    logarithms: dict[str, list[float]] = {}
    for each in sets:
        tokens = {name: meter.count(text, MODEL).tokens for name, text in forms(each).items()}
        print(f"{each.name[:15]:16}{len(each.rows):>6}" + "".join(f"{count:>18,}" for count in tokens.values()))
        for name, count in tokens.items():
            logarithms.setdefault(name, []).append(math.log(count / tokens["pretty JSON"]))
    shares = {name: math.exp(sum(values) / len(values)) for name, values in logarithms.items()}
    print(f"{'of pretty JSON':22}" + "".join(f"{share:>18.3f}" for share in shares.values()))
    return shares


def forms(each: ResultSet) -> dict[str, str]:
    rows = [list(row) for row in each.rows]
    table = f'{{"columns":{dump_value([*each.columns])},"rows":{dump_value(rows)}}}'  # pyright: ignore[reportArgumentType]
    return {
        "pretty JSON": records_json(each.columns, each.rows, 2),
        "compact JSON": records_json(each.columns, each.rows),
        "original": ours(each, "original"),
        "columns and rows": table,
        "Markdown": markdown(each),
        "ours": ours(each, "csv"),
    }


def ours(each: ResultSet, form: Format) -> str:
    asked = QueryAsked(sql=SQL, rows=1_000, clamped=False, budget=None, format=form)
    return shape(Answer(columns=each.columns, rows=each.rows, more=False), asked, len).text


def markdown(each: ResultSet) -> str:
    lines = [each.columns, ["---"] * len(each.columns), *each.rows]
    return "\n".join("| " + " | ".join(row_line([cell]).replace("|", "\\|") for cell in line) + " |" for line in lines)


def weigh_schema(meter: Meter) -> dict[str, int]:
    structure = warehouse()
    told = {
        "original": schema_json(structure, "postgres", "warehouse"),
        "lines": describe(structure, "lines", budget=10**6, weigh=lambda text: meter.count(text, MODEL).tokens),
    }
    tokens = {name: meter.count(text, MODEL).tokens for name, text in told.items()}
    columns = sum(len(table.columns) for table in structure.tables)
    print(f"\nA schema of {len(structure.tables)} tables and {columns} columns: ", end="")
    print(f"{tokens['original']:,} tokens as the original tells it, {tokens['lines']:,} a line a table")
    return tokens


def conclude(
    rows: dict[str, float], schema: dict[str, int], added: float, joins: Joins, learn: dict[str, float]
) -> int:
    share, slowest = schema["lines"] / schema["original"], max(learn.values())
    missed = [
        words
        for is_missed, words in (
            (rows["ours"] > ROWS_FLOOR, f"rows cost {rows['ours']:.3f} of pretty JSON, not {ROWS_FLOOR}"),
            (share > SCHEMA_FLOOR, f"the schema costs {share:.3f} of the original's, not {SCHEMA_FLOOR}"),
            (added > MILLISECONDS_FLOOR, f"Metered adds {added:.3f} ms, not {MILLISECONDS_FLOOR}"),
            (joins.share > JOIN_FLOOR, f"a join costs {joins.share:.3f} of three queries, not {JOIN_FLOOR}"),
            (slowest > LEARN_FLOOR, f"a hostile reply costs {slowest:.2f} ms, not {LEARN_FLOOR:g}"),
        )
        if is_missed
    ]
    for words in missed:
        print(f"MISSED  {words}")
    figures = {
        "rows": {name: round(value, 4) for name, value in rows.items()},
        "schema": {**schema, "share": round(share, 4)},
        "metered ms": round(added, 4),
        "joins": {**asdict(joins), "share": round(joins.share, 4)},
        "learn ms": {name: round(value, 3) for name, value in learn.items()},
    }
    print(json.dumps(figures))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
