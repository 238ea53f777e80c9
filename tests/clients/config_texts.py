"""Random configuration files as people and programs leave them: comments, odd blanks, unknown keys, any line ending."""

import json
from random import Random
from typing import Any, cast

from ullage.clients.configs.toml_text import render_toml_key, render_toml_value

WORDS = [
    "github",
    "fs",
    "a b",
    "näme",
    "x.y",
    'quo"te',
    "mcp-server",
    "",
    "Ключ",
    "back\\slash",
    "tab\t",
    "#no",
    "//no",
]


def random_value(rng: Random, depth: int = 0) -> object:
    kind = rng.randrange(8 if depth < 3 else 5)
    if kind == 5:
        return [random_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind > 5:
        return {rng.choice(WORDS): random_value(rng, depth + 1) for _ in range(rng.randrange(4))}
    return [rng.choice(WORDS), rng.randrange(-9, 9999), True, 1.5, "/* no */ , } ] {"][kind]


def random_servers(rng: Random) -> dict[str, Any]:
    names = rng.sample(WORDS, rng.randrange(6))
    return {
        name: {"command": rng.choice(WORDS), "args": ["-y", rng.choice(WORDS)], **random_table(rng)} for name in names
    }


def random_table(rng: Random) -> dict[str, Any]:
    return {rng.choice(WORDS): random_value(rng, 1) for _ in range(rng.randrange(3))}


class JsonWriter:
    """Writes a document as JSON with comments, each of them numbered, in one random style."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.newline = rng.choice(["\n", "\n", "\r\n"])
        self.indent = rng.choice(["  ", "    ", "\t", " ", ""])
        self.is_flat = rng.random() < 0.2
        self.has_comments = rng.random() < 0.6
        self.comments = 0

    def document(self, value: dict[str, Any]) -> str:
        start = self.rng.choice(["", "", "\ufeff"]) + self.blank(0)
        end = self.rng.choice(["", self.newline])
        return start + self.value(value, 0) + end

    def blank(self, depth: int, *, is_line: bool = False) -> str:
        parts = [self.newline + self.indent * depth] if is_line and not self.is_flat else []
        if self.has_comments and self.rng.random() < 0.25:
            self.comments += 1
            text = f'c{self.comments}: "x", {{'
            parts.insert(
                self.rng.randrange(2), f" /* {text} */" if self.rng.random() < 0.5 else f" // {text}{self.newline}"
            )
        return "".join(parts) + self.rng.choice(["", "", " "])

    def value(self, value: object, depth: int) -> str:
        if isinstance(value, dict) and value:
            parts = list[str]()
            for key, one in cast("dict[str, object]", value).items():
                name = json.dumps(key, ensure_ascii=self.rng.random() < 0.5)
                start = f"{self.blank(depth + 1, is_line=True)}{name}{self.blank(0)}: {self.blank(0)}"
                parts.append(f"{start}{self.value(one, depth + 1)}{self.blank(0)}")
            comma = "," if self.has_comments and self.rng.random() < 0.3 else ""
            return "{" + ",".join(parts) + comma + self.blank(depth, is_line=True) + "}"
        if isinstance(value, dict):
            return "{" + self.blank(depth) + "}"
        return json.dumps(value, ensure_ascii=False)


def write_toml(rng: Random, before: dict[str, Any], servers: dict[str, Any], after: dict[str, Any]) -> str:
    """A file with keys, the tables of servers in a random form, and other tables."""
    newline = rng.choice(["\n", "\r\n"])
    lines = [f"{render_toml_key(key)} = {render_toml_value(value)} # key" for key, value in before.items()]
    form = rng.choice(["headings", "headings", "parent", "dotted", "inline"])
    if form == "inline":
        lines.append(f"mcp_servers = {render_toml_value(servers)}")
    elif form == "dotted":
        lines += [
            f"mcp_servers . {render_toml_key(name)}.{render_toml_key(key)}={render_toml_value(value)}"
            for name, server in servers.items()
            for key, value in server.items()
        ]
    elif form == "parent":
        lines += [
            "",
            "[ mcp_servers ]  # all",
            *(f"  {render_toml_key(name)} = {render_toml_value(one)}" for name, one in servers.items()),
        ]
    else:
        for name, server in servers.items():
            lines += [*rng.choice([[""], ["", "# about"], []]), f"[mcp_servers.{render_toml_key(name)}]"]
            tables = {key: value for key, value in server.items() if isinstance(value, dict)}
            lines += [
                f"{render_toml_key(key)} = {render_toml_value(value)}"
                for key, value in server.items()
                if key not in tables
            ]
            for key, table in tables.items():
                lines += [f"[mcp_servers.{render_toml_key(name)}.{render_toml_key(key)}]", "# inside"]
                lines += [f"{render_toml_key(one)} = {render_toml_value(value)}" for one, value in table.items()]
    for name, table in after.items():
        lines += [
            "",
            "# next",
            f"[{render_toml_key(name)}]",
            'text = """',
            "[mcp_servers.fake]",
            '"""',
            "list = [",
            " 1, # ]",
            "]",
        ]
        lines += [f"{render_toml_key(key)} = {render_toml_value(value)}" for key, value in table.items()]
    return rng.choice(["", "\ufeff"]) + newline.join(lines) + rng.choice(["", newline])
