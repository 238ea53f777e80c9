"""How does a model ask another model?

`delegate.run` and its kin as a source of tools. The answer is the reply's text; everything else about it is metadata.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ullage.errors import InvalidArguments, UnknownTool
from ullage.messages import Message
from ullage.tool import Call, Caller, Json, Listing, Reply, Tool

from .agreement import groups
from .arguments import Arguments, read
from .asking import Checked, Unfit, ask_until_fit
from .attempt import Hear
from .consensus import Consensus, consensus
from .framing import asked, shown_files, system
from .patch import PatchFailed, read_patch
from .patching import patch_of
from .report import DELEGATE, cost_json, report
from .run import Ask, Delegate
from .tally import together
from .telling import telling
from .tests import SEED, framework_for, read_suite, written
from .tools import CONSENSUS, DIFF, RUN, TESTS, TOOLS

__all__ = ["DelegateSource", "Held"]


class Held(Protocol):
    """What lies behind handles: results that were held back, passages that were retrieved."""

    async def passages(self, handles: tuple[str, ...], caller: Caller, max_tokens: int) -> str:
        """Their text, within so many tokens; raises `UnknownHandle`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateSource:
    delegate: Delegate
    held: Held | None = None
    """None where no result can be held."""
    context_tokens: int = 20_000
    """Of what is put before a prompt."""

    async def tools(self) -> Listing:
        return Listing(TOOLS, revision="1")

    async def call(self, call: Call) -> Reply:
        for tool, answer in self._answers():
            if call.tool in (tool.name, *tool.aliases):
                async with telling(call.progress) as hear:
                    return await answer(call, _read(call, tool), hear)
        raise UnknownTool(f"no tool is called `{call.tool}`", options=tuple(tool.name for tool in TOOLS))

    def _answers(self) -> tuple[tuple[Tool, Callable[[Call, Arguments, Hear], Awaitable[Reply]]], ...]:
        return ((RUN, self._run), (DIFF, self._diff), (TESTS, self._tests), (CONSENSUS, self._consensus))

    async def _run(self, call: Call, arguments: Arguments, hear: Hear) -> Reply:
        before = await self._held(call, arguments)
        ask = self._ask(call, arguments, "run", (*self._system("run"), asked(before, arguments.prompt)))
        outcome = await self.delegate.run(ask, hear)
        return Reply.text(outcome.completion.text, meta={DELEGATE: report(outcome)})

    async def _diff(self, call: Call, arguments: Arguments, hear: Hear) -> Reply:
        messages = (*self._system("diff"), asked(shown_files(arguments.files), arguments.prompt))
        ask = self._ask(call, arguments, "diff", messages)
        found = await ask_until_fit(self.delegate, ask, lambda text: _fitting(text, arguments), hear)
        return _checked(found.value, found)

    async def _tests(self, call: Call, arguments: Arguments, hear: Hear) -> Reply:
        framework = arguments.framework or framework_for(arguments.files)
        words = self._system("tests", framework=framework, seed=SEED)
        ask = self._ask(call, arguments, "tests", (*words, asked(shown_files(arguments.files), arguments.prompt)))
        found = await ask_until_fit(self.delegate, ask, read_suite, hear)
        return _checked(written(found.value), found)

    async def _consensus(self, call: Call, arguments: Arguments, hear: Hear) -> Reply:
        ask = self._ask(call, arguments, "consensus", (*self._system("run"), asked(arguments.prompt)))
        found = await consensus(self.delegate, ask, arguments.models, arguments.judge, hear)
        return Reply.text(_together(found), meta={DELEGATE: _consensus_report(found)})

    def _system(self, task: str, **filled: str) -> tuple[Message, ...]:
        return system(self.delegate.policy.prompts, task, **filled)

    async def _held(self, call: Call, arguments: Arguments) -> str:
        if not arguments.context:
            return ""
        if self.held is None:
            raise InvalidArguments("no results are held here", suggestion="leave `context` out")
        passages = await self.held.passages(arguments.context, call.caller, self.context_tokens)
        return f"<context>\n{passages}\n</context>"

    def _ask(self, call: Call, arguments: Arguments, task: str, messages: tuple[Message, ...]) -> Ask:
        return Ask(
            messages=messages,
            force_model=arguments.force_model,
            language=arguments.language,
            tier=arguments.tier,
            domain="code" if task in ("diff", "tests") else arguments.domain,
            temperature=arguments.temperature,
            max_output_tokens=arguments.max_output_tokens,
            caller=call.caller,
            task=task,
            deadline=call.deadline,
        )


def _read(call: Call, tool: Tool) -> Arguments:
    properties, required = tool.input_schema["properties"], tool.input_schema["required"]
    known = tuple(properties) if isinstance(properties, dict) else ()
    wanted = tuple(str(name) for name in required) if isinstance(required, list) else ()
    return read(call.arguments, known, wanted)


def _fitting(text: str, arguments: Arguments) -> str:
    try:
        return patch_of(arguments.files, read_patch(text))
    except PatchFailed as fault:
        raise Unfit(str(fault)) from fault


def _checked(text: str, found: Checked[Any]) -> Reply:
    """With what every answer cost, those that would not do among them."""
    said = report(found.outcome)
    said["cost"] = cost_json(together([one.cost for one in found.outcomes]))
    said["asked"] = len(found.outcomes)
    return Reply.text(text, meta={DELEGATE: said})


def _together(found: Consensus) -> str:
    if found.judged is not None:
        return found.judged.completion.text
    texts = [one.completion.text for one in found.answers.values()]
    if found.agreement == 1.0:
        return texts[0]
    said = "\n\n".join(f"## {name}\n{one.completion.text}" for name, one in found.answers.items())
    level = "unknown" if found.agreement is None else f"{found.agreement:.0%}"
    return f"{said}\n\n[agreement of words: {level}]"


def _consensus_report(found: Consensus) -> dict[str, Json]:
    names = list(found.answers)
    same = groups([one.completion.text for one in found.answers.values()])
    return {
        "agreement": found.agreement,
        "groups": [[names[place] for place in group] for group in same],
        "answers": {name: report(one) for name, one in found.answers.items()},
        "failed": dict(found.failed),
        "judge": None if found.judged is None else report(found.judged),
        "cost": cost_json(found.cost),
    }
