import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ullage import errors
from ullage.app.count_text import meter, meter_for
from ullage.models import shipped

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"


def _modules() -> set[str]:
    paths = (path.relative_to(SOURCE).with_suffix("") for path in SOURCE.rglob("*.py"))
    return {".".join(path.parts).removesuffix(".__init__") for path in paths}


def _loaded_by(code: str) -> set[str]:
    """The modules in memory after running some code in a fresh interpreter."""
    script = f"{code}\nimport sys; print(*sys.modules)"
    # Coverage would import modules of its own.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    return set(run.stdout.splitlines()[-1].split())


HEAVY = {
    "mcp",
    "mcp_types",
    "numpy",
    "pydantic",
    "httpx",
    "httpx2",
    "genai_prices",
    "py3langid",
    "starlette",
    "uvicorn",
}


@pytest.mark.parametrize(
    "code",
    [
        "from ullage import count; count('hello', 'gpt-4o')",
        "from ullage import count; count('hello', 'claude-sonnet-4-5')",
        "from ullage import find_model; find_model('gpt-4o')",
        "from ullage import count_request; count_request({'model': 'gpt-4o', 'messages': []})",
    ],
)
def test_counting_imports_neither_mcp_nor_pydantic_nor_an_http_client(code: str):
    assert _loaded_by(code) & HEAVY == set()


def test_the_verb_count_imports_prices_and_what_they_need_and_no_more(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    loaded = _loaded_by("import ullage.cli; ullage.cli.main(['count', 'LICENSE'])")
    assert loaded & HEAVY == {"genai_prices", "pydantic", "httpx2"}


@pytest.mark.parametrize(
    "code",
    [
        "import ullage.search",
        "import ullage.context",
        "from ullage.search import LexicalIndex; LexicalIndex().scores('x')",
    ],
)
def test_nobody_waits_for_numpy_who_does_not_search(code: str):
    assert "numpy" not in _loaded_by(code)


def test_importing_the_package_loads_none_of_its_rooms():
    assert not {name for name in _loaded_by("import ullage") if name.startswith("ullage.")}


SERVED_LATE = {"sql", "context", "retrieve", "delegate", "agent", "adapters", "clients"}


def test_reading_settings_imports_no_package_that_goes_by_them():
    loaded = {name.split(".")[1] for name in _loaded_by("import ullage.config") if name.startswith("ullage.")}
    assert (
        loaded & {*SERVED_LATE, "app", "gateway", "ledger", "messages", "search", "store", "table", "tokens", "wire"}
        == set()
    )
    assert "config" in loaded


def test_every_deferred_name_is_declared_and_is_no_module_of_its_package():
    faults: list[str] = []
    for path in SOURCE.rglob("__init__.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        choices = [node for node in tree.body if isinstance(node, ast.If) and "import_on_use" in ast.unparse(node)]
        modules = {one.stem for one in path.parent.glob("*.py")} | {one.name for one in path.parent.iterdir()}
        for choice in choices:
            declared = {
                name.name: node.module
                for node in choice.body
                if isinstance(node, ast.ImportFrom)
                for name in node.names
            }
            (mapping,) = (node for node in ast.walk(choice) if isinstance(node, ast.Dict))
            faults += [f"{path}: {name}" for name in declared.keys() & modules]
            if ast.literal_eval(mapping) != declared:
                faults.append(f"{path}: what is declared is not what is deferred")
    assert faults == []


def test_serving_imports_no_package_before_it_is_used():
    loaded = _loaded_by("import ullage.cli.serve")
    assert {name.split(".")[1] for name in loaded if name.startswith("ullage.")} & SERVED_LATE == set()
    assert loaded & {"jsonschema", "numpy", "sqlalchemy", "sqlglot", "splintr"} == set()


def test_a_short_exact_count_imports_nothing_that_only_others_need():
    loaded = _loaded_by("from ullage import count; count('Hello')")
    slow = {"anyio", "asyncio", "decimal", "difflib", "heapq", "pathlib", "splintr", "subprocess", "unicodedata"}
    ours = {f"ullage.{name}" for name in ("messages", "models.price", "tokens.calibrated", "tokens.bpe.worker")}
    assert loaded & (slow | ours) == set()


@pytest.mark.requirement("U:one-meter")
def test_one_file_makes_meters_and_one_table_of_models_is_read():
    texts = {path.name: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    assert [name for name, text in texts.items() if re.search(r"(?<!class )\bMeter\(", text)] == ["count_text.py"]
    assert not [name for name, text in texts.items() if re.search(r"(?<!class )\bModelTable\(", text)]
    assert shipped() is shipped() is meter().models is meter_for(1).models
    assert meter() is meter()


@pytest.mark.requirement("U:one-meter")
def test_only_one_file_knows_a_tokenizer():
    assert [path.name for path in SOURCE.rglob("*.py") if "splintr" in _imports(path)] == ["engine.py"]
    assert not [path for path in SOURCE.rglob("*.py") if "tiktoken" in _imports(path)]


def _imports(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line.lstrip().startswith(("import ", "from ")))


def _drawn() -> dict[str, str]:
    """Each error of the tree at the top of errors.py, with the one above it."""
    above, found = list[str](), dict[str, str]()
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"    ((?:[│ ]   )*(?:[├└]── )?)([A-Z][A-Za-z]+)  ", line)
        if match:
            depth = len(match[1]) // 4
            above[depth:] = [match[2]]
            found[match[2]] = above[depth - 1] if depth else ""
    return found


def _declared() -> dict[str, str]:
    """Each class below UllageError, wherever it is declared, with the one above it."""
    classes = [
        (node.name, base.id)
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if isinstance(base, ast.Name)
    ]
    found, before = {"UllageError": ""}, 0
    while before < len(found):
        before = len(found)
        found |= {name: base for name, base in classes if base in found}
    return found


def test_the_tree_of_errors_is_drawn_as_it_is():
    assert _drawn() == _declared()
