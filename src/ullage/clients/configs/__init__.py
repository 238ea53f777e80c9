"""Configuration of MCP servers in other programs: its location, its content, and how to change it.

`read_clients` reads all programs without changing anything. `edit_content` edits one file and keeps every byte that is
not affected; `UndoFolder` carries out such a change and takes it back.
"""

from .client_files import (
    ChangeRecord,
    ClientConfig,
    FileChanged,
    UndoFolder,
    Undone,
    current_surroundings,
    edit_content,
    is_deferring,
    parse_config,
    read_bytes,
    read_client,
    read_clients,
    remove_file,
    replace_file,
    undo_change,
)
from .first_request import ListedServer, first_request_texts, format_definition, format_instructions
from .programs import PROGRAMS, Program, Surroundings, find_program
from .server_entries import (
    ConfigFile,
    Edit,
    EditRefused,
    FileFormat,
    KeyPath,
    Problem,
    Put,
    Remove,
    Scope,
    ServerEntry,
    ToolRules,
    read_names,
    value_at,
)

__all__ = [
    "PROGRAMS",
    "ChangeRecord",
    "ClientConfig",
    "ConfigFile",
    "Edit",
    "EditRefused",
    "FileChanged",
    "FileFormat",
    "KeyPath",
    "ListedServer",
    "Problem",
    "Program",
    "Put",
    "Remove",
    "Scope",
    "ServerEntry",
    "Surroundings",
    "ToolRules",
    "UndoFolder",
    "Undone",
    "current_surroundings",
    "edit_content",
    "find_program",
    "first_request_texts",
    "format_definition",
    "format_instructions",
    "is_deferring",
    "parse_config",
    "read_bytes",
    "read_client",
    "read_clients",
    "read_names",
    "remove_file",
    "replace_file",
    "undo_change",
    "value_at",
]
