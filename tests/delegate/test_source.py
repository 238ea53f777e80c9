import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import httpx2
import pytest

from delegate.delegates import METER, Both, delegate, one_fallback, saying
from delegate.streams import ANSWERS, Scripted
from ullage.delegate import DELEGATE, TOOLS, Ceiling, Ceilings, DelegateSource, LocalPurse, ProviderFailed
from ullage.errors import InvalidArguments, OverBudget, SourceFailed, UnknownHandle, UnknownTool
from ullage.testing import check_source
from ullage.tool import Call, Caller, JsonObject, Progress, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S4:reply")]


@dataclass
class FakeHeld:
    texts: Mapping[str, str]
    asked: list[int] = field(default_factory=list[int])

    async def passages(self, handles: tuple[str, ...], caller: Caller, max_tokens: int) -> str:
        self.asked.append(max_tokens)
        if any(handle not in self.texts for handle in handles):
            raise UnknownHandle("no such handle")
        return "\n".join(self.texts[handle] for handle in handles)


async def called(
    both: Both, tool: str, arguments: JsonObject, held: FakeHeld | None = None, progress: Progress | None = None
) -> Reply:
    async with both.client() as client:
        source = DelegateSource(delegate=delegate(client), held=held)
        return await source.call(Call(tool=tool, arguments=arguments, progress=progress))


def said(reply: Reply) -> str:
    return str(reply.content[0]["text"])


def meta(reply: Reply) -> Any:  # noqa: ANN401 - whatever JSON there is
    return reply.meta[DELEGATE]


@pytest.mark.requirement("S4:reply", "S4:schema")
@pytest.mark.parametrize("name", ["delegate.run", "delegate_run"])
async def test_the_answer_is_the_text_and_the_rest_is_metadata(name: str):
    reply = await called(Both(Scripted([ANSWERS["chat"]])), name, {"prompt": "Please write hello"})
    assert said(reply) == "Hello there"
    found = meta(reply)
    assert found["decision"] == {"provider": "openai", "model": "gpt-4o-mini", "alias": "chat-default"}
    assert found["parameters"] == {"max_output_tokens": 2048, "temperature": 0.7}
    assert found["usage"]["total_tokens"] == 44
    assert found["cost"]["total"] == pytest.approx(0.000162)
    assert found["meta"]["fallback_used"] is False
    assert found["meta"]["attempts"][0]["success"] is True
    assert found["rationale"][0].startswith("language: en (detected)")
    assert "choices" not in json.dumps(found)


@pytest.mark.requirement("S4:reply", "S4:fallback")
async def test_every_attempt_is_reported_with_its_reason_for_failure():
    reply = await called(
        Both(Scripted([ANSWERS["chat"]], cut_after=2)), "delegate.run", {"prompt": "Please write hello"}
    )
    attempts = meta(reply)["meta"]["attempts"]
    assert [one["success"] for one in attempts] == [False, False, False, True]
    assert attempts[0]["kind"] == "cut"
    assert attempts[0]["usage"]["output_tokens"] > 0
    assert meta(reply)["meta"]["fallback_used"] is True


@pytest.mark.requirement("S4:schema")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "`prompt` is missing"),
        ({"prompt": "x", "promt": "y"}, "`promt` is not known"),
        ({"prompt": None}, "`prompt` is missing"),
        ({"prompt": 3}, "`prompt` must be a text"),
        ({"prompt": "  "}, "`prompt` must be a text"),
        ({"prompt": "x", "metadata": {"tone": "y"}}, "`metadata.tone` is not known"),
        ({"prompt": "x", "metadata": []}, "`metadata` must be an object"),
        ({"prompt": "x", "metadata": {"domain": "law"}}, "no domain is called `law`"),
        ({"prompt": "x", "metadata": {"temperature": "hot"}}, "`temperature` must be a number"),
        ({"prompt": "x", "metadata": {"temperature": float("nan")}}, "`temperature` must be a number"),
        ({"prompt": "x", "metadata": {"temperature": 10**400}}, "`temperature` must be a number"),
        ({"prompt": "x", "caps": {"maxOutputTokens": 0}}, "`maxOutputTokens` must be a whole number"),
        ({"prompt": "x", "caps": {"max": 1}}, "`caps.max` is not known"),
        ({"prompt": "x", "context": [1]}, "`context` must be a list of texts"),
        ({"prompt": "x", "context": ["r_1"]}, "no results are held here"),
    ],
)
async def test_what_does_not_fit_is_refused_at_every_level(arguments: JsonObject, message: str):
    both = Both(Scripted([ANSWERS["chat"]]))
    with pytest.raises(InvalidArguments, match=message):
        await called(both, "delegate.run", arguments)
    assert both.openai.requests == []


@pytest.mark.requirement("S4:schema")
async def test_all_settings_reach_the_provider():
    both = Both(Scripted([ANSWERS["chat"]]))
    await called(
        both,
        "delegate.run",
        {
            "prompt": "Escreva algo",
            "forceModel": "chat-premium",
            "metadata": {"language": "pt-BR", "tier": "pro", "domain": "creative", "temperature": 1},
            "caps": {"maxOutputTokens": 77},
        },
    )
    body = both.openai.bodies[0]
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("gpt-4o", 77, 1.0)


@pytest.mark.requirement("S4:schema")
async def test_stored_results_are_added_to_the_prompt_without_passing_the_caller():
    both, held = Both(Scripted([ANSWERS["chat"]])), FakeHeld({"r_1": "forty-two rows"})
    await called(both, "delegate.run", {"prompt": "Sum up", "context": ["r_1"]}, held)
    assert both.openai.bodies[0]["messages"][-1]["content"] == "<context>\nforty-two rows\n</context>\n\nSum up"
    assert held.asked == [20_000]
    with pytest.raises(UnknownHandle):
        await called(both, "delegate.run", {"prompt": "x", "context": ["r_2"]}, held)


PATCH = """diff --git a/hello.py b/hello.py
--- a/hello.py
+++ b/hello.py
@@ -1,2 +1,2 @@
 def hello():
-    return 1
+    return 2
"""
FILES: dict[str, Any] = {"hello.py": "def hello():\n    return 1\n"}


@pytest.mark.requirement("S4:more")
async def test_a_patch_that_does_not_apply_is_asked_for_again_with_the_reason():
    wrong = PATCH.replace("return 1", "return 7")
    both = Both(Scripted([saying("Sure!"), saying(wrong), saying(f"Here:\n```diff\n{PATCH}```\nDone.")]))
    reply = await called(both, "delegate.diff", {"prompt": "Please return 2", "files": FILES})
    assert said(reply) == PATCH
    assert meta(reply)["asked"] == 3
    again = both.openai.bodies[2]["messages"]
    assert "no `diff --git" in again[3]["content"]
    assert "hunk 1 of `hello.py` does not fit" in again[5]["content"]
    assert both.openai.bodies[0]["temperature"] == 0.25


@pytest.mark.requirement("S4:more", "S4:stream")
async def test_a_patch_that_was_cut_at_its_cap_is_asked_for_again_though_it_applies():
    cut = [{"choices": [{"delta": {"content": PATCH}, "finish_reason": "length"}]}]
    both = Both(Scripted([cut, saying(PATCH)]))
    reply = await called(both, "delegate.diff", {"prompt": "Please return 2", "files": FILES})
    assert meta(reply)["asked"] == 2
    assert "cut off before its end" in both.openai.bodies[1]["messages"][-1]["content"]


@pytest.mark.requirement("S4:budgets")
async def test_the_ceiling_of_a_call_holds_over_all_that_is_asked_for_it():
    limits = Ceilings(by_scope={"call": Ceiling(tokens=4_200)})
    both = Both(Scripted([saying("no patch at all")]))
    async with both.client() as client:
        source = DelegateSource(delegate=delegate(client, LocalPurse(ceilings=lambda: limits)))
        asked: JsonObject = {"prompt": "Please " + "try it " * 400, "files": FILES}
        with pytest.raises(OverBudget, match="this call"):
            await source.call(Call(tool="delegate.diff", arguments=asked))
        assert len(both.openai.requests) == 2
        for name in ("chat-default", "long-context"):
            await source.call(Call(tool="delegate.run", arguments={"prompt": "Hello", "forceModel": name}))
        told = meta(await source.call(Call(tool="delegate.consensus", arguments={"prompt": "Hello"})))
    assert list(told["answers"]) == ["chat-default", "chat-premium"]
    assert "over the budget of this call" in told["failed"]["long-context"]


@pytest.mark.requirement("S4:more")
async def test_a_patch_that_never_applies_is_an_error_and_not_an_answer():
    with pytest.raises(SourceFailed, match="none of 3 answers"):
        await called(Both(Scripted([saying("no")])), "delegate.diff", {"prompt": "Please x", "files": FILES})


SUITE = """Here you are.

## Commands
```sh
pytest -q
```

## Files
### test_hello.py
```python
def test_hello():
    assert True
```
"""


@pytest.mark.requirement("S4:more")
async def test_tests_come_with_their_command_and_are_at_least_python():
    broken = SUITE.replace("assert True", "assert (")
    outside = SUITE.replace("### test_hello.py", "### ../test_hello.py")
    both = Both(Scripted([saying(broken), saying(outside), saying(SUITE)]))
    reply = await called(both, "delegate.tests", {"files": FILES, "prompt": "Please be thorough"})
    assert "### test_hello.py" in said(reply)
    assert said(reply).startswith("## Commands\n```\npytest -q\n```")
    system = both.openai.bodies[0]["messages"][0]["content"]
    assert "pytest" in system
    assert "20250101" in system


@pytest.mark.requirement("S4:more")
async def test_the_framework_can_be_named():
    both = Both(Scripted([saying(SUITE)]))
    await called(both, "delegate.tests", {"files": FILES, "framework": "unittest"})
    assert "Write tests with unittest" in both.openai.bodies[0]["messages"][0]["content"]


@pytest.mark.requirement("S4:more")
async def test_several_models_are_asked_side_by_side_and_their_agreement_is_measured():
    both = Both(Scripted([saying("The answer is 42.")]), Scripted([ANSWERS["gemini"]]))
    reply = await called(
        both, "delegate.consensus", {"prompt": "What is it?", "models": ["chat-default", "long-context", "reasoning"]}
    )
    assert "## chat-default\nThe answer is 42." in said(reply)
    assert "## long-context\nHello there" in said(reply)
    assert said(reply).endswith("[agreement of words: 0%]")
    assert "[no answer: reasoning (" in said(reply)
    assert meta(reply)["agreement"] == 0.0
    assert meta(reply)["groups"] == [["chat-default"], ["long-context"]]
    assert list(meta(reply)["failed"]) == ["reasoning"]


@pytest.mark.requirement("S4:more")
async def test_those_who_agree_are_quoted_once_and_a_judge_writes_for_all():
    both = Both(Scripted([saying("Hello there")]))
    models: Any = ["chat-default", "long-context"]
    assert said(await called(both, "delegate.consensus", {"prompt": "Greet", "models": models})) == "Hello there"
    judged = await called(both, "delegate.consensus", {"prompt": "Greet", "models": models, "judge": "chat-premium"})
    assert said(judged) == "Hello there"
    assert meta(judged)["judge"]["decision"]["alias"] == "chat-premium"
    assert '<answer model="long-context">' in both.openai.bodies[-1]["messages"][-1]["content"]


@pytest.mark.requirement("S4:more")
async def test_a_judge_that_fails_leaves_the_answers_and_one_that_is_not_there_costs_nothing():
    models: Any = ["chat-default", "long-context"]
    both = Both(Scripted([saying("The answer is 42.")]))
    unjudged = await called(both, "delegate.consensus", {"prompt": "Greet", "models": models, "judge": "reasoning"})
    assert "## long-context\nHello there" in said(unjudged)
    assert "not configured" in meta(unjudged)["failed"]["judge"]
    asked = len(both.openai.requests)
    with pytest.raises(InvalidArguments, match="no model of the policy is called `solomon`"):
        await called(both, "delegate.consensus", {"prompt": "Greet", "models": models, "judge": "solomon"})
    assert len(both.openai.requests) == asked


@pytest.mark.requirement("S4:more", "S4:cost")
async def test_what_a_consensus_cost_is_not_known_where_one_who_failed_has_no_price():
    unpriced = {
        name: replace(entry, price=None, model="my-own") if name == "openai:gpt-4o-mini" else entry
        for name, entry in one_fallback().models.items()
    }
    both = Both(Scripted([ANSWERS["chat"]], cut_after=2))
    async with both.client() as client:
        source = DelegateSource(delegate=delegate(client, by=replace(one_fallback(), models=unpriced)))
        arguments: JsonObject = {"prompt": "Greet", "models": ["chat-default", "long-context"]}
        told = meta(await source.call(Call(tool="delegate.consensus", arguments=arguments)))
    assert told["answers"]["long-context"]["cost"]["total"] > 0
    assert told["cost"] is None


@pytest.mark.requirement("S4:more")
async def test_one_model_under_two_names_is_asked_once():
    both = Both(Scripted([saying("Hello there")]))
    models: Any = ["chat-default", "openai:gpt-4o-mini", "long-context"]
    reply = await called(both, "delegate.consensus", {"prompt": "Greet", "models": models})
    assert list(meta(reply)["answers"]) == ["chat-default", "long-context"]
    assert len(both.openai.requests) == 1
    with pytest.raises(InvalidArguments, match="needs two different"):
        await called(both, "delegate.consensus", {"prompt": "Greet", "models": models[:2]})


@pytest.mark.requirement("S4:more")
async def test_a_consensus_of_one_is_refused_and_of_none_raises_what_went_wrong():
    with pytest.raises(InvalidArguments, match="needs two"):
        await called(Both(Scripted([saying("x")])), "delegate.consensus", {"prompt": "x", "models": ["reasoning"]})
    down = Scripted([httpx2.Response(400)])
    with pytest.raises(ProviderFailed, match="400") as failed:
        await called(
            Both(down, Scripted([httpx2.Response(401)])),
            "delegate.consensus",
            {"prompt": "x", "models": ["chat-default", "long-context"]},
        )
    assert {"chat-default: ", "long-context: "} <= {line[:14] for line in failed.value.message.split("\n  ")}
    assert "401" in str(failed.value)
    assert failed.value.suggestion


async def test_a_client_that_asks_for_progress_receives_it():
    told = list[tuple[float, str | None]]()

    async def progress(done: float, total: float | None, word: str | None) -> None:
        told.append((done, word))

    slow = Scripted([ANSWERS["chat"]], stall=0.19)
    with anyio.fail_after(10):
        for tool in ("delegate.run", "delegate.consensus"):
            told.clear()
            await called(Both(slow), tool, {"prompt": "Please write hello"}, progress=progress)
            assert told
    assert told[0][1] == f"{told[0][0]:.0f} characters"


async def test_an_error_is_not_wrapped_by_the_telling():
    async def progress(done: float, total: float | None, word: str | None) -> None: ...

    with pytest.raises(InvalidArguments):
        await called(Both(Scripted([saying("x")])), "delegate.run", {}, progress=progress)


async def test_an_unknown_name_is_refused():
    with pytest.raises(UnknownTool):
        await called(Both(Scripted([saying("x")])), "delegate.sing", {})


@pytest.mark.requirement("S4:schema")
async def test_all_definitions_together_are_short_and_sound():
    from ullage.gateway import definition_text

    assert sum(METER.count(definition_text(tool), "gpt-4o").tokens for tool in TOOLS) <= 1_000
    async with Both(Scripted([saying("x")])).client() as client:
        await check_source(
            DelegateSource(delegate=delegate(client)), Call(tool="delegate.run", arguments={"prompt": "Please say x"})
        )


@pytest.mark.parametrize("tool", ["delegate.diff", "delegate.tests"])
@pytest.mark.parametrize("files", [{}, None])
async def test_no_files_are_refused_before_anybody_is_asked(tool: str, files: dict[str, Any] | None):
    both = Both(Scripted([ANSWERS["chat"]]))
    with pytest.raises(InvalidArguments, match=r"`files` is (empty|missing)"):
        await called(both, tool, {"prompt": "Mend it", "files": files})
    assert both.openai.requests == []
