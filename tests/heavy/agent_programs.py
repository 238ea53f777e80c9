"""How is each agent program run with given servers against the scripted model, and what came of it?

Every run has a folder that is its home and its working directory, an environment of nothing but what stands here, keys
that are none, and where the machine allows it a network of loopback alone. It looks at no answer: that is up to whoever
reads the requests.
"""

import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from heavy.scripted_wires import wire_of

ROOT = Path(__file__).parents[2]
INSTALLED = ROOT / ".bench" / "agents" / "node_modules"
NODE = ROOT / ".bench" / "node" / "node_modules" / "node" / "bin"
MODEL = Path(__file__).parent / "scripted_model.py"
SECONDS = 60
PROMPT = "Do what has to be done."
SILENCE = {"NO_COLOR": "1", "CI": "1", "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost"}
"""Whatever lies beyond this machine is looked for at a port where nobody is."""

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A server as a client's configuration names it."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    required: bool = True
    """Codex waits for a required server; for others it waits a second and then goes on without them."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a run starts from."""

    home: Path
    port: int
    entries: Sequence[Entry]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def write(self, path: str, text: str) -> None:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def servers(self) -> Object:
        """As most programs want them."""
        return {
            entry.name: {"command": entry.command[0], "args": entry.command[1:], "env": dict(entry.environment)}
            for entry in self.entries
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """How the program is started, after its configuration was written."""

    arguments: Sequence[str]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    name: str
    package: str
    executables: Sequence[str]
    """Patterns under the installed packages, the first that is there; install scripts are not run, so the ones on the
    PATH may be stand-ins."""
    prepare: Callable[[Setup], Started]

    @property
    def executable(self) -> Path | None:
        return next((path for one in self.executables for path in sorted(INSTALLED.glob(one))), None)

    @property
    def version(self) -> str:
        about = json.loads((INSTALLED / self.package / "package.json").read_text(encoding="utf-8"))
        return about["version"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What was seen of one run."""

    code: int
    seconds: float
    output: str
    """Standard output and standard error."""
    requests: Sequence[Object]
    """Bodies of all requests to the model, in their order."""
    paths: Sequence[str]
    """Their paths."""

    def conversation(self) -> list[Object]:
        """Those requests that carry tools: what a title or a summary is asked with is no part of it."""
        return [body for body in self.requests if body.get("tools")]

    def first_tools(self) -> list[str]:
        """Names of the tools in the first request of the conversation, each with its namespace where it has one.

        Tools that Claude Code defers are named in the text of that request and count as well.
        """
        pairs = zip(self.paths, self.requests, strict=True)
        path, body = next(((path, body) for path, body in pairs if body.get("tools")), ("", {}))
        wire = wire_of(path)
        if wire is None:
            return []
        shown = [f"{one.namespace or ''}{one.name}" for one in wire.shown(body)]
        deferred = (name for text in texts(body) for name in re.findall(r"\bmcp__\w+__\w+", text))
        return list(dict.fromkeys([*shown, *deferred]))


def _claude(setup: Setup) -> Started:
    """With the servers named on the command line, for which Claude Code waits as long as they need."""
    setup.write("mcp.json", json.dumps({"mcpServers": setup.servers()}))
    return _start_claude(setup, "--mcp-config", str(setup.home / "mcp.json"), "--strict-mcp-config")


def claude_with_user_settings(setup: Setup) -> Started:
    """With the servers in the user's own settings, for which Claude Code waits two seconds."""
    setup.write(".claude.json", json.dumps({"mcpServers": setup.servers(), "hasCompletedOnboarding": True}))
    return _start_claude(setup)


def _start_claude(setup: Setup, *flags: str) -> Started:
    allowed = ",".join(f"mcp__{entry.name}" for entry in setup.entries)
    configured = [*flags, *(["--allowedTools", allowed] if allowed else [])]
    environment = {
        "ANTHROPIC_BASE_URL": setup.url,
        "ANTHROPIC_API_KEY": "sk-none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    return Started(arguments=["-p", PROMPT, *configured, "--output-format", "json"], environment=environment)


def _codex(setup: Setup) -> Started:
    lines = [
        'model = "gpt-5"',
        'model_provider = "scripted"',
        "[model_providers.scripted]",
        'name = "scripted"',
        f"base_url = {json.dumps(setup.url + '/v1')}",
        'wire_api = "responses"',
        'env_key = "SCRIPTED_KEY"',
    ]
    required = {entry.name for entry in setup.entries if entry.required}
    for name, server in setup.servers().items():
        lines += [f"[mcp_servers.{name}]", f"command = {json.dumps(server['command'])}"]
        lines += [f"args = {json.dumps(server['args'])}", 'default_tools_approval_mode = "approve"']
        lines += ["required = true"] if name in required else []
        lines += [f"[mcp_servers.{name}.env]", *(f"{key} = {json.dumps(one)}" for key, one in server["env"].items())]
    setup.write(".codex/config.toml", "\n".join(lines))
    return Started(arguments=["exec", "--skip-git-repo-check", "--json", PROMPT], environment={"SCRIPTED_KEY": "none"})


def _gemini(setup: Setup) -> Started:
    trusted = {name: {**server, "trust": True} for name, server in setup.servers().items()}
    settings = {"mcpServers": trusted, "security": {"auth": {"selectedType": "gemini-api-key"}}}
    setup.write(".gemini/settings.json", json.dumps(settings))
    environment = {
        "GOOGLE_GEMINI_BASE_URL": setup.url,
        "GEMINI_API_KEY": "none",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    arguments = ["-p", PROMPT, "--yolo", "-m", "gemini-2.5-pro", "--output-format", "json"]
    return Started(arguments=arguments, environment=environment)


def _opencode(setup: Setup) -> Started:
    servers = {
        entry.name: {"type": "local", "command": list(entry.command), "environment": dict(entry.environment)}
        for entry in setup.entries
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{setup.url}/v1", "apiKey": "none"},
        "models": {"scripted": {"name": "scripted", "limit": {"context": 1_000_000, "output": 10_000}}},
    }
    settings = {"model": "scripted/scripted", "provider": {"scripted": provider}, "mcp": servers, "autoupdate": False}
    setup.write("opencode.json", json.dumps(settings))
    return Started(arguments=["run", "--format", "json", PROMPT], environment={"OPENCODE_DISABLE_MODELS_FETCH": "1"})


def _qwen(setup: Setup) -> Started:
    trusted = {name: {**server, "trust": True} for name, server in setup.servers().items()}
    settings = {"mcpServers": trusted, "security": {"auth": {"selectedType": "openai"}}}
    setup.write(".qwen/settings.json", json.dumps(settings))
    environment = {"OPENAI_BASE_URL": f"{setup.url}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "scripted"}
    return Started(arguments=["-p", PROMPT, "--yolo", "--output-format", "json"], environment=environment)


PROGRAMS = (
    Program(
        name="Claude Code",
        package="@anthropic-ai/claude-code",
        executables=["@anthropic-ai/claude-code-*/claude"],
        prepare=_claude,
    ),
    Program(
        name="Codex",
        package="@openai/codex",
        executables=["@openai/codex-*/vendor/*/bin/codex"],
        prepare=_codex,
    ),
    Program(
        name="Gemini CLI",
        package="@google/gemini-cli",
        executables=["@google/gemini-cli/bundle/gemini.js"],
        prepare=_gemini,
    ),
    Program(
        name="opencode",
        package="opencode-ai",
        # The one for older processors runs everywhere.
        executables=["opencode-*-baseline/bin/opencode", "opencode-*/bin/opencode"],
        prepare=_opencode,
    ),
)

QWEN = Program(
    name="Qwen Code",
    package="@qwen-code/qwen-code",
    executables=["@qwen-code/qwen-code/cli-entry.js"],
    prepare=_qwen,
)
"""Not among the others, whose session files are read as well."""


def run(
    program: Program,
    home: Path,
    entries: Sequence[Entry],
    script: Sequence[Object],
    folder: Path | None = None,
    *,
    port: int | None = None,
) -> Run:
    """Run the program once, in its home unless another working folder is named; the model listens at any port unless
    one is given."""
    assert program.executable is not None, f"{program.package} is not installed"
    setup = Setup(home=home, port=free_port() if port is None else port, entries=entries)
    started = program.prepare(setup)
    log = home / "requests.jsonl"
    command = [str(program.executable), *started.arguments]
    if program.executable.suffix == ".js":
        command.insert(0, str(NODE / "node"))
    model = [sys.executable, str(MODEL), "--port", str(setup.port), "--log", str(log), "--script", json.dumps(script)]
    environment = {"PATH": f"{NODE}:/usr/bin:/bin", "HOME": str(home), "TERM": "dumb", **SILENCE, **started.environment}
    begun = time.monotonic()
    done = subprocess.run(
        [*_alone(), *model, "--seconds", str(SECONDS), "--", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=environment,
        cwd=folder or home,
        timeout=SECONDS + 30,
        check=False,
    )
    requests = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return Run(
        code=done.returncode,
        seconds=time.monotonic() - begun,
        output=done.stdout.decode(errors="replace"),
        requests=[request["body"] for request in requests],
        paths=[request["path"] for request in requests],
    )


def free_port() -> int:
    with socket.socket() as any_socket:
        any_socket.bind(("127.0.0.1", 0))
        return any_socket.getsockname()[1]


@cache
def _alone() -> tuple[str, ...]:
    """What puts a program into a network of loopback alone; nothing where the machine does not allow it."""
    command = ("unshare", "--map-root-user", "--net")
    if shutil.which(command[0]) is None:
        return ()
    done = subprocess.run([*command, "true"], capture_output=True, check=False)
    return command if done.returncode == 0 else ()


def texts(value: object) -> Iterator[str]:
    """Every text in a body, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for one in value.values() for text in texts(one))
    elif isinstance(value, Sequence):
        yield from (text for one in value for text in texts(one))


def weigh_request(body: Object, count: Callable[[str], int]) -> int:
    """The tokens of a request as a model reads it: its tools as JSON, and every other text without JSON's escapes."""
    tools = json.dumps(body["tools"], ensure_ascii=False, separators=(",", ":"))
    return count(tools) + sum(map(count, texts({key: part for key, part in body.items() if key != "tools"})))
