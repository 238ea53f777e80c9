import ast
import inspect
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from build_reference import PAGE, page

from scripted_openai import scripted_openai
from ullage.cli.main import VERBS, parser_of
from ullage.clients.configs import PROGRAMS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
ROOT_FILES = {
    *(".ci", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "NOTICE", "README.md", "bench"),
    *(
        "docs",
        "encoder",
        "pyproject.toml",
        "requirements-dev.lock",
        "requirements.lock",
        "scripts",
        "src",
        "tests",
        "training",
    ),
}
MADE = {
    ".git",
    ".venv",
    ".bench",
    ".pytest_cache",
    ".ruff_cache",
    ".hypothesis",
    ".import_linter_cache",
    "dist",
    "build",
}


def test_the_command_line_reference_is_what_the_program_says():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_every_verb_is_documented_and_has_a_file():
    assert {f"{verb}.py" for verb in VERBS} <= {path.name for path in (ROOT / "src/ullage/cli").iterdir()}
    reference = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    assert all(f"## ullage {verb}" in reference for verb in VERBS)
    assert parser_of(*VERBS).format_help()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_link_in_the_docs_leads_somewhere(path: Path):
    links = re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (path.parent / link).exists()] == []


MEASURED = re.compile(
    r"\d\.\d+ ?%|\d (?:ms|µs)\b|\d s of CPU|\bMB/s|nDCG|\bmeasured \d|times (?:faster|cheaper|smaller)"
    r"|\d ?(?:tokens|files|ms|MB|s|%)(?!\w)[^.;:]* instead of [\d,]*\d"
    r"|\d times tiktoken|\d ?% (?:less|more|cheaper) than|\d of \d+ \w+ (?:right|wrong)|\d(?:\.\d+)? of the tokens"
)
"""Words around figures that only a measurement gives."""
QUANTITY = re.compile(
    r"\d ?(?:%|s\b|seconds?\b|minutes? of CPU|points?\b|times\b|[KMG]B\b)|\d tokens\b|\d of (?:the )?\d"
)
"""An amount: measured, unless its sentence states a rule."""
RULE = re.compile(
    r"at most|at least|default|up to|no (?:more|worse)|(?:larger|longer|more|fewer|less|older) than|within|until"
    r"|without|for \d+ s\b|every \d|limit|±|deadline|grace|wait|[Ff]loor|[Ff]or example|are indexed|a price|log has"
    r"|`[a-z_.]+`"
)
"""Words of sentences that state a limit, a default or an example, which nobody measures."""
COMMAND = re.compile(r"make ((?:bench|test|fuzz)[a-z-]*)")


def claims(text: str, *, is_list: bool = False) -> list[tuple[str, str]]:
    """Sentences and rows with a measured figure, each with the text that must name the command that prints it.

    That is the paragraph and those before and after it in the section, but the entry alone of a list of changes and of
    the table of decisions.
    """
    prose = re.sub(r"(?s:```.*?```)|(?m:^    .*$)", "", text)
    found = list[tuple[str, str]]()
    for section in re.split(r"(?m)^(?=#)", prose):
        is_alone = is_list or section.startswith("## Decisions")
        paragraphs = re.split(r"\n(?=- )|\n\n" if is_list else r"\n\n", section)
        for at, paragraph in enumerate(paragraphs):
            is_table = paragraph.lstrip().startswith("|")
            line = " ".join(paragraph.split())
            units = (
                paragraph.splitlines()
                if is_table
                else [line]
                if is_list
                else re.split(r"(?<=[.:;]) (?=[A-Z0-9`])", line)
            )
            near = "\n".join(paragraphs[max(0, at - 1) : at + 2])
            found += [
                (unit, unit if is_alone else near)
                for unit in units
                if MEASURED.search(unit) or (QUANTITY.search(unit) and not RULE.search(unit))
            ]
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_measured_figure_has_a_command_that_prints_it(path: Path):
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
    for figure, near in claims(path.read_text(encoding="utf-8"), is_list=path.name == "CHANGELOG.md"):
        named = set(COMMAND.findall(near))
        assert named, f"no command prints: {figure}"
        assert named <= targets


def test_every_part_of_a_benchmark_that_the_docs_name_exists():
    scripts = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "bench").glob("*.py")))
    for path in PAGES:
        parts = re.findall(r"make bench-[a-z-]+`? (?:with `)?ONLY=([a-z_,]+)", path.read_text(encoding="utf-8"))
        assert [name for each in parts for name in each.split(",") if f'"{name}"' not in scripts] == [], path.name


PAGE_WITH_FIGURES = """# A

It is 3 times faster.

`make bench-count`

A search saves 40 % of the tokens.

It takes 12 s. A search takes 20 s at most.

## Decisions

| a | takes 0.3 s of CPU |
| b | takes 0.4 s of CPU (`make bench-start`) |
"""


def test_measured_figures_are_found_and_the_commands_beside_them():
    found = claims(PAGE_WITH_FIGURES)
    assert len(found) == 5
    assert [figure for figure, near in found if not COMMAND.search(near)] == [
        "It takes 12 s.",
        "| a | takes 0.3 s of CPU |",
    ]


def test_each_change_of_a_list_needs_its_own_command():
    text = "# A\n\n- A call takes 12 ms (`make bench-gateway`).\n- A search\n  takes 90 ms.\n- A call waits 30 s."
    assert [near for _, near in claims(text, is_list=True) if not COMMAND.search(near)] == ["- A search takes 90 ms."]


@pytest.mark.parametrize(
    "figure",
    [
        "A search takes 12 s.",
        "A reply costs 388 tokens.",
        "It saves 40 % of a request.",
        "It finds 57 of 60 tools.",
        "A gateway needs 92 MB.",
        "Ranking gains 3 points.",
        "It is 4 times as fast.",
        "A call takes 3 ms, within every limit.",
        "A reply of `count-tokens` takes 17 tokens instead of 1,142, by default.",
    ],
)
def test_a_figure_in_other_words_is_found_too(figure: str):
    assert claims(f"# A\n\n{figure}\n")


BODY = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi there"}]}
LONGER = {**BODY, "messages": [*BODY["messages"], {"role": "assistant", "content": "Hello"}]}


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["README.md", "docs/counting.md", "docs/gateway.md"])
async def test_every_example_in_the_docs_runs(name: str):
    found: dict[str, Any] = {"text": "Hello, world!", "body": BODY, "longer_body": LONGER}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        code = compile(block, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        outcome = eval(code, found)
        if inspect.iscoroutine(outcome):
            await outcome


def run_example(block: str, folder: Path) -> str:
    """What a complete program of the documents prints, with OpenAI replaced by a provider on loopback."""
    with scripted_openai('{"item":"tea"}', "Yes, there are 12 packs of tea.") as (address, _):
        settings = folder / "config" / "ullage" / "ullage.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(f'[providers.openai]\nbase_url = "{address}"\n', encoding="utf-8")
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                f"async def example():\n{textwrap.indent(block, '    ')}\nimport asyncio\nasyncio.run(example())"
                if "await" in block and "asyncio.run" not in block
                else block,
            ],
            cwd=folder,
            env={
                **{name: value for name, value in os.environ.items() if name in ("PATH", "SYSTEMROOT", "LANG")},
                "HOME": str(folder),
                "XDG_CONFIG_HOME": str(folder / "config"),
                "OPENAI_API_KEY": "sk-test",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


PROGRAMS_OF_DOCS = re.findall(
    r"```python run\n(.*?)```(?:\n\n```text\n(.*?)```)?",
    (ROOT / "docs/python.md").read_text(encoding="utf-8"),
    re.DOTALL,
)


@pytest.mark.parametrize(("block", "printed"), PROGRAMS_OF_DOCS)
def test_every_program_of_the_python_tutorial_prints_what_it_says(block: str, printed: str, tmp_path: Path):
    found = run_example(block, tmp_path)
    assert found
    assert not printed or found == printed


def test_the_readme_is_short_and_shows_both_commands_first():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 90
    first_screen = "\n".join(text.splitlines()[:24])
    assert "make run" in first_screen
    assert "make test" in first_screen


def test_the_root_holds_a_fixed_list_of_files():
    found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".coverage")}
    assert found - MADE == ROOT_FILES


def test_every_program_has_its_block_with_its_removal():
    guide, readme = ((ROOT / name).read_text(encoding="utf-8") for name in ("docs/install.md", "README.md"))
    for name, program in PROGRAMS.items():
        assert f"### {program.title}\n\n```sh\nullage install {name} " in guide
        assert f"ullage uninstall {name} " in guide
        assert f"| {program.title} | `ullage install {name}` | `ullage uninstall {name}` |" in readme
