"""How do rows cost least?"""

from typing import TYPE_CHECKING

from ullage.deferred import import_on_use

from .clean import clean
from .decode import decode
from .encode import encode
from .fit import fit
from .scan import scan

if TYPE_CHECKING:
    from .cell import Cell, Row
    from .clean import Cleaned, clean_row
    from .decode import read_row
    from .encode import ABSENT, Absent, record_lines, row_line
    from .fit import Continued, Fitted, Footer, fit_steps
    from .found import Found, find_table, find_table_in
    from .json_pieces import decode_pieces, join_pieces, read_pieces, value_at
    from .path import Path, write_path
    from .recode import Recoded, each_once, recode_steps
    from .scan import Record, Scanned
    from .weigh import Weigh, WeighSteps, in_steps
    from .writing import distinct_names, records_json, written
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "ABSENT": "encode",
            "Absent": "encode",
            "Cell": "cell",
            "Cleaned": "clean",
            "Continued": "fit",
            "Fitted": "fit",
            "Footer": "fit",
            "Found": "found",
            "Path": "path",
            "Recoded": "recode",
            "Record": "scan",
            "Row": "cell",
            "Scanned": "scan",
            "Weigh": "weigh",
            "WeighSteps": "weigh",
            "clean_row": "clean",
            "decode_pieces": "json_pieces",
            "join_pieces": "json_pieces",
            "each_once": "recode",
            "find_table": "found",
            "find_table_in": "found",
            "fit_steps": "fit",
            "in_steps": "weigh",
            "read_pieces": "json_pieces",
            "read_row": "decode",
            "recode_steps": "recode",
            "record_lines": "encode",
            "distinct_names": "writing",
            "records_json": "writing",
            "row_line": "encode",
            "value_at": "json_pieces",
            "write_path": "path",
            "written": "writing",
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
    "written",
]
