"""Print a shell's completion script: commands, options, choices and the names of programs.

ullage completion bash > ~/.local/share/bash-completion/completions/ullage
ullage completion zsh > "${fpath[1]}/_ullage"
ullage completion fish > ~/.config/fish/completions/ullage.fish
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ullage.clients.configs import PROGRAMS

from .output import emit, emit_json

__all__ = ["arguments", "run"]

SHELLS = ("bash", "zsh", "fish")
_WHOLE_FLAGS = "--help --version --json"
"""Flags before the command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    names: tuple[str, ...]
    help: str
    takes_value: bool
    choices: tuple[str, ...]
    is_file: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Command:
    help: str
    options: tuple[_Option, ...]
    words: tuple[str, ...]
    """Possible values of the first argument; empty if it may be anything."""
    takes_files: bool


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="your shell")
    parser.add_argument("--json", action="store_true", help="print JSON, with the script as a string")


def run(arguments: argparse.Namespace) -> int:
    from .main import VERBS, verb_parser

    commands = dict[str, _Command]()
    for name, summary in VERBS.items():
        parser = verb_parser(name)
        options, words, takes_files = list[_Option](), tuple[str, ...](), False
        for action in parser._actions:  # noqa: SLF001 - argparse has no public list of a parser's arguments
            choices = tuple(map(str, action.choices or ()))
            if not action.option_strings:
                words = words or choices or (tuple(PROGRAMS) if action.metavar == "CLIENT" else ())
                takes_files = takes_files or (not choices and action.metavar not in ("CLIENT", "SERVER", "TOOL"))
                continue
            options.append(
                _Option(
                    names=tuple(action.option_strings),
                    help=" ".join((action.help or "").replace("%(default)s", str(action.default)).split()),
                    takes_value=action.nargs != 0,
                    choices=choices,
                    is_file=str(action.metavar) in ("FILE", "DIR", "PATH", "FOLDER"),
                )
            )
        commands[name] = _Command(help=summary, options=tuple(options), words=words, takes_files=takes_files)
    script = {"bash": _bash, "zsh": _zsh, "fish": _fish}[arguments.shell](commands)
    if arguments.json:
        emit_json({"shell": arguments.shell, "script": script})
    else:
        emit(script.rstrip("\n"))
    return 0


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# -- bash


def _bash(commands: Mapping[str, _Command]) -> str:
    branches = list[str]()
    for name, one in commands.items():
        values = [
            f"      {'|'.join(option.names)}) {_bash_values(option)}; return ;;"
            for option in one.options
            if option.takes_value
        ]
        names = " ".join(long for option in one.options for long in option.names)
        words = " ".join(one.words)
        otherwise = "compopt -o default; COMPREPLY=()" if one.takes_files and not words else _bash_words(words)
        lines = [f"    {name})", '      case "$previous" in', *values, "      esac"]
        lines += [f'      if [[ "$current" == -* ]]; then {_bash_words(names)}; else {otherwise}; fi ;;']
        branches.append("\n".join(lines))
    return f"""# bash completion for ullage
_ullage() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" verb="" word
  COMPREPLY=()
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    if [[ "$word" != -* ]]; then verb="$word"; break; fi
  done
  case "$verb" in
    "") {_bash_words(" ".join((*commands, _WHOLE_FLAGS)))} ;;
{chr(10).join(branches)}
  esac
}}
complete -F _ullage ullage
"""


def _bash_words(words: str) -> str:
    return f'COMPREPLY=($(compgen -W {_quote(words)} -- "$current"))'


def _bash_values(option: _Option) -> str:
    if option.choices:
        return _bash_words(" ".join(option.choices))
    return "compopt -o default; COMPREPLY=()" if option.is_file else "COMPREPLY=()"


# -- zsh


def _zsh(commands: Mapping[str, _Command]) -> str:
    listed = "\n".join(f"    {_quote(f'{name}:{_zsh_text(one.help)}')}" for name, one in commands.items())
    branches = list[str]()
    for name, one in commands.items():
        specs = [_zsh_option(option) for option in one.options]
        words = [f"*:argument:({' '.join(one.words)})"] if one.words else ["*:file:_files"] if one.takes_files else []
        arguments = " \\\n        ".join(_quote(spec) for spec in (*specs, *words))
        branches.append(f"    {name})\n      _arguments -S \\\n        {arguments} ;;")
    return f"""#compdef ullage
# zsh completion for ullage
_ullage() {{
  local -a commands
  commands=(
{listed}
  )
  local -i place=2
  while (( place < CURRENT )) && [[ "$words[place]" == -* ]]; do (( place++ )); done
  if (( CURRENT == place )); then
    if [[ "$PREFIX" == -* ]]; then compadd -- {_WHOLE_FLAGS}; else _describe -t commands 'ullage command' commands; fi
    return
  fi
  local verb="$words[place]"
  shift $(( place - 1 )) words
  (( CURRENT -= place - 1 ))
  case "$verb" in
{chr(10).join(branches)}
  esac
}}
if [ "$funcstack[1]" = "_ullage" ]; then _ullage "$@"; else compdef _ullage ullage; fi
"""


def _zsh_option(option: _Option) -> str:
    name = option.names[-1]
    said = f"[{_zsh_text(option.help).replace('[', '(').replace(']', ')')}]"
    if not option.takes_value:
        return f"{name}{said}"
    value = (
        f":value:({' '.join(option.choices)})" if option.choices else ":file:_files" if option.is_file else ":value:"
    )
    return f"*{name}{said}{value}"


def _zsh_text(text: str) -> str:
    return text.replace(":", "\\:").replace("`", "")


# -- fish


def _fish(commands: Mapping[str, _Command]) -> str:
    lines = ["# fish completion for ullage", "complete -c ullage -f"]
    lines += [f"complete -c ullage -n __fish_use_subcommand -l {flag[2:]}" for flag in _WHOLE_FLAGS.split()]
    lines += [
        f"complete -c ullage -n __fish_use_subcommand -a {name} -d {_quote(one.help)}" for name, one in commands.items()
    ]
    for name, one in commands.items():
        condition = f"-n '__fish_seen_subcommand_from {name}'"
        if one.words:
            lines.append(f"complete -c ullage {condition} -a {_quote(' '.join(one.words))}")
        elif one.takes_files:
            lines.append(f"complete -c ullage {condition} -F")
        lines += [f"complete -c ullage {condition} {_fish_option(option)}" for option in one.options]
    return "\n".join(lines) + "\n"


def _fish_option(option: _Option) -> str:
    parts: Sequence[str] = [
        *(f"-l {one[2:]}" for one in option.names if one.startswith("--")),
        *(f"-s {one[1:]}" for one in option.names if not one.startswith("--")),
        f"-d {_quote(option.help)}",
    ]
    if not option.takes_value:
        return " ".join(parts)
    values = f"-xa {_quote(' '.join(option.choices))}" if option.choices else "-rF" if option.is_file else "-x"
    return " ".join((*parts, values))
