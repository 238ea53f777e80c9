"""Servers as a settings file names them, and a home of one's own, for tests of the whole program."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from approving import approve

WIRE = Path(__file__).parent / "wire"
RECORDED = 'echo started >> "$STARTS"; exec "$0" "$@"'


def tool(name: str, description: str = "", **more) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "description": description or f"Does {name}.", "inputSchema": schema, **more}


def scripted(*tools: dict[str, Any], era: str = "both", starts: Path | None = None, **more) -> dict[str, Any]:
    """A server that offers these tools, or all that the script has; it writes each of its starts into `starts`."""
    script = {"results": {"tools/list": {"tools": list(tools)}}} if tools else {}
    words = [sys.executable, str(WIRE / "scripted_server.py"), era, json.dumps(script)]
    if starts is None:
        return {"command": words[0], "args": words[1:], **more}
    env = {"STARTS": str(starts), **more.pop("env", {})}
    return {"command": "sh", "args": ["-c", RECORDED, *words], "env": env, **more}


def unruly(manner: str, **more) -> dict[str, Any]:
    """A server that misbehaves in this manner."""
    return {"command": sys.executable, "args": [str(WIRE / "unruly_server.py"), manner], **more}


def write_json(path: Path, **servers: dict[str, Any]) -> Path:
    """An `mcpServers` file, approved where it is in a project."""
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return approve(path)


def write_toml(path: Path, text: str = "", **servers: dict[str, Any]) -> Path:
    """An approved `ullage.toml`: the text, then the servers. JSON's texts, lists and booleans are TOML's too."""
    lines = [text]
    for name, entry in servers.items():
        env = entry.get("env", {})
        lines += [
            f"[servers.{name}]",
            *(f"{key} = {json.dumps(value)}" for key, value in entry.items() if key != "env"),
        ]
        lines += (
            [f"env = {{ {', '.join(f'{key} = {json.dumps(value)}' for key, value in env.items())} }}"] if env else []
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return approve(path)


def users_file(folder: Path) -> Path:
    """The user's own ullage.toml, of the user who lives in this folder."""
    path = folder / "home" / "config" / "ullage" / "ullage.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def settle_in(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Has this process and its children live in a folder: nothing of the user's is read or written."""
    (folder / "home").mkdir()
    (folder / "work").mkdir()
    own = ("CONFIG", "STORE", "MODEL", "MODE", "TOKENS", "BUDGET")
    keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY")
    for name in (
        *(f"ULLAGE_{one}" for one in own),
        *keys,
        "ORCH_LOG_LEVEL",
        "ORCH_COST_ALERT_USD",
        "ORCH_USAGE_EXPORT",
    ):
        patch.delenv(name, raising=False)
    # `ullage doctor` names what looks like a secret, and another machine has others.
    looks_secret = re.compile(r"key|token|secret|pass|auth|cred|cookie|dsn", re.IGNORECASE)
    for name in [name for name in os.environ if looks_secret.search(name) or "://" in os.environ[name]]:
        if not name.lower().endswith("_proxy"):
            patch.delenv(name)
    for name in ("CONFIG", "DATA", "CACHE", "STATE"):
        patch.setenv(f"XDG_{name}_HOME", str(folder / "home" / name.lower()))
    patch.setenv("HOME", str(folder / "home"))
    patch.setenv("NO_COLOR", "1")
    patch.chdir(folder / "work")
