"""How do rows cost least?"""

from .cell import Cell, Row
from .clean import Cleaned, clean, clean_row
from .decode import decode, read_row
from .encode import ABSENT, Absent, encode, record_lines, row_line
from .fit import Continued, Fitted, Footer, fit, fit_steps
from .found import Found, find_table, find_table_in
from .json_pieces import decode_pieces, read_pieces, value_at
from .path import Path, write_path
from .recode import Recoded, each_once, recode_steps
from .scan import Record, Scanned, scan
from .weigh import Weigh, WeighSteps, in_steps
from .writing import records_json, written

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
    "each_once",
    "encode",
    "find_table",
    "find_table_in",
    "fit",
    "fit_steps",
    "in_steps",
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
