"""The guide to contexts, as somebody follows it."""

import ast
import inspect
import re
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.loopback import Loopback, loopback
from ullage.context import SummaryRequest
from ullage.tool import Json

GUIDE = (Path(__file__).parents[2] / "docs" / "context.md").read_text(encoding="utf-8")
LOOP, ALONE, SUMMARIZERS, SESSION, AGENT = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)

pytestmark = [pytest.mark.anyio]


async def followed(block: str, **given: object) -> dict[str, Any]:
    """What the names stand for after a block of Python."""
    code = compile(block, "context.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    names: dict[str, Any] = dict(given)
    made = eval(code, names)
    if inspect.isawaitable(made):
        await made
    return names


class Client:
    """Anthropic's answers: one call, then words."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    async def create(self, **body: object) -> dict[str, Any]:
        self.asked.append(body)
        call = {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}
        content = [call] if len(self.asked) == 1 else [{"type": "text", "text": "Done."}]
        return {"content": content, "usage": {"input_tokens": 40 + len(self.asked), "output_tokens": 9}}


async def run_tools(response: dict[str, Any]) -> list[dict[str, Any]]:
    calls = [block for block in response["content"] if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "much"} for call in calls]
    return [{"role": "user", "content": results}] if results else []


@pytest.fixture
def followed_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    return tmp_path


@pytest.mark.requirement("S2:formats", "S2:status")
async def test_the_loop_of_the_guide_asks_says_its_status_and_keeps_the_session(followed_loop: Path):
    client, events = Client(), list[dict[str, Json]]()
    await followed(LOOP, SYSTEM="You help.", TOOLS=[], client=client, emit=events.append, run_tools=run_tools)
    assert [len(body["messages"]) for body in client.asked] == [1, 3]
    assert [event["type"] for event in events] == ["context_status", "context_status"]
    kept = (await followed(SESSION.replace("session.restore(0)", "kept = session.records")))["kept"]
    assert [record.message["role"] for record in kept] == ["user", "assistant", "user", "assistant"]


@pytest.mark.requirement("S2:usage")
async def test_usage_and_compaction_without_a_history_that_is_kept(capsys: pytest.CaptureFixture[str]):
    messages = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hi."}]
    found = await followed(ALONE, messages=messages, tools=[])
    assert found["usage"].used > 0
    assert "gpt-5.6-sol · " in capsys.readouterr().out
    assert list(found["less"].messages) == messages


@pytest.mark.requirement("S2:compact:how")
async def test_each_way_to_have_a_history_summarised_is_one(followed_loop: Path):
    async def my_model(*said: object) -> str:
        return f"In short: {len(said)}."

    def create(**body: Any) -> dict[str, Any]:  # noqa: ANN401
        return {"choices": [{"message": {"role": "assistant", "content": f"In short, {body['model']}."}}]}

    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    found = await followed(SUMMARIZERS, client=client, my_model=my_model)
    request = SummaryRequest(instructions="Be brief.", text="Much.", max_tokens=100)
    answers = [
        (await found[name].summarizer.summarize(request)).text for name in ("by_client", "by_function", "by_class")
    ]
    assert answers == ["In short, gpt-6.1-sol.", "In short: 1.", "In short: 3."]
    assert found["by_name"].summarizer.model == "gpt-6-luna"


@pytest.fixture
def provider(work: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Loopback]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    (work / "runs").mkdir()
    file = work.parent / "home" / "config" / "ullage" / "ullage.toml"
    file.parent.mkdir(parents=True)
    with loopback() as found:
        file.write_text(found.providers(), encoding="utf-8")
        yield found


@pytest.mark.requirement("S2:status")
async def test_the_ready_loop_says_what_happens(provider: Loopback, capsys: pytest.CaptureFixture[str]):
    await followed(AGENT, tools=None)
    kinds = re.findall(r"^\{'type': '(\w+)'", capsys.readouterr().out, re.MULTILINE)
    assert kinds[0] == "context_status"
    assert kinds[-1] == "end"
    assert len(provider.asked) == 1


@pytest.mark.requirement("S2:options")
def test_every_option_is_in_the_guide():
    from dataclasses import fields

    from ullage.context import Options

    assert [field.name for field in fields(Options) if f"| `{field.name}` |" not in GUIDE] == []
