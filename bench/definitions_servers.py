"""Real MCP servers for `bench/definitions.py`: installs them into `.bench/definitions` and records what they offer.

A catalogue (one .json a server) names the package, its version and the command it was recorded with. Every package gets
an environment of its own, so that one package's dependencies never change what another offers. Each start runs in a
folder, a home and a temporary folder made for it alone, with a minimal environment and no key of the user's.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from ullage.errors import UllageError
from ullage.gateway import Server, definition
from ullage.wire import Host

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".bench" / "definitions"
INSTALL_SECONDS = 400
START_SECONDS = 75.0

TESTBED = (
    ("npm", "@modelcontextprotocol/server-everything", "2026.8.31", ("npx @modelcontextprotocol/server-everything",)),
    (
        "npm",
        "@modelcontextprotocol/server-filesystem",
        "2026.8.31",
        ("npx @modelcontextprotocol/server-filesystem", "{folder}"),
    ),
    ("npm", "@modelcontextprotocol/server-memory", "2026.8.31", ("npx @modelcontextprotocol/server-memory",)),
    ("pypi", "mcp-server-fetch", "", ("mcp-server-fetch",)),
    ("pypi", "mcp-grafana", "2.1.1", ("mcp-grafana",)),
)
"""Servers that start fast and need no network, beside those of the catalogues."""

VALUES = {
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "FASTMCP_LOG_LEVEL": "ERROR",
    "BRAVE_MCP_TRANSPORT": "stdio",
    "MCP_TRANSPORT_TYPE": "stdio",
    "MCP_MODE": "stdio",
    "DISABLE_CONSOLE_OUTPUT": "true",
    "LOG_LEVEL": "error",
    "AZURE_MCP_COLLECT_TELEMETRY": "false",
    "DT_MCP_DISABLE_TELEMETRY": "true",
    "N8N_MCP_TELEMETRY_DISABLED": "true",
    "OPT_OUT_INSTRUMENTATION": "true",
    "OPENSEARCH_NO_AUTH": "true",
    "CB_CONNECTION_STRING": "couchbase://127.0.0.1",
    "DT_ENVIRONMENT": "https://abc12345.apps.dynatrace.com",
    "MAPBOX_ACCESS_TOKEN": "pk.eyJ1IjoiZmFrZSJ9.fake",
}
"""What a variable must look like for its server to start; any other gets a plain fake."""

KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "https://127.0.0.1:9"}}]
users: [{name: nobody, user: {token: fake}}]
contexts: [{name: none, context: {cluster: none, user: nobody}}]
current-context: none
"""
"""A cluster that nobody serves, for servers that read one at their start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    registry: str
    name: str
    version: str
    command: tuple[str, ...]
    variables: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return FOLDER / f"{self.registry}-{self.name.strip('@').replace('/', '_')}"


def read_packages(data: Path) -> list[Package]:
    """The packages of the catalogues in a folder, and those of the testbed that are not among them."""
    found = {}
    for path in sorted(data.glob("*.json")):
        said = json.loads(path.read_text(encoding="utf-8"))
        found[said["package"]] = Package(
            registry=said["registry"],
            name=said["package"],
            version=said["version"],
            command=tuple(said["command"]),
            variables=tuple(said["env_keys"]),
        )
    for registry, name, version, command in TESTBED:
        found.setdefault(name, Package(registry=registry, name=name, version=version, command=command))
    return list(found.values())


def install(package: Package) -> str | None:
    """Installs a package where it is not yet; returns why it cannot be, remembered for the next run."""
    done, failed = package.folder / ".installed", package.folder / ".failed"
    if done.exists():
        return None
    if failed.exists():
        return failed.read_text(encoding="utf-8")
    print(f"installing {package.name} {package.version} …", file=sys.stderr)
    shutil.rmtree(package.folder, ignore_errors=True)
    package.folder.mkdir(parents=True)
    try:
        reason = _install_pypi(package) if package.registry == "pypi" else _install_npm(package)
    except subprocess.TimeoutExpired:
        reason = f"not installed within {INSTALL_SECONDS} s"
    (done if reason is None else failed).write_text(reason or "", encoding="utf-8")
    return reason


def _install_pypi(package: Package) -> str | None:
    uv = FOLDER / "uv"
    if not uv.exists():
        subprocess.run([sys.executable, "-m", "venv", str(uv)], check=True)
        subprocess.run([uv / "bin" / "pip", "install", "--quiet", "uv"], check=True, capture_output=True)
    environment = package.folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    wanted = f"{package.name}=={package.version}" if package.version else package.name
    command = [uv / "bin" / "uv", "pip", "install", "--quiet", "--python", environment / "bin" / "python", wanted]
    return _reason(["nice", *map(str, command)])


def _install_npm(package: Package) -> str | None:
    wanted = f"{package.name}@{package.version}"
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(package.folder), wanted]
    return _reason(["nice", *command], PUPPETEER_SKIP_DOWNLOAD="1", PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD="1")


def _reason(command: list[str], **variables: str) -> str | None:
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
        env={**os.environ, **variables},
    )
    words = (ended.stderr.strip() or ended.stdout.strip() or f"exit {ended.returncode}").splitlines()
    return None if ended.returncode == 0 else words[-1][:200]


def record(package: Package, number: int) -> dict[str, Any]:
    """What a package's server offers at one start, with the folders that this start was given."""
    place = package.folder / "starts" / f"run-{number}-{os.getpid()}"
    shutil.rmtree(place, ignore_errors=True)
    folders = {name: place / name for name in ("project", "home", "tmp")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    (folders["project"] / "kubeconfig").write_text(KUBECONFIG, encoding="utf-8")
    (folders["home"] / ".aws").mkdir()
    (folders["home"] / ".aws" / "config").write_text("[default]\nregion = us-east-1\n", encoding="utf-8")
    environment = {
        "PATH": f"{_node_path()}{os.environ['PATH']}",
        "HOME": str(folders["home"]),
        "TMPDIR": str(folders["tmp"]),
        "LANG": "C.UTF-8",
    }
    places = {name: str(folder) for name, folder in folders.items()}
    return {"places": places, **anyio.run(_record, package, environment, folders["project"])}


def _node_path() -> str:
    node = ROOT / ".bench" / "node" / "node_modules" / "node" / "bin"
    return f"{node}:" if node.exists() else ""


async def _record(package: Package, environment: Mapping[str, str], folder: Path) -> dict[str, Any]:
    program, *arguments = package.command
    name = program.removeprefix("npx ")
    path = package.folder / ("venv/bin" if package.registry == "pypi" else "node_modules/.bin")
    command = path / name if package.registry == "pypi" else path / _npm_program(package)
    server = Server(
        name="server",
        transport="stdio",
        command=str(command),
        arguments=tuple(one.replace("{folder}", str(folder)).replace("/workspace", str(folder)) for one in arguments),
        environment={key: VALUES.get(key, _fake(key, folder)) for key in package.variables},
        directory=str(folder),
        start_timeout=START_SECONDS,
    )
    async with Host(environment=environment) as host:
        source = host.source(server)
        with anyio.fail_after(START_SECONDS + 30):
            tools = await source.tools()
            try:
                prompts = await source.prompts() if "prompts" in source.capabilities else ()
            except UllageError:
                prompts = ()
        said = source.introduction()
        health = source.health()
    return {
        "tools": [definition(tool) for tool in tools.tools],
        "prompts": [dict(one) for one in prompts],
        "instructions": None if said is None else said.instructions,
        "title": None if said is None else said.title,
        "protocol": health.protocol,
    }


def _npm_program(package: Package) -> str:
    manifest = package.folder / "node_modules" / package.name / "package.json"
    programs = json.loads(manifest.read_text(encoding="utf-8")).get("bin") or {}
    short = package.name.split("/")[-1]
    if isinstance(programs, str):
        return short
    return short if short in programs else next(iter(programs))


def _fake(key: str, folder: Path) -> str:
    if key == "GOOGLE_OAUTH_CREDENTIALS":
        path = folder / "keys.json"
        secret = {
            "client_id": "fake.apps.googleusercontent.com",
            "client_secret": "fake",
            "redirect_uris": ["http://localhost"],
        }
        path.write_text(json.dumps({"installed": secret}), encoding="utf-8")
        return str(path)
    if "URL" in key:
        return "http://127.0.0.1:9"
    return "127.0.0.1" if "HOST" in key else "fake"
