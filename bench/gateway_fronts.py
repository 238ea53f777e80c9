"""Who is measured by `make bench-gateway`, how is each started, and how does each want to be called?

Direct, a minimal relay, Ullage in its two modes, fastmcp's proxy without and with search, mcp-compressor. The peers
live in environments of their own under `.bench/`, made on first use; one that cannot be installed is left out and said
to be.
"""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from environment import ROOT

HERE = Path(__file__).parent
Named = tuple[str, dict[str, Any]]
"""A tool's name and its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A server to be put behind a gateway."""

    name: str
    script: str
    options: tuple[str, ...] = ()

    @property
    def command(self) -> list[str]:
        return [sys.executable, str(HERE / self.script), "--name", self.name, *self.options]


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """One way to reach the servers."""

    name: str
    command: Callable[[Sequence[Upstream], Path], list[str]]
    """For these servers, with a folder for whatever it must write down."""
    call: Callable[[Sequence[Upstream], Upstream, str, dict[str, Any]], Named]
    find: Callable[[str], Named] | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


def ullage_settings(servers: Sequence[Upstream], folder: Path, mode: str) -> Path:
    tables = [f'[gateway]\nmode = "{mode}"\n', f"[store]\nurl = {json.dumps(f'sqlite:///{folder}/store.db')}\n"]
    for server in servers:
        program, *arguments = server.command
        tables.append(f"[servers.{server.name}]\ncommand = {json.dumps(program)}\nargs = {json.dumps(arguments)}\n")
    path = folder / "ullage.toml"
    path.write_text("\n".join(tables), encoding="utf-8")
    return path


def _ullage(mode: str) -> Callable[[Sequence[Upstream], Path], list[str]]:
    def command(servers: Sequence[Upstream], folder: Path) -> list[str]:
        settings = ullage_settings(servers, folder, mode)
        return [sys.executable, "-m", "ullage", "serve", "--config", str(settings)]

    return command


def _fastmcp(kind: str) -> Callable[[Sequence[Upstream], Path], list[str]]:
    def command(servers: Sequence[Upstream], _: Path) -> list[str]:
        named = [f"{server.name}={shlex.join(server.command)}" for server in servers]
        return [str(_python("fastmcp")), str(HERE / "gateway_fastmcp.py"), kind, *named]

    return command


def _compressor(servers: Sequence[Upstream], _: Path) -> list[str]:
    program = str(_python("mcp-compressor").parent / "mcp-compressor")
    if len(servers) == 1:
        return [program, "--server-name", servers[0].name, "--", *servers[0].command]
    several = (("--multi-server", f"{server.name}={shlex.join(server.command)}") for server in servers)
    return [program, *(part for pair in several for part in pair)]


def _fastmcp_name(servers: Sequence[Upstream], server: Upstream, tool: str) -> str:
    return tool if len(servers) == 1 else f"{server.name}_{tool}"


_QUIET = {"FASTMCP_CHECK_FOR_UPDATES": "off", "FASTMCP_LOG_LEVEL": "ERROR"}

DIRECT = Front(
    name="direct",
    command=lambda servers, _: servers[0].command,
    call=lambda _, __, tool, arguments: (tool, arguments),
)
RELAY = Front(
    name="minimal relay",
    command=lambda servers, _: [sys.executable, str(HERE / "gateway_relay.py"), *servers[0].command],
    call=lambda _, __, tool, arguments: (tool, arguments),
)
OURS = Front(
    name="ullage, as they are",
    command=_ullage("direct"),
    call=lambda _, server, tool, arguments: (f"{server.name}__{tool}", arguments),
)
OURS_FOUND = Front(
    name="ullage, find and call",
    command=_ullage("search"),
    call=lambda _, server, tool, arguments: (
        "call_tool",
        {"tool_name": f"{server.name}__{tool}", "parameters": arguments},
    ),
    find=lambda words: ("find_tool", {"tool_description": words}),
)
FASTMCP = Front(
    name="fastmcp, proxy",
    command=_fastmcp("proxy"),
    call=lambda servers, server, tool, arguments: (_fastmcp_name(servers, server, tool), arguments),
    environment=_QUIET,
)
FASTMCP_FOUND = Front(
    name="fastmcp, search and call",
    command=_fastmcp("search"),
    call=lambda servers, server, tool, arguments: (
        "call_tool",
        {"name": _fastmcp_name(servers, server, tool), "arguments": arguments},
    ),
    find=lambda words: ("search_tools", {"query": words}),
    environment=_QUIET,
)
COMPRESSOR = Front(
    name="mcp-compressor",
    command=_compressor,
    call=lambda _, server, tool, arguments: (
        f"{server.name}_invoke_tool",
        {"tool_name": tool, "tool_input": arguments},
    ),
)
PEERS: dict[str, tuple[Front, ...]] = {"fastmcp": (FASTMCP, FASTMCP_FOUND), "mcp-compressor": (COMPRESSOR,)}


def _python(package: str) -> Path:
    return ROOT / ".bench" / package / "bin" / "python"


def install(package: str) -> str | None:
    """The version that is there, the newest that can be installed where there was none; None where that is none."""
    python = _python(package)
    if not python.exists():
        print(f"making the environment of {package} in {python.parents[1].relative_to(ROOT)} …", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
    return _version(package) or _newest(package)


def _newest(package: str) -> str | None:
    command = [str(_python(package)), "-m", "pip", "install", "--quiet", package]
    subprocess.run(command, capture_output=True, check=False)
    return _version(package)


def _version(package: str) -> str | None:
    question = f"import importlib.metadata as m; print(m.version({package!r}))"
    done = subprocess.run([str(_python(package)), "-c", question], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def peers(*, wanted: bool) -> list[Front]:
    """Those that are there, after saying who they are."""
    if not wanted:
        print("the peers are left out, as asked")
        return []
    found = list[Front]()
    for package, fronts in PEERS.items():
        version = install(package)
        print(f"{package} {version}" if version else f"{package} cannot be installed here and is left out")
        found += fronts if version else ()
    return found
