"""Fingerprint of a definition: a hash that changes with anything a client shows, and not with what a server writes
anew at each start.

Key order never counts, nor does the order of `required`, `enum` and `type` lists, which servers build from sets. In
free text (`description`, `title`, instructions) runs of ASCII white space count as one space, and these are replaced
by placeholders:

- the working, home and temporary folder of this machine, and the random name Python gives a temporary folder;
- dates and times of day that contain digits only, month names or day names, and ages such as `3 days ago`;
- UUIDs;
- ports of the local host, and process ids;
- the six random characters that Node gives a temporary folder;
- numbers before a noun for something that servers count, such as `12 files` or `12 open issues`, and after it
  (`files: 12`).

In `default` and `examples` the folders are replaced, and a date or time where it is the whole value. Everything else
counts to the letter: names, types, enums, bounds, patterns, annotations, and keys unknown to this version.

Each placeholder stands for a closed form (digits, hex digits, calendar words, or a path that this machine already has),
so that a replaced span cannot carry words of the server's choosing.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from ullage.tool import Json, JsonObject

__all__ = ["Places", "exact_hash", "fingerprint"]

_SHORTEST_PATH = 3
"""Length of a folder's path below which it is not replaced: `/` is in every text."""
_LONGEST_TEXT = 50_000
"""Most characters of a text in which anything is replaced."""
_FREE_TEXT = frozenset({"description", "title", "instructions", "$comment"})
_EXAMPLE_VALUES = frozenset({"default", "examples", "example"})
_UNORDERED = frozenset({"required", "enum", "type"})
_LITERAL = frozenset({"const", "enum", "annotations", "_meta", "icons"})
"""Keys below which `description` and `title` are data, not texts about the definition."""
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keys whose children are names chosen by the server, not keywords."""

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)"
)
_DAY_NAME = r"(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?)"
_WEEKDAY = rf"(?:{_DAY_NAME},? )"
_CLOCK = (
    r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?(?: ?[AaPp]\.?[Mm]\.?)?"
    r"(?: ?(?:Z|UTC|GMT)| ?[+-]\d{2}:?\d{2})?"
)
_DAY = (
    rf"(?:\d{{4}}-\d{{2}}-\d{{2}}|\d{{4}}/\d{{2}}/\d{{2}}|\d{{1,2}}[/.]\d{{1,2}}[/.]\d{{4}}"
    rf"|{_WEEKDAY}?{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}|{_WEEKDAY}?\d{{1,2}}\.? {_MONTH}\.?,? \d{{4}}"
    rf"|{_MONTH}\.? \d{{4}}|\d{{4}}-W\d{{2}}|Q[1-4] \d{{4}})"
)
_UNIX_DATE = rf"{_WEEKDAY}?{_MONTH} {{1,2}}\d{{1,2}} {_CLOCK} \d{{4}}"
_COMPACT_DATE = r"\d{8}T\d{6}Z?"
_MOMENT = re.compile(
    rf"(?<![\w.:/-])(?:{_UNIX_DATE}|{_COMPACT_DATE}|{_DAY}(?:(?:T|,? (?:at )?){_CLOCK})?|{_CLOCK})(?![\w:/-]|\.\d)"
)
_UNITS = r"(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)"
_AGE = re.compile(rf"(?<![\w.,-])\d{{1,4}} {_UNITS}(?= ago\b)|(?<=\buptime )\d{{1,4}} {_UNITS}\b")
_TODAY = re.compile(
    rf"(?<=\b[Tt]oday is ){_DAY_NAME}(?!\w)|(?<=\byear is )(?:19|20)\d\d(?!\w)"
    r"|(?<=\b[Tt]imestamp )1\d{9}(?:\d{3})?(?!\w)|(?<=\b[Tt]imestamp: )1\d{9}(?:\d{3})?(?!\w)"
)
_UUID = re.compile(
    r"(?<![\w-])(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15})(?![\w-])"
)
_PROCESS = re.compile(r"(?<=\b[Pp]id )\d{1,7}\b|(?<=\b[Pp]id: )\d{1,7}\b|(?<=\bPID )\d{1,7}\b|(?<=\bPID: )\d{1,7}\b")
_LOCAL_PORT = re.compile(r"(?<![\w.@-])(localhost|127\.0\.0\.1|\[::1\]|0\.0\.0\.0):\d{2,5}(?![\w.:@])")
_COUNTED = (
    "accounts? agents? apis? assets? boards? branch(?:es)? buckets? calendars? channels? chunks? clusters? "
    "collections? columns? commands? commits? components? connections? containers? contacts? databases? datasets? "
    "devices? director(?:y|ies) documents? documentation endpoints? entit(?:y|ies) entries entry events? files? "
    "flows? folders? functions? hosts? icons? images? indexes indices integrations? issues? items? jobs? "
    "languages? librar(?:y|ies) lines? members? memor(?:y|ies) messages? metrics? models? modules? namespaces? "
    "nodes? notes? operations? packages? pages? plugins? pods? posts? processes projects? prompts? queries "
    "records? regions? relations? repositor(?:y|ies) repos? resources? results? routes? rows? schemas? scripts? "
    "servers? services? sessions? skills? sources? spaces? symbols? tables? tags? tasks? teams? templates? tests? "
    "threads? tools? topics? users? vectors? versions? views? workflows? workspaces?"
)
_NOUN = rf"(?:{'|'.join(_COUNTED.split())})"
_STATE = (
    "(?:open|closed|active|total|available|known|indexed|connected|registered|installed|enabled|loaded|cached|stored|running|"
    "unread|pending|configured|public|private|local|remote)"
)
_NUMBER = r"(?:\d{1,3}(?:,\d{3}){1,2}|\d{1,7})"
_COUNT = re.compile(rf"(?<![\w.,:/@#$%&=+*^~\\-]){_NUMBER}(?= (?:{_STATE} )?{_NOUN}\b)", re.IGNORECASE)
_COUNT_AFTER = re.compile(rf"\b({_NOUN}(?: {_STATE})?: ?){_NUMBER}(?![\w,:/@%]|\.\d)", re.IGNORECASE)
_PATH_END = r"(?![\w-]|\.\w)"
_TEMPORARY_NAME = rf"(?:[/\\]tmp[a-z0-9_]{{8}}{_PATH_END})?"
_NODE_TEMPORARY = re.compile(r"(<temporary>[/\\][\w.-]{1,40}-)[A-Za-z0-9]{6}(?![\w-]|\.\w)")
_SPACE = re.compile(r"[ \t\r\n\f]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Folders of this machine that servers write into their definitions."""

    folder: str | None = None
    """The folder in which the server runs."""
    home: str | None = None
    temporary: str | None = None
    _patterns: tuple[tuple[re.Pattern[str], str], ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        known = {self.folder: "<folder>", self.temporary: "<temporary>", self.home: "<home>"}
        paths = [(path.rstrip("/\\"), name) for path, name in known.items() if path]
        # The longest first, since a project's folder is usually inside the home folder.
        paths.sort(key=lambda one: -len(one[0]))
        patterns = [
            (re.compile(rf"(?<![\w.-]){re.escape(path)}{_TEMPORARY_NAME}{_PATH_END}"), name)
            for path, name in paths
            if len(path.strip("/\\")) >= _SHORTEST_PATH
        ]
        object.__setattr__(self, "_patterns", tuple(patterns))

    def replace(self, text: str) -> str:
        for pattern, name in self._patterns:
            text = pattern.sub(name, text)
        return text


def fingerprint(definition: JsonObject, places: Places) -> str:
    """Return the hash by which the definition of a tool or prompt, or a server's instructions, is compared."""
    try:
        said: Json = _normalised_object(definition, places, is_named=False)
    except RecursionError:
        # Nested deeper than Python's recursion limit: compared exactly.
        return exact_hash(definition)
    return exact_hash(cast("JsonObject", said))


def exact_hash(definition: JsonObject) -> str:
    """Return a hash that is equal for definitions that are equal as JSON values, whatever the order of their keys."""
    text = json.dumps(dict(definition), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _normalised(value: Json, places: Places) -> Json:
    if isinstance(value, dict):
        return _normalised_object(value, places, is_named=False)
    return [_normalised(one, places) for one in value] if isinstance(value, list) else value


def _normalised_object(said: Mapping[str, Json], places: Places, *, is_named: bool) -> dict[str, Json]:
    """Normalise an object. `is_named` if its keys are names that the server chose, such as those of properties."""
    if is_named:
        return {key: _normalised(value, places) for key, value in said.items()}
    return {key: _normalised_keyword(key, value, places) for key, value in said.items()}


def _normalised_keyword(key: str, value: Json, places: Places) -> Json:
    if isinstance(value, str) and key in _FREE_TEXT:
        text = value
        # A text longer than any tool needs is compared exactly: searching patterns in a megabyte would block every
        # other thread.
        if len(text) > _LONGEST_TEXT:
            return text
        text = _NODE_TEMPORARY.sub(r"\1<random>", places.replace(text))
        text = _UUID.sub("<uuid>", text)
        text = _MOMENT.sub("<time>", text)
        text = _LOCAL_PORT.sub(r"\1:<port>", text)
        text = _SPACE.sub(" ", text).strip(" ")
        text = _TODAY.sub("<time>", _AGE.sub("<time>", text))
        text = _PROCESS.sub("<process>", text)
        return _COUNT_AFTER.sub(r"\1<count>", _COUNT.sub("<count>", text))
    if key in _EXAMPLE_VALUES:
        return _normalised_example(value, places)
    if isinstance(value, list) and key in _UNORDERED:
        return sorted(value, key=lambda one: json.dumps(one, sort_keys=True))
    if key in _LITERAL:
        return value
    if isinstance(value, dict) and key in _NAMED:
        return _normalised_object(value, places, is_named=True)
    return _normalised(value, places)


def _normalised_example(value: Json, places: Places) -> Json:
    """Normalise an example value: replace only a folder of this machine, or a whole value that is a date or time. An
    identifier or a port may decide whom a call reaches."""
    if isinstance(value, str) and len(value) <= _LONGEST_TEXT:
        return "<time>" if _MOMENT.fullmatch(value) else places.replace(value)
    if isinstance(value, list):
        return [_normalised_example(one, places) for one in value]
    return {key: _normalised_example(one, places) for key, one in value.items()} if isinstance(value, dict) else value
