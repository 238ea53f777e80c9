"""Which of the server's settings may be asked for?

Those that tell of the host, its files, its keys or its passwords may not. Reading is meant; setting is no query at all.
"""

import re

from .wording import refusal

__all__ = [
    "ASKING",
    "HIDDEN_SETTINGS",
    "HIDDEN_VARIABLES",
    "SHOWN_SETTINGS",
    "check_setting",
    "check_variable",
    "is_hidden_variable",
]

ASKING = frozenset({"current_setting"})
"""Functions whose argument names a setting."""
HIDDEN_SETTINGS = (
    "_file|_directory|directories|_path|_command|_library|_libraries|conninfo|passw|secret|token|"
    "_key|credential|certificate|listen_addresses|unix_socket|krb|^ssl_|primary_slot|data_dir|event_source|"
    "external_pid|cluster_name|home_dir|temp_dir|extension_repository"
)
"""What the names of such settings hold; PostgreSQL reads it as Python does."""
_HIDDEN = re.compile(HIDDEN_SETTINGS)
_OF_A_NAME = "[a-z0-9_]"
HIDDEN_VARIABLES = (
    r"\w*(?:basedir|datadir|tmpdir)|\w+_(?:dir|directory|file|path|capath|basename|index|address|keytab|pwd|password)"
    r"|(?:\w+_)?(?:ssl_(?:ca|cert|crl|crlpath|key|cipher)|socket|private_key\w*|public_key\w*)|hostname|log_error"
    r"|secure_file_priv|init_(?:connect|slave|replica)|report_\w+|keyring_\w+|wsrep_(?:sst|provider|notify)_\w+"
).replace(r"\w", _OF_A_NAME)
"""Whole names of such settings in MySQL, in lower case; MySQL reads it as Python does."""
_HIDDEN_IN_MYSQL = re.compile(HIDDEN_VARIABLES)
SHOWN_SETTINGS = frozenset({"search_path", "log_file_mode"})
"""Those that tell nothing of the host, whatever they are called."""


def check_setting(name: str | None) -> None:
    """None for one that is not written as a plain string."""
    if name is None:
        raise refusal(
            "current_setting", "asks for a setting that is not written out", "Write the name as a plain '…' string."
        )
    lowered = name.lower().strip()
    if lowered not in SHOWN_SETTINGS and _HIDDEN.search(lowered):
        raise refusal(name, "is a setting that tells of the host", "Ask for settings of queries, such as timezone.")


def is_hidden_variable(name: str) -> bool:
    """Of MySQL: whether a variable tells of the host."""
    return _HIDDEN_IN_MYSQL.fullmatch(name.lower()) is not None


def check_variable(name: str) -> None:
    """Of MySQL, as written after `@@` and the scope."""
    if is_hidden_variable(name):
        raise refusal(f"@@{name}", "is a setting that tells of the host", "Ask for settings of queries, as sql_mode.")
