"""Encodes rows and JSON as compact tables, fits rows to a token budget, and scans long JSON."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

from .fit_rows import fit
from .json_scan import scan
from .table_text import clean, decode, encode

if TYPE_CHECKING:
    from .fit_rows import Continued, Fitted, Footer, Weigh, WeighSteps, fit_steps, in_steps
    from .json_scan import Record, Scanned, decode_pieces, join_pieces, read_pieces, value_at
    from .json_to_table import Found, Recoded, each_once, find_table, find_table_in, recode_steps
    from .table_text import (
        ABSENT,
        Absent,
        Cell,
        Cleaned,
        Path,
        Row,
        clean_row,
        distinct_names,
        dump_value,
        read_row,
        record_lines,
        records_json,
        row_line,
        write_path,
    )
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "ABSENT": "table_text",
            "Absent": "table_text",
            "Cell": "table_text",
            "Cleaned": "table_text",
            "Continued": "fit_rows",
            "Fitted": "fit_rows",
            "Footer": "fit_rows",
            "Found": "json_to_table",
            "Path": "table_text",
            "Recoded": "json_to_table",
            "Record": "json_scan",
            "Row": "table_text",
            "Scanned": "json_scan",
            "Weigh": "fit_rows",
            "WeighSteps": "fit_rows",
            "clean_row": "table_text",
            "decode_pieces": "json_scan",
            "join_pieces": "json_scan",
            "each_once": "json_to_table",
            "find_table": "json_to_table",
            "find_table_in": "json_to_table",
            "fit_steps": "fit_rows",
            "in_steps": "fit_rows",
            "read_pieces": "json_scan",
            "read_row": "table_text",
            "recode_steps": "json_to_table",
            "record_lines": "table_text",
            "distinct_names": "table_text",
            "records_json": "table_text",
            "row_line": "table_text",
            "value_at": "json_scan",
            "write_path": "table_text",
            "dump_value": "table_text",
        },
    )

__all__ = [
    "ABSENT",
    "Absent",
    "Cell",
    "Cleaned",
    "Continued",
    "Fitted",
    "Footer",
    "Found",
    "Path",
    "Recoded",
    "Record",
    "Row",
    "Scanned",
    "Weigh",
    "WeighSteps",
    "clean",
    "clean_row",
    "decode",
    "decode_pieces",
    "distinct_names",
    "dump_value",
    "each_once",
    "encode",
    "find_table",
    "find_table_in",
    "fit",
    "fit_steps",
    "in_steps",
    "join_pieces",
    "read_pieces",
    "read_row",
    "recode_steps",
    "record_lines",
    "records_json",
    "row_line",
    "scan",
    "value_at",
    "write_path",
]
