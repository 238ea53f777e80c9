"""`delegate.run` and its kin as a source of tools.

The answer is the reply's text; everything else about it is metadata. What goes with a prompt (files, images, held
results, an earlier answer) is named in the call and read here, so that it does not pass through the caller's window.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from ullage.errors import InvalidArguments, UllageError, UnknownHandle, UnknownTool
from ullage.messages import Media, Message, Text
from ullage.tool import Call, Json, JsonObject, Listing, Reply, Tool

from .agreement import groups
from .answer_schema import check_schema, describe_schema, read_fitting
from .arguments import Arguments, read
from .asking import Checked, Unfit, ask_until_fit
from .attempt import Hear
from .consensus import Consensus, consensus
from .framing import asked, shown_files, system
from .happening import Happening
from .materials import Answers, Conversation, Files, Held
from .outcome import Outcome
from .patch import PatchFailed, read_patch
from .patching import patch_of
from .report import DELEGATE, cost_json, report, report_failure
from .run import Ask, Delegate
from .tally import together
from .task_names import read_scopes
from .telling import telling
from .tests import SEED, framework_for, read_suite, written
from .tools import CONSENSUS, DIFF, RUN, TESTS, TOOLS
from .weighing import counted_as

__all__ = ["DelegateSource"]

_LAST = "last"
"""In place of a handle: the latest answer of the caller's session."""
_CHOOSE, _AGAIN = "use one of the options", "try again later, or name another model with `forceModel`"
"""What is suggested where whoever raised an error suggests nothing."""
_SESSIONS = 1_000
"""Whose latest answer is remembered."""


@dataclass(slots=True)
class _Happened:
    """Remembers the runs of one call."""

    runs: list[Happening] = field(default_factory=list[Happening])

    def happened(self, happening: Happening) -> None:
        self.runs.append(happening)


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateSource:
    delegate: Delegate
    held: Held | None = None
    """None where no result can be held."""
    files: Files | None = None
    """None where the user named no folder that files may be read from."""
    answers: Answers | None = None
    """None where no answer is kept, so that none can be continued."""
    context_tokens: int = 20_000
    """Of what is put before a prompt."""
    _latest: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """By principal and session, the handle of the latest answer."""

    async def tools(self) -> Listing:
        return Listing(TOOLS, revision="1")

    async def call(self, call: Call) -> Reply:
        """Answers a call; an error carries in its metadata what was tried and what that cost."""
        tool = next((one for one in TOOLS if call.tool in (one.name, *one.aliases)), None)
        if tool is None:
            names = tuple(one.name for one in TOOLS)
            raise UnknownTool(f"no tool is called `{call.tool}`", suggestion=_CHOOSE, options=names)
        scopes, happened = read_scopes(call.meta), _Happened()
        watched = replace(self.delegate, observers=(*self.delegate.observers, happened))
        try:
            arguments = _read(call, tool)
            async with telling(call.progress) as hear:
                return await replace(self, delegate=watched).answer(tool, call, arguments, hear)
        except UllageError as error:
            error.meta = {**error.meta, DELEGATE: report_failure(happened.runs)}
            error.suggestion = error.suggestion or (_CHOOSE if error.options else _AGAIN)
            raise
        finally:
            if scopes.ends_task:
                await self.delegate.purse.end(call.caller, scopes.task)
            if scopes.ends_session:
                await self.delegate.purse.end(call.caller)

    async def answer(self, tool: Tool, call: Call, arguments: Arguments, hear: Hear) -> Reply:
        """Answers a call whose tool and arguments are known; `hear` is called with each piece as it arrives."""
        answers = {
            RUN.name: self._run,
            DIFF.name: self._diff,
            TESTS.name: self._tests,
            CONSENSUS.name: self._consensus,
        }
        return await answers[tool.name](call, arguments, hear)

    async def _run(self, call: Call, arguments: Arguments, hear: Hear) -> Reply:
        earlier = await self._continued(call, arguments)
        texts = (await self._held(call, arguments), shown_files(await self._contents(arguments)), arguments.prompt)
        prompt = asked(*texts)
        messages = (
            *(earlier.messages if earlier else ()),
            replace(prompt, parts=(*await self._images(arguments), *prompt.parts)),
        )
        ask = self._ask(call, arguments, "run", (*self._system("run"), *messages))
        if arguments.force_model is None and earlier and earlier.model in self.delegate.policy.models:
            ask = replace(ask, force_model=earlier.model)
        if arguments.schema is None:
            outcome = await self.delegate.run(ask, hear)
            said, text = report(outcome), outcome.completion.text
        else:
            found = await self._fitting_schema(ask, arguments.schema, hear)
            outcome, said, text = found.outcome, _report_checked(found), found.value
        handle = await self._keep(call, outcome, messages, text)
        return Reply.text(text, meta={DELEGATE: said if handle is None else {**said, "handle": handle}})

    async def _fitting_schema(self, ask: Ask, schema: JsonObject, hear: Hear) -> Checked[str]:
        check_schema(schema)
        words = Message(role="system", parts=(Text(describe_schema(schema)),))
        ask = replace(ask, output_schema=schema, messages=(words, *ask.messages))
        return await ask_until_fit(self.delegate, ask, lambda text: read_fitting(text, schema), hear)

    async def _diff(self, call: Call, arguments: Arguments, hear: Hear) -> Reply:
        files = await self._contents(arguments)
        messages = (*self._system("diff"), asked(shown_files(files), arguments.prompt))
        ask = self._ask(call, arguments, "diff", messages)
        found = await ask_until_fit(self.delegate, ask, lambda text: _fitting(text, files), hear)
        return Reply.text(found.value, meta={DELEGATE: _report_checked(found)})

    async def _tests(self, call: Call, arguments: Arguments, hear: Hear) -> Reply:
        files = await self._contents(arguments)
        words = self._system("tests", framework=arguments.framework or framework_for(files), seed=SEED)
        ask = self._ask(call, arguments, "tests", (*words, asked(shown_files(files), arguments.prompt)))
        found = await ask_until_fit(self.delegate, ask, read_suite, hear)
        return Reply.text(written(found.value), meta={DELEGATE: _report_checked(found)})

    async def _consensus(self, call: Call, arguments: Arguments, hear: Hear) -> Reply:
        ask = self._ask(call, arguments, "consensus", (*self._system("run"), asked(arguments.prompt)))
        found = await consensus(self.delegate, ask, arguments.models, arguments.judge, hear)
        return Reply.text(_together(found), meta={DELEGATE: _consensus_report(found)})

    async def _contents(self, arguments: Arguments) -> dict[str, str]:
        """The files of a call, by the name that each goes by in the prompt: as given, and as read from the roots."""
        if not arguments.paths:
            return dict(arguments.files)
        return {**arguments.files, **await self._roots("files").texts(arguments.paths)}

    async def _images(self, arguments: Arguments) -> tuple[Media, ...]:
        return await self._roots("images").images(arguments.images) if arguments.images else ()

    def _roots(self, argument: str) -> Files:
        if self.files is None:
            raise InvalidArguments(
                f"no files can be read here: `{argument}` takes paths inside folders that the user named",
                suggestion="the user names folders under `file_roots` in the table `[delegate]` of their ullage.toml",
            )
        return self.files

    async def _continued(self, call: Call, arguments: Arguments) -> Conversation | None:
        handle = arguments.continues
        if handle is None:
            return None
        if handle == _LAST:
            handle = self._latest.get((call.caller.principal, call.caller.session))
        if self.answers is None or handle is None:
            raise UnknownHandle("there is no earlier answer to continue", suggestion="leave `continue` out")
        return await self.answers.open(handle, call.caller)

    async def _keep(self, call: Call, outcome: Outcome, messages: tuple[Message, ...], text: str) -> str | None:
        """The handle under which the conversation can be continued. Thoughts are not kept: only who thought them takes
        them back."""
        if self.answers is None:
            return None
        said = Message(role="assistant", parts=(Text(text),))
        kept = Conversation(model=outcome.candidate.entry.id, messages=(*messages, said))
        handle = await self.answers.keep(kept, call.caller)
        if handle is not None:
            if len(self._latest) >= _SESSIONS:
                self._latest.clear()
            self._latest[call.caller.principal, call.caller.session] = handle
        return handle

    def _system(self, task: str, **filled: str) -> tuple[Message, ...]:
        return system(self.delegate.policy.prompts, task, **filled)

    async def _held(self, call: Call, arguments: Arguments) -> str:
        """What lies behind the handles of `context`: earlier answers, held results, passages. All of them share one
        budget of tokens."""
        answers, others = list[str](), list[str]()
        for handle in arguments.context:
            found = await self._answer_at(handle, call)
            if found is None:
                others.append(handle)
            else:
                answers.append(found)
        if others and self.held is None:
            raise InvalidArguments("no results are held here", suggestion="leave `context` out")
        share = self.context_tokens // max(1, len(arguments.context))
        texts = [self._cut(text, share) for text in answers]
        if others and self.held is not None:
            left = self.context_tokens - share * len(answers)
            texts.append(await self.held.passages(tuple(others), call.caller, left))
        together = "\n\n".join(texts)
        return f"<context>\n{together}\n</context>" if texts else ""

    async def _answer_at(self, handle: str, call: Call) -> str | None:
        """The earlier answer with this handle; None where it is no answer's."""
        if self.answers is None:
            return None
        try:
            return (await self.answers.open(handle, call.caller)).answer
        except UnknownHandle:
            return None

    def _cut(self, text: str, tokens: int) -> str:
        """The beginning of a text, within so many tokens."""
        meter, model = self.delegate.meter, counted_as(None, self.delegate.models)
        whole = text
        while text and meter.count(text, model).high > tokens:
            text = text[: len(text) * 4 // 5]
        return text if text == whole else f"{text}\n[… {len(whole) - len(text):,} characters left out …]"

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
            task=read_scopes(call.meta).task,
            tool=task,
            deadline=call.deadline,
        )


def _read(call: Call, tool: Tool) -> Arguments:
    properties, required = tool.input_schema["properties"], tool.input_schema["required"]
    known = tuple(properties) if isinstance(properties, dict) else ()
    wanted = tuple(str(name) for name in required) if isinstance(required, list) else ()
    return read(call.arguments, known, wanted)


def _fitting(text: str, files: dict[str, str]) -> str:
    try:
        return patch_of(files, read_patch(text))
    except PatchFailed as fault:
        raise Unfit(str(fault)) from fault


def _report_checked(found: Checked[Any]) -> dict[str, Json]:
    """With what every answer cost, those that would not do among them."""
    said = report(found.outcome)
    said["cost"] = cost_json(together([one.cost for one in found.outcomes]))
    said["asked"] = len(found.outcomes)
    return said


def _together(found: Consensus) -> str:
    """What the caller's model reads: one answer where a judge wrote it or all agree, else each; and who gave none."""
    lost = "; ".join(f"{name} ({_first_line(why)})" for name, why in found.failed.items())
    missing = f"\n\n[no answer: {lost}]" if lost else ""
    texts = [one.completion.text for one in found.answers.values()]
    if found.judged is not None:
        return f"{found.judged.completion.text}{missing}"
    if found.agreement == 1.0:
        return f"{texts[0]}{missing}"
    said = "\n\n".join(f"## {name}\n{one.completion.text}" for name, one in found.answers.items())
    level = "unknown" if found.agreement is None else f"{found.agreement:.0%}"
    return f"{said}{missing}\n\n[agreement of words: {level}]"


def _first_line(why: str) -> str:
    return why.partition("\n")[0][:120]


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
