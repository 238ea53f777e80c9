"""The delegate's tools: definitions, arguments and replies.

`DelegateSource` offers `delegate.run` and the related tools. The reply's text is the answer; everything else about it
is metadata. Whatever accompanies a prompt (files, images, held results, an earlier answer) is only named in the call
and read here, so that it does not pass through the caller's context window.

The definitions are short, since every request may contain them.

`read` validates arguments at every level: an unknown argument is refused with the names of the known ones.

`Held`, `Files` and `Answers` are protocols; the gateway provides their implementations.

`read_scopes` reads the task and the session of a call from its `_meta`. `dev.ullage/task` is the task's name, or a
table `{"name": …, "end": true}` on its last call; `dev.ullage/session` is `{"end": true}` on the last call of a
session, which is otherwise identified by its caller. Both are scopes of budgets.
"""

import contextlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Protocol, TypeVar, cast

from ullage.errors import InvalidArguments, UllageError, UnknownHandle, UnknownTool
from ullage.messages import Media, Message, Text, join_texts
from ullage.tool import Call, Caller, Json, JsonObject, Listing, Reply, Tool, ToolSource

from .attempt import Hear, progress_listener
from .checked_answers import (
    CheckedAnswer,
    UnfitAnswer,
    ask_until_fit,
    asked,
    check_schema,
    describe_schema,
    read_fitting,
    shown_files,
    system,
)
from .code_tools import SEED, PatchFailed, framework_for, patch_of, read_patch, read_suite, written
from .consensus import Consensus, consensus, groups
from .delegation import DELEGATE, Ask, Delegate, cost_json, counted_as, report, report_failure
from .model_call import Outcome, RunRecord
from .spend_limits import together

__all__ = [
    "CONSENSUS",
    "DIFF",
    "RUN",
    "SESSION",
    "TASK",
    "TESTS",
    "TOOLS",
    "Answers",
    "Arguments",
    "Conversation",
    "DelegateSource",
    "Files",
    "Held",
    "Scopes",
    "read",
    "read_scopes",
]

Value = TypeVar("Value")

_METADATA = ("language", "tier", "domain", "temperature")
_CAPS = ("maxOutputTokens",)
_DOMAINS = ("code", "creative", "default")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The arguments of all tools together; each tool accepts those in its definition."""

    prompt: str = ""
    force_model: str | None = None
    language: str | None = None
    tier: str | None = None
    domain: str = "default"
    temperature: float | None = None
    max_output_tokens: int | None = None
    context: tuple[str, ...] = ()
    files: Mapping[str, str]
    """Contents by path, for files that the caller passes."""
    paths: tuple[str, ...] = ()
    """Paths of files to read."""
    images: tuple[str, ...] = ()
    continues: str | None = None
    """Handle of an earlier answer."""
    schema: JsonObject | None = None
    """JSON Schema that the answer must match."""
    framework: str | None = None
    models: tuple[str, ...] = ()
    judge: str | None = None


def read(arguments: JsonObject, known: tuple[str, ...], required: tuple[str, ...]) -> Arguments:
    """Read the arguments of a call.

    Args:
        arguments: the arguments as sent.
        known: names that the tool accepts.
        required: names that must be present.

    Raises:
        InvalidArguments: names the argument, its place and what is valid there.
    """
    _only(arguments, known, "")
    for name in required:
        if arguments.get(name) is None:
            raise InvalidArguments(f"`{name}` is missing", suggestion=f"give `{name}`", options=known)
    metadata, caps = _table(arguments, "metadata", _METADATA), _table(arguments, "caps", _CAPS)
    files, paths = _files(arguments, is_needed="files" in required)
    said = _text(metadata, "language")

    domain = _text(metadata, "domain") or "default"
    if domain not in _DOMAINS:
        hint = "use one of the domains below, or leave it out"
        raise InvalidArguments(f"no domain is called `{domain}`", suggestion=hint, options=_DOMAINS)

    def fits_temperature(value: Json) -> float | None:
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        return float(value) if abs(value) <= sys.float_info.max else None

    def fits(value: Json) -> int | None:
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    return Arguments(
        prompt=_text(arguments, "prompt") or "",
        force_model=_text(arguments, "forceModel"),
        language=None if said is None else said.strip().lower().replace("_", "-").split("-")[0],
        tier=_text(metadata, "tier"),
        domain=domain,
        temperature=_of(metadata, "temperature", fits_temperature, "a number"),
        max_output_tokens=_of(caps, "maxOutputTokens", fits, "a whole number above 0"),
        context=_texts(arguments, "context"),
        files=files,
        paths=paths,
        images=_texts(arguments, "images"),
        continues=_text(arguments, "continue"),
        schema=_of(arguments, "schema", lambda one: one if isinstance(one, dict) and one else None, "an object"),
        framework=_text(arguments, "framework"),
        models=_texts(arguments, "models"),
        judge=_text(arguments, "judge"),
    )


def _only(table: JsonObject, known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known)}"
            raise InvalidArguments(f"`{where}{key}` is not known", suggestion=hint, options=known)


def _table(arguments: JsonObject, name: str, known: tuple[str, ...]) -> JsonObject:
    value = _of(arguments, name, lambda one: one if isinstance(one, dict) else None, "an object")
    table = cast("JsonObject", value or {})
    _only(table, known, f"{name}.")
    return table


def _of(table: JsonObject, name: str, fits: Callable[[Json], Value | None], wanted: str) -> Value | None:
    value = table.get(name)
    if value is None:
        return None
    found = fits(value)
    if found is None:
        raise InvalidArguments(f"`{name}` must be {wanted}", suggestion=f"give {wanted}, or leave it out")
    return found


def _text(table: JsonObject, name: str) -> str | None:
    return _of(table, name, lambda one: one if isinstance(one, str) and one.strip() else None, "a text")


def _texts(table: JsonObject, name: str) -> tuple[str, ...]:
    def fits(value: Json) -> tuple[str, ...] | None:
        listed = value if isinstance(value, list) else [value]
        texts = tuple(one for one in listed if isinstance(one, str) and one)
        return texts if len(texts) == len(listed) else None

    return _of(table, name, fits, "a list of texts") or ()


def _files(table: JsonObject, *, is_needed: bool) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return contents by path, and paths of files to read: an object has contents, a list has paths."""
    if isinstance(table.get("files"), dict):

        def fits(value: Json) -> dict[str, str] | None:
            texts = {path: text for path, text in cast("JsonObject", value).items() if isinstance(text, str)}
            return texts if len(texts) == len(cast("JsonObject", value)) else None

        files, paths = _of(table, "files", fits, "a list of paths, or an object of paths and contents") or {}, ()
    else:
        files, paths = dict[str, str](), _texts(table, "files")
    if is_needed and not files and not paths:
        raise InvalidArguments("`files` is empty", suggestion="give each file's path, or its path with its content")
    return files, paths


class Held(Protocol):
    """Results kept out of the context window, and retrieved passages."""

    async def passages(self, handles: tuple[str, ...], caller: Caller, max_tokens: int) -> str:
        """Return the text of some handles within a token limit; raise `UnknownHandle` for an unknown one."""
        ...


class Files(Protocol):
    """Files inside the folders that the user configured."""

    async def texts(self, paths: tuple[str, ...]) -> dict[str, str]:
        """Return the contents of files, by their path relative to the configured folder.

        Raises:
            Denied: a file is outside the folders, is ignored, or may contain a secret.
            UnreadableFile: a file is missing, is not text, or is too large.
        """
        ...

    async def images(self, names: tuple[str, ...]) -> tuple[Media, ...]:
        """Return images, each named by a path or a `data:` URI; raises like `texts`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The messages of a conversation with a model."""

    model: str
    """The policy's id of the model that answered last."""
    messages: tuple[Message, ...]
    """Messages other than the system's; the last is the answer."""

    @property
    def answer(self) -> str:
        """Text of the last message."""
        return join_texts(self.messages[-1].parts)


class Answers(Protocol):
    """Keeps answers of delegated calls, each for the caller that received it."""

    async def keep(self, conversation: Conversation, caller: Caller) -> str | None:
        """Keep a conversation and return its handle; None if it could not be kept."""
        ...

    async def open(self, handle: str, caller: Caller) -> Conversation:
        """Return a conversation.

        Raises:
            UnknownHandle: the handle does not exist, belongs to another caller, or is not an answer's.
        """
        ...


TASK = "dev.ullage/task"
SESSION = "dev.ullage/session"
_LONGEST = 200
"""Maximum characters of a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scopes:
    """The task and session of a call, and whether it ends them."""

    task: str | None = None
    ends_task: bool = False
    """Whether the task ends with this call."""
    ends_session: bool = False


def read_scopes(meta: JsonObject) -> Scopes:
    """Read the scopes of a call; raise `InvalidArguments` for a value that is neither a name nor such a table."""
    said, session = meta.get(TASK), meta.get(SESSION)
    table: JsonObject = said if isinstance(said, dict) else {"name": said}
    name = table.get("name")
    is_named = isinstance(name, str) and bool(name.strip()) and len(name) <= _LONGEST
    if said is not None and (not is_named or not _is_end(table, ("name", "end"))):
        raise _unreadable_scope(TASK, f'a name of up to {_LONGEST} characters, or {{"name": NAME, "end": true}}')
    if session is not None and not (isinstance(session, dict) and _is_end(session, ("end",))):
        raise _unreadable_scope(SESSION, '{"end": true}')
    return Scopes(
        task=name if isinstance(name, str) else None,
        ends_task=table.get("end") is True,
        ends_session=isinstance(session, dict) and session.get("end") is True,
    )


def _is_end(table: JsonObject, known: tuple[str, ...]) -> bool:
    end: Json = table.get("end", False)
    return isinstance(end, bool) and set(table) <= set(known)


def _unreadable_scope(key: str, wanted: str) -> InvalidArguments:
    return InvalidArguments(f"`{key}` of `_meta` cannot be read", suggestion=f"give {wanted}, or leave it out")


_ASKS: dict[str, Json] = {"readOnlyHint": True, "openWorldHint": True, "idempotentHint": False}
"""Delegating changes nothing on this machine, though it costs money."""

_PROMPT: dict[str, Json] = {"type": "string"}
_MODEL: dict[str, Json] = {"type": "string", "description": "Alias or model id"}
_TOOLS_CAPS: dict[str, Json] = {
    "type": "object",
    "properties": {"maxOutputTokens": {"type": "integer", "minimum": 1}},
    "additionalProperties": False,
}
_TOOLS_METADATA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "language": {"type": "string"},
        "tier": {"type": "string"},
        "domain": {"enum": ["code", "creative", "default"]},
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
    },
    "additionalProperties": False,
}
_CONTEXT: dict[str, Json] = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Handles of held results or passages, put before the prompt",
}
_TEXTS: dict[str, Json] = {"type": "array", "items": {"type": "string"}}
_CONTINUE: dict[str, Json] = {"continue": {"type": "string", "description": "Earlier answer, or `last`"}}
_FILES: dict[str, Json] = {"type": ["array", "object"], "description": "Paths, or path to content"}


def _schema(required: list[Json], **properties: Json) -> dict[str, Json]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


RUN = Tool(
    name="delegate.run",
    aliases=("delegate_run",),
    description="Have another model, chosen by policy, answer a prompt.",
    input_schema=_schema(
        ["prompt"],
        prompt=_PROMPT,
        forceModel=_MODEL,
        metadata=_TOOLS_METADATA,
        caps=_TOOLS_CAPS,
        context=_CONTEXT,
        files={**_TEXTS, "description": "Paths"},
        images=_TEXTS,
        **_CONTINUE,
        schema={"type": "object"},
    ),
    annotations=_ASKS,
)
DIFF = Tool(
    name="delegate.diff",
    aliases=("delegate_diff",),
    description="Have a model write a unified patch for these files, checked to apply.",
    input_schema=_schema(["prompt", "files"], prompt=_PROMPT, files=_FILES, forceModel=_MODEL),
    annotations=_ASKS,
)
TESTS = Tool(
    name="delegate.tests",
    aliases=("delegate_tests",),
    description="Have a model write tests for these files. Nothing is run.",
    input_schema=_schema(["files"], prompt=_PROMPT, files=_FILES, framework={"type": "string"}, forceModel=_MODEL),
    annotations=_ASKS,
)
CONSENSUS = Tool(
    name="delegate.consensus",
    aliases=("delegate_consensus",),
    description="Ask several models the same; says how far they agree.",
    input_schema=_schema(
        ["prompt"],
        prompt=_PROMPT,
        models={"type": "array", "items": {"type": "string"}, "minItems": 2},
        judge={**_MODEL, "description": "Writes one answer of all"},
        caps=_TOOLS_CAPS,
    ),
    annotations=_ASKS,
)
TOOLS = (RUN, DIFF, TESTS, CONSENSUS)

_LAST = "last"
"""In place of a handle: the latest answer of the caller's session."""
_CHOOSE, _AGAIN = "use one of the options", "try again later, or name another model with `forceModel`"
"""Suggestions for errors that have none of their own."""
_SESSIONS = 1_000
"""Sessions whose latest answer is remembered."""


@dataclass(slots=True)
class _RunCollector:
    """Records the runs of one call."""

    runs: list[RunRecord] = field(default_factory=list[RunRecord])

    def record_run(self, run_record: RunRecord) -> None:
        self.runs.append(run_record)


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateSource(ToolSource):
    """The tools that delegate tasks to other models."""

    delegate: Delegate
    held: Held | None = None
    """None if results cannot be held."""
    files: Files | None = None
    """None if the user configured no folder from which files may be read."""
    answers: Answers | None = None
    """None if answers are not kept, so that none can be continued."""
    context_tokens: int = 20_000
    """Maximum tokens of the context put before a prompt."""
    _latest: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """Handle of the latest answer, by principal and session."""

    async def tools(self) -> Listing:
        """Return the definitions of the tools."""
        return Listing(TOOLS, revision="1")

    async def call(self, call: Call) -> Reply:
        """Answer a call; the metadata of an error says what was tried and what it cost."""
        tool = next((one for one in TOOLS if call.tool in (one.name, *one.aliases)), None)
        if tool is None:
            names = tuple(one.name for one in TOOLS)
            raise UnknownTool(f"no tool is called `{call.tool}`", suggestion=_CHOOSE, options=names)
        scopes, collector = read_scopes(call.meta), _RunCollector()
        watched = replace(self.delegate, observers=(*self.delegate.observers, collector))
        try:
            properties, required = tool.input_schema["properties"], tool.input_schema["required"]
            known = tuple(properties) if isinstance(properties, dict) else ()
            wanted = tuple(str(name) for name in required) if isinstance(required, list) else ()
            arguments = read(call.arguments, known, wanted)
            async with progress_listener(call.progress) as hear:
                return await replace(self, delegate=watched).answer(tool, call, arguments, hear)
        except UllageError as error:
            error.meta = {**error.meta, DELEGATE: report_failure(collector.runs)}
            error.suggestion = error.suggestion or (_CHOOSE if error.options else _AGAIN)
            raise
        finally:
            if scopes.ends_task:
                await self.delegate.purse.end(call.caller, scopes.task)
            if scopes.ends_session:
                await self.delegate.purse.end(call.caller)

    async def answer(self, tool: Tool, call: Call, arguments: Arguments, hear: Hear) -> Reply:
        """Answer a call whose tool and arguments have been read; `hear` is called with each piece as it arrives."""
        answers = {
            RUN.name: self._run,
            DIFF.name: self._diff,
            TESTS.name: self._tests,
            CONSENSUS.name: self._consensus,
        }
        return await answers[tool.name](call, arguments, hear)

    async def _run(self, call: Call, arguments: Arguments, hear: Hear) -> Reply:
        handle = arguments.continues
        earlier = None
        if handle is not None:
            if handle == _LAST:
                handle = self._latest.get((call.caller.principal, call.caller.session))
            if self.answers is None or handle is None:
                raise UnknownHandle("there is no earlier answer to continue", suggestion="leave `continue` out")
            earlier = await self.answers.open(handle, call.caller)
        texts = (
            await self._read_context_handles(call, arguments),
            shown_files(await self._contents(arguments)),
            arguments.prompt,
        )
        prompt = asked(*texts)
        messages = (
            *(earlier.messages if earlier else ()),
            replace(
                prompt,
                parts=(
                    *(await self._roots("images").images(arguments.images) if arguments.images else ()),
                    *prompt.parts,
                ),
            ),
        )
        ask = self._ask(call, arguments, "run", (*self._system("run"), *messages))
        if arguments.force_model is None and earlier and earlier.model in self.delegate.policy.models:
            ask = replace(ask, force_model=earlier.model)
        if arguments.schema is None:
            outcome = await self.delegate.run(ask, hear)
            said, text = report(outcome), outcome.completion.text
        else:
            schema = arguments.schema
            check_schema(schema)
            words = Message(role="system", parts=(Text(describe_schema(schema)),))
            ask = replace(ask, output_schema=schema, messages=(words, *ask.messages))
            found = await ask_until_fit(self.delegate, ask, lambda text: read_fitting(text, schema), hear)
            outcome, said, text = found.outcome, _report_checked(found), found.value
        handle = await self._keep(call, outcome, messages, text)
        return Reply.text(text, meta={DELEGATE: said if handle is None else {**said, "handle": handle}})

    async def _diff(self, call: Call, arguments: Arguments, hear: Hear) -> Reply:
        files = await self._contents(arguments)
        messages = (*self._system("diff"), asked(shown_files(files), arguments.prompt))
        ask = self._ask(call, arguments, "diff", messages)

        def normalize(text: str) -> str:
            try:
                return patch_of(files, read_patch(text))
            except PatchFailed as fault:
                raise UnfitAnswer(str(fault)) from fault

        found = await ask_until_fit(self.delegate, ask, normalize, hear)
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
        names = list(found.answers)
        same = groups([one.completion.text for one in found.answers.values()])
        return Reply.text(
            _join_answers(found),
            meta={
                DELEGATE: {
                    "agreement": found.agreement,
                    "groups": [[names[place] for place in group] for group in same],
                    "answers": {name: report(one) for name, one in found.answers.items()},
                    "failed": dict(found.failed),
                    "judge": None if found.judged is None else report(found.judged),
                    "cost": cost_json(found.cost),
                }
            },
        )

    async def _contents(self, arguments: Arguments) -> dict[str, str]:
        """Return the files of a call by their name in the prompt, both those passed and those read from the folders."""
        if not arguments.paths:
            return dict(arguments.files)
        return {**arguments.files, **await self._roots("files").texts(arguments.paths)}

    def _roots(self, argument: str) -> Files:
        if self.files is None:
            raise InvalidArguments(
                f"no files can be read here: `{argument}` takes paths inside folders that the user named",
                suggestion="the user names folders under `file_roots` in the table `[delegate]` of their ullage.toml",
            )
        return self.files

    async def _keep(self, call: Call, outcome: Outcome, messages: tuple[Message, ...], text: str) -> str | None:
        """Keep a conversation and return the handle that continues it.

        Reasoning is not kept, because only the model that wrote it accepts it back.
        """
        if self.answers is None:
            return None
        said = Message(role="assistant", parts=(Text(text),))
        kept = Conversation(model=outcome.candidate.entry.id, messages=(*messages, said))
        handle = await self.answers.keep(kept, call.caller)
        if handle is not None:
            session = (call.caller.principal, call.caller.session)
            self._latest.pop(session, None)
            if len(self._latest) >= _SESSIONS:
                # Of the session that has been quiet for longest.
                del self._latest[next(iter(self._latest))]
            self._latest[session] = handle
        return handle

    def _system(self, task: str, **filled: str) -> tuple[Message, ...]:
        return system(self.delegate.policy.prompts, task, **filled)

    async def _read_context_handles(self, call: Call, arguments: Arguments) -> str:
        """Return the text of the handles in `context`: earlier answers, held results, passages.

        All of them share one token budget.
        """
        answers, others = list[str](), list[str]()
        for handle in arguments.context:
            found = None
            if self.answers is not None:
                with contextlib.suppress(UnknownHandle):
                    found = (await self.answers.open(handle, call.caller)).answer
            if found is None:
                others.append(handle)
            else:
                answers.append(found)
        if others and self.held is None:
            raise InvalidArguments("no results are held here", suggestion="leave `context` out")
        share = self.context_tokens // max(1, len(arguments.context))
        texts = list[str]()
        for whole in answers:
            text, model = whole, counted_as(None, self.delegate.models)
            while text and self.delegate.meter.count(text, model).high > share:
                text = text[: len(text) * 4 // 5]
            lost = len(whole) - len(text)
            texts.append(f"{text}\n[… {lost:,} characters left out …]" if lost else text)
        if others and self.held is not None:
            left = self.context_tokens - share * len(answers)
            texts.append(await self.held.passages(tuple(others), call.caller, left))
        together = "\n\n".join(texts)
        return f"<context>\n{together}\n</context>" if texts else ""

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


def _report_checked(found: CheckedAnswer[Any]) -> dict[str, Json]:
    """Return the metadata with the cost of every answer, rejected ones included."""
    said = report(found.outcome)
    said["cost"] = cost_json(together([one.cost for one in found.outcomes]))
    said["asked"] = len(found.outcomes)
    return said


def _join_answers(found: Consensus) -> str:
    """Return the text for the caller's model: one answer if a judge wrote it or all agree, else each; and which
    models failed."""
    first_lines = {name: why.partition("\n")[0][:120] for name, why in found.failed.items()}
    lost = "; ".join(f"{name} ({why})" for name, why in first_lines.items())
    missing = f"\n\n[no answer: {lost}]" if lost else ""
    texts = [one.completion.text for one in found.answers.values()]
    if found.judged is not None:
        return f"{found.judged.completion.text}{missing}"
    if found.agreement == 1.0:
        return f"{texts[0]}{missing}"
    said = "\n\n".join(f"## {name}\n{one.completion.text}" for name, one in found.answers.items())
    level = "unknown" if found.agreement is None else f"{found.agreement:.0%}"
    return f"{said}{missing}\n\n[agreement of words: {level}]"
