"""Runs one code block of docs/python.md in the environment of the frameworks, against a scripted provider on loopback.

Its arguments are the block's label and the file. What the block prints goes to standard output.
"""

import ast
import asyncio
import inspect
import os
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripted_openai import scripted_openai


def scripted_chat() -> Any:  # noqa: ANN401
    """LangChain's OpenAI package is not installed: its own fake model takes the place of the model's name."""
    from langchain_core.language_models.fake_chat_models import (  # pyright: ignore[reportMissingImports]
        GenericFakeChatModel,
    )
    from langchain_core.messages import AIMessage  # pyright: ignore[reportMissingImports]

    call = {"name": "read_order", "args": {"number": 7}, "id": "c1"}
    answers = [AIMessage("", tool_calls=[call]), AIMessage("3 crates."), AIMessage("3 crates of tea.")]

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **_: Any) -> Any:  # noqa: ANN401
            assert [one.name for one in tools] == ["read_order"]
            return self

    return Scripted(messages=iter(answers))


def main(label: str, path: str) -> None:
    (block,) = re.findall(rf"```python {label}\n(.*?)```", Path(path).read_text(encoding="utf-8"), re.DOTALL)
    given: dict[str, Any] = {}
    if label == "langchain":
        block = block.replace('"openai:gpt-5.6-sol"', "scripted_model")
        given["scripted_model"] = scripted_chat()
    with scripted_openai('{"number": 7}', "3 crates of tea.") as (address, _):
        os.environ |= {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-test", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
        code = compile(block, path, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        outcome = eval(code, given)
        if inspect.iscoroutine(outcome):
            asyncio.run(outcome)


main(*sys.argv[1:])
