"""Configuration of MCP servers in other programs: where it is, what it says, and how to change it.

`read_clients` reads all programs without changing anything. `edit_content` edits one file and keeps every byte that is
not concerned; `UndoFolder` carries such a change out and takes it back.
"""

from .edits import Edit, EditRefused, KeyPath, Put, Remove
from .entries import ConfigFile, FileFormat, Problem, Scope, ServerEntry, ToolRules
from .files import FileChanged, read_bytes, replace_file
from .programs import PROGRAMS, Program, Surroundings, find_program
from .reading import ClientConfig, current_surroundings, parse_config, read_client, read_clients
from .undo import ChangeRecord, UndoFolder, Undone, edit_content, undo_change

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
    "parse_config",
    "read_bytes",
    "read_client",
    "read_clients",
    "replace_file",
    "undo_change",
]
