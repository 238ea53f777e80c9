"""Whether hard cases that no recording has come out of a compaction with the user's words in them.

Part of `make bench-context`; alone, `python bench/context_cases.py` (`CASE=name` for some). Every case is generated: a
task that is followed by a pasted log, several giant results, a task in several messages, instructions that change on
the way, tool output that arrives as the user's text under many protocols. Each is written in each format, prepared by a
`Context` with a session in windows of 8,000 to 1,000,000 tokens, and looked at: is it what the provider takes, are the
user's words there, is at most half of the window used, is every message that changed reported, and can what is gone
be recalled.
"""

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import anyio
from context_alone import run_alone
from context_traces import FORMATS, MODELS

from ullage import Context
from ullage.context import SummaryAnswer, SummaryRequest
from ullage.messages import Format, Message, Part, Text, ToolCall, ToolResult, faults, read_message, write_messages
from ullage.tool import Call

WINDOWS = (8_000, 16_000, 32_000, 128_000, 1_000_000)
ROOMY, HALF, TOLD = 16_000, 50.0, 0.95
FULL = 0.9
LARGEST = 2_400_000
"""Characters of the largest history, which does not fill the largest window twice over as the others do."""
SEED = 11
CHARACTERS = 4
"""Of a token, about: sizes of what is generated are shares of a window."""
SMALL = 0.10
"""The share of the window under which words of the user's are there to the letter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A history, and what must be found in what is left of it."""

    name: str
    messages: tuple[Message, ...]
    words: tuple[str, ...]
    """Of the user's, there to the letter."""
    lost: str = ""
    """What stands in the middle of what is too much; it may be gone, but is recalled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    case: str
    format: Format
    window: int
    before: float
    after: float
    tiers: tuple[str, ...]
    faults: tuple[str, ...]
    missing: tuple[str, ...]
    unreported: int
    recalled: bool
    """Whether what is gone was found again; true where nothing is gone."""

    def wrong(self) -> Iterator[str]:
        yield from self.faults[:1]
        yield from (f"`{one[:50]}` is missing" for one in self.missing)
        if self.unreported:
            yield f"{self.unreported} messages are not reported as they are"
        if self.before > FULL and not self.tiers:
            yield "nothing was compacted"
        if self.tiers and self.window >= ROOMY and self.after > HALF:
            yield f"{self.after:.1f} % are used"
        if not self.recalled:
            yield "what is gone is not recalled"


class Generator:
    """Text that nobody typed: logs, tables, code, pages."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def word(self) -> str:
        return "".join(
            self.random.choice(("ba", "ko", "ri", "tel", "mun", "sa", "ver", "no", "dia", "lex")) for _ in "123"
        )

    def sentence(self) -> str:
        return " ".join(self.word() for _ in range(self.random.randint(6, 14))).capitalize() + "."

    def prose(self, characters: int) -> str:
        return self._filled(characters, self.sentence, " ")

    def log(self, characters: int) -> str:
        return self._filled(characters, self._log_line, "\n")

    def _log_line(self) -> str:
        pick = self.random
        time = f"2026-03-{pick.randint(1, 28):02} 1{pick.randint(0, 9)}:{pick.randint(10, 59)}:07"
        level = pick.choice(("INFO", "WARN", "ERROR"))
        what = f"{self.word()} {self.word()} id={pick.randrange(16**8):08x} took {pick.randint(1, 900)}ms"
        return f"{time} {level} [{self.word()}-{pick.randint(1, 9)}] {what}"

    def table(self, characters: int) -> str:
        rows = self._filled(
            characters,
            lambda: f"{self.random.randint(1000, 9999)},{self.word()},{self.random.random() * 100:.2f},{self.word()}",
            "\n",
        )
        return f"id,name,price,region\n{rows}"

    def minified(self, characters: int) -> str:
        made = list[dict[str, object]]()
        size = 0
        while size < characters:
            made.append({"id": self.random.randrange(10**6), "name": self.word(), "tags": [self.word(), self.word()]})
            size += 60
        return json.dumps(made, separators=(",", ":"))

    def code(self, characters: int) -> str:
        return self._filled(characters, self._function, "\n")

    def _function(self) -> str:
        name, number = f"{self.word()}_{self.random.randint(1, 99)}", self.random.randint(1, 99)
        return f"def {name}(x):\n    return x.{self.word()}({number})\n"

    def page(self, characters: int) -> str:
        rows = self._filled(characters, lambda: f"<p class='{self.word()}'>{self.sentence()}</p>", "\n")
        return f"<html><body>\n{rows}\n</body></html>"

    def unbroken(self, characters: int) -> str:
        return "".join(
            self.random.choice("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghkmnpqrstuvwxyz23456789+/") for _ in range(characters)
        )

    def _filled(self, characters: int, line: Callable[[], str], between: str) -> str:
        made, size = list[str](), 0
        while size < characters:
            made.append(line())
            size += len(made[-1]) + len(between)
        return between.join(made)


TASK = """Please migrate the billing service in services/billing from REST to gRPC.
Context: the service is called by checkout, invoicing and the nightly export job, and is written in Python 3.12. The
proto files live in proto/billing/v2 and are shared with the mobile team, who release on Thursdays.
- Never touch the table ledger_entries_2019; auditors read it directly.
- The public method names must stay the same as in docs/api.md.
- Keep the p99 under 40 ms; measure with scripts/bench_billing.sh before and after.
- Do not add dependencies other than grpcio 1.66.
Start with the read-only methods, write a test for each, and ask me before you delete anything. When you are finished
write a summary of what changed for the release notes, in English and in German, no longer than a page."""
LIMITS = (
    "Never touch the table ledger_entries_2019",
    "The public method names must stay the same as in docs/api.md",
    "Do not add dependencies other than grpcio 1.66",
    "ask me before you delete anything",
)
NEEDLE = "zebra-quartz-7741"
CORRECTION = (
    "Actually, change of plan: from now on write to proto/billing/v3, not v2, and never run scripts/seed.sh again."
)
LATER = "One more thing: the export job moves to Friday 06:00 UTC, so don't deploy on Fridays."


def user(*said: str) -> Message:
    return Message(role="user", parts=tuple(Text(one) for one in said))


def assistant(*parts: str | Part) -> Message:
    return Message(role="assistant", parts=tuple(Text(one) if isinstance(one, str) else one for one in parts))


def call(identity: str, name: str, **arguments: object) -> ToolCall:
    return ToolCall(name=name, arguments=json.dumps(arguments), id=identity)


def result(identity: str, text: str, name: str) -> Message:
    return Message(role="tool", parts=(ToolResult(parts=(Text(text),), call_id=identity, name=name),))


def with_needle(text: str) -> str:
    """A text with the needle on a line of its own in the middle, where there are lines."""
    middle = text.find("\n", len(text) // 2)
    at = len(text) // 2 if middle < 0 else middle
    return f"{text[:at]}\n{NEEDLE}\n{text[at:]}" if middle >= 0 else f"{text[:at]} {NEEDLE} {text[at:]}"


def steps(make: Generator, size: int, each: int, *, since: int = 0) -> Iterator[Message]:
    """Calls and results of about so many characters in all."""
    for number in range(since, since + max(2, size // each)):
        name = make.random.choice(("read_file", "search", "run_tests"))
        yield assistant(
            f"Next I look at part {number}.", call(f"c{number}", name, path=f"src/{make.word()}/{number}.py")
        )
        yield result(f"c{number}", make.code(each), name)


def pasted(make: Generator, size: int) -> Iterator[Case]:
    """A task, a reply, and something large that is pasted."""
    pastes: Mapping[str, Callable[[int], str]] = {
        "log": make.log,
        "table": make.table,
        "minified JSON": make.minified,
        "code": make.code,
        "page": make.page,
        "prose": make.prose,
        "one long word": make.unbroken,
    }
    for kind, paste in pastes.items():
        text = with_needle(paste(size))
        opening = (user(TASK), assistant("I will. Can you show me what happens now?"))
        yield Case(name=f"pasted {kind}", messages=(*opening, user(text)), words=(TASK,), lost=NEEDLE)
    log = with_needle(make.log(size))
    opening = (user(TASK), assistant("I will. Can you show me what happens now?"))
    asked = "Here is the log of last night. Why did the export fail, and must we run it again before 09:00?"
    for name, text in (
        ("before a log", f"{asked}\n\n{log}"),
        ("behind a log", f"{log}\n\n{asked}"),
        ("between logs", f"{log}\n\n{asked}\n\n{make.log(size)}"),
    ):
        yield Case(name=f"question {name}", messages=(*opening, user(text)), words=(TASK, asked), lost=NEEDLE)
    yield Case(name="log in the task", messages=(user(f"{TASK}\n\nLog:\n{log}"),), words=LIMITS, lost=NEEDLE)
    yield Case(name="log, then the task", messages=(user(f"{log}\n\n{TASK}"),), words=LIMITS, lost=NEEDLE)
    yield Case(name="task and log as two parts", messages=(user(TASK, log),), words=LIMITS, lost=NEEDLE)
    yield Case(
        name="log first, task in an answer",
        messages=(user(log), assistant("That is a log. What shall I do with it?"), user(TASK)),
        words=(TASK,),
        lost=NEEDLE,
    )
    yield Case(
        name="log, then work",
        messages=(
            *opening,
            user(f"{asked}\n{log}"),
            *steps(make, size, max(400, size // 20)),
            assistant("Done so far."),
        ),
        words=(TASK, asked),
        lost=NEEDLE,
    )


def giants(make: Generator, size: int) -> Iterator[Case]:
    """Results that are each as large as the window."""
    ids = ("a", "b", "c")
    calls = assistant(*(call(one, "fetch", url=f"https://example.com/{one}") for one in ids))
    results = [result(one, with_needle(make.page(size)) if one == "b" else make.log(size), "fetch") for one in ids]
    yield Case(name="three giant results at once", messages=(user(TASK), calls, *results), words=(TASK,), lost=NEEDLE)
    turns = [
        message
        for one in ids
        for message in (
            assistant(call(one, "fetch", url=f"https://example.com/{one}")),
            result(one, with_needle(make.minified(size)) if one == "a" else make.minified(size), "fetch"),
        )
    ]
    yield Case(name="three giant results in a row", messages=(user(TASK), *turns), words=(TASK,), lost=NEEDLE)
    yield Case(
        name="giant result, then a question",
        messages=(user(TASK), *turns, assistant("There it is."), user("So which one fails? Do not guess.")),
        words=(TASK, "So which one fails? Do not guess."),
        lost=NEEDLE,
    )
    body = with_needle(make.code(size))
    written = assistant(call("w", "write_file", path="src/new.py", content=body))
    yield Case(
        name="giant argument",
        messages=(user(TASK), written, result("w", "ok", "write_file"), *steps(make, size // 2, max(400, size // 20))),
        words=(TASK,),
    )
    yield Case(
        name="giant argument at the end",
        messages=(user(TASK), *steps(make, size // 2, max(400, size // 20)), written, result("w", "ok", "write_file")),
        words=(TASK,),
        lost=NEEDLE,
    )
    answer = assistant(make.prose(size))
    yield Case(name="giant answer", messages=(user(TASK), answer, user(LATER)), words=(TASK, LATER))


def conversations(make: Generator, size: int) -> Iterator[Case]:
    """Requests in several messages, and instructions that change on the way."""
    each = max(400, size // 40)
    work = lambda since: tuple(steps(make, size // 2, each, since=since))  # noqa: E731
    parts = [part.strip() for part in re.split(r"\n(?=- )", TASK)]
    several = [message for part in parts for message in (user(part), assistant("Noted."))]
    yield Case(name="task in several messages", messages=(*several, *work(0), *work(500)), words=tuple(parts))
    rows = [user(part) for part in parts]
    yield Case(name="task in messages in a row", messages=(*rows, *work(0), *work(500)), words=tuple(parts))
    hello = (user("Hi!"), assistant("Hello. What can I do for you?"))
    yield Case(name="greeting, then the task", messages=(*hello, user(TASK), *work(0), *work(500)), words=(TASK,))
    changed = (user(TASK), *work(0), assistant("The v2 files are written."), user(CORRECTION), *work(500))
    yield Case(name="corrected on the way", messages=changed, words=(TASK, CORRECTION))
    twice = (*changed, assistant("v3 is there."), user(LATER), *work(900))
    yield Case(name="corrected twice", messages=twice, words=(TASK, CORRECTION, LATER))
    interrupted = (user(TASK), *work(0), user(CORRECTION), *work(500))
    yield Case(name="corrected without an answer between", messages=interrupted, words=(TASK, CORRECTION))
    beside = (*interrupted, user(LATER), *work(900))
    yield Case(name="corrected twice beside results", messages=beside, words=(TASK, CORRECTION, LATER))
    small = [message for one in ("yes", "ok, go on", "continue", "thanks") for message in (user(one), *work(600)[:2])]
    yield Case(name="small words behind the task", messages=(*changed, *small), words=(TASK, CORRECTION))
    for tag in ("task", "user_query", "feedback", "user_message", "instructions", "request"):
        tagged = (
            user(f"<{tag}>\n{TASK}\n</{tag}>"),
            *work(0),
            assistant("Done."),
            user(f"<{tag}>{CORRECTION}</{tag}>"),
        )
        yield Case(name=f"words in <{tag}>", messages=(*tagged, *work(500)), words=(TASK, CORRECTION))
    noted = user(f"<environment_details>\n{make.log(each)}\n</environment_details>", CORRECTION)
    yield Case(
        name="words beside a program's",
        messages=(user(TASK), *work(0), assistant("Done."), noted, *work(500)),
        words=(TASK, CORRECTION),
    )
    talk = [message for _ in range(60) for message in (user(make.prose(each // 2)), assistant(make.prose(each)))]
    yield Case(name="long talk", messages=(user(TASK), assistant("Yes."), *talk, user(LATER)), words=(TASK, LATER))
    foreign = (
        "请把 services/billing 迁移到 gRPC。绝对不要修改表 ledger_entries_2019。必须保持 docs/api.md 中的方法名不变。"
        "除 grpcio 1.66 外不得添加依赖。"
    )
    yield Case(name="task in Chinese", messages=(user(foreign), *work(0), *work(500)), words=(foreign,))


PROTOCOLS: Mapping[str, tuple[Callable[[str, str], str], Callable[[str, int], str]]] = {
    "react": (
        lambda a, b: f"Thought: I should look.\nAction: {a}\nAction Input: {b}",
        lambda r, n: f"Observation: {r}",
    ),
    "react brackets": (lambda a, b: f"Thought {1}: look\nAction: {a}[{b}]", lambda r, n: f"Observation {n}: {r}"),
    "upper case": (lambda a, b: f"THOUGHT\nlook\nACTION\n{a} {b}", lambda r, n: f"OBSERVATION\n{r}"),
    "swe-agent": (
        lambda a, b: f"DISCUSSION\nI look.\n```\n{a} {b}\n```",
        lambda r, n: f"{r}\n(Open file: n/a)\nbash-$",
    ),
    "mini-swe": (
        lambda a, b: f"THOUGHT: look\n\n```bash\n{a} {b}\n```",
        lambda r, n: f"<returncode>0</returncode>\n<output>\n{r}\n</output>",
    ),
    "tool_result": (
        lambda a, b: f'<tool_call>{{"name": "{a}", "arguments": {{"path": "{b}"}}}}</tool_call>',
        lambda r, n: f"<tool_result>\n{r}\n</tool_result>",
    ),
    "tool_response": (
        lambda a, b: f'<tool_call>\n{{"name": "{a}", "arguments": {{"path": "{b}"}}}}\n</tool_call>',
        lambda r, n: f"<tool_response>\n{r}\n</tool_response>",
    ),
    "function_results": (
        lambda a, b: (
            f'<function_calls><invoke name="{a}"><parameter name="path">{b}</parameter></invoke></function_calls>'
        ),
        lambda r, n: f"<function_results>\n{r}\n</function_results>",
    ),
    "openhands": (
        lambda a, b: f"I look.\n<function={a}>\n<parameter=path>{b}</parameter>\n</function>",
        lambda r, n: f"EXECUTION RESULT of [{n}]:\n{r}",
    ),
    "cline": (
        lambda a, b: f"I look.\n<read_file>\n<path>{b}</path>\n</read_file>",
        lambda r, n: f"[read_file for '{n}.py'] Result:\n{r}",
    ),
    "output fence": (lambda a, b: f"Let me run it:\n```python\n{a}('{b}')\n```", lambda r, n: f"```output\n{r}\n```"),
    "code output": (
        lambda a, b: f"```python\n{a}('{b}')\n```",
        lambda r, n: f"Code execution output:\n{r}\n\nContinue.",
    ),
    "json": (
        lambda a, b: json.dumps({"thought": "look", "action": a, "action_input": {"path": b}}),
        lambda r, n: json.dumps({"status": "ok", "result": r}),
    ),
    "json command": (
        lambda a, b: json.dumps({"command": {"name": a, "args": {"path": b}}}),
        lambda r, n: f"Command {n} returned: {r}",
    ),
    "smolagents": (
        lambda a, b: f"Thought: look\nCode:\n```py\n{a}('{b}')\n```<end_code>",
        lambda r, n: f"Call id: call_{n}\nObservation:\nExecution logs:\n{r}",
    ),
    "bare": (lambda a, b: f"```bash\n{a} {b}\n```", lambda r, n: r),
    "autogen": (
        lambda a, b: f"Run this:\n```sh\n{a} {b}\n```\nTell me what it prints.",
        lambda r, n: f"exitcode: 0 (execution succeeded)\nCode output: {r}",
    ),
    "aider": (
        lambda a, b: f"/run {a} {b}",
        lambda r, n: f"I ran this command:\n\n{n} --all\n\nAnd got this output:\n\n{r}",
    ),
    "command output": (
        lambda a, b: f"COMMAND: {a} {b}",
        lambda r, n: f"Here is the output of the command:\n\n{r}",
    ),
    "result of": (lambda a, b: f"TOOL: {a}({b})", lambda r, n: f"RESULT: {r}"),
    "system tag": (
        lambda a, b: f"<execute_bash>\n{a} {b}\n</execute_bash>",
        lambda r, n: f"OBSERVATION:\n{r}\n[The command completed with exit code 0.]",
    ),
    "tool named": (lambda a, b: f"@{a} {b}", lambda r, n: f"[TOOL_OUTPUT]\n{r}\n[/TOOL_OUTPUT]"),
    "browser": (
        lambda a, b: f"In order to go on I click.\n```click [{len(a)}]```",
        lambda r, n: f"OBSERVATION:\n{r}\nURL: https://example.com/{n}\nPREVIOUS ACTION: click",
    ),
}


def protocols(make: Generator, size: int) -> Iterator[Case]:
    """Agents whose tool output arrives as the user's text."""
    each = max(300, size // 25)
    count = max(6, size // each)
    for name, (act, answer) in PROTOCOLS.items():
        for shape in ("log", "code", "prose", "table"):
            turns = list(protocol_turns(make, act, answer, getattr(make, shape), count, each))
            yield Case(name=f"protocol {name}, {shape}", messages=(user(TASK), *turns), words=(TASK,))
            if shape == "code":
                half = count // 2 * 2
                asked = (assistant("I am done with v2."), user(CORRECTION))
                corrected = (user(TASK), *turns[:half], *asked, *turns[half:])
                yield Case(name=f"protocol {name}, corrected", messages=corrected, words=(TASK, CORRECTION))


def feedback(make: Generator, size: int) -> Iterator[Case]:
    """What the user says within the frame in which a program brings results as text."""
    each = max(300, size // 25)
    act, answer = PROTOCOLS["cline"]
    turns = list(protocol_turns(make, act, answer, make.code, max(6, size // each), each))
    half = len(turns) // 4 * 2
    for name, told in (
        ("feedback", "[attempt_completion] Result:\nThe user has provided feedback.\n<feedback>\n{}\n</feedback>"),
        ("user_message", "[ask_followup_question for 'v2?'] Result:\n<user_message>\n{}\n</user_message>"),
        ("answer", "[ask_followup_question for 'v2?'] Result:\n<answer>\n{}\n</answer>"),
    ):
        asked = (assistant(act("attempt_completion", "v2")), user(told.format(CORRECTION)))
        messages = (user(TASK), *turns[:half], *asked, *turns[half:])
        yield Case(name=f"<{name}> in the frame of results", messages=messages, words=(TASK, CORRECTION))


def protocol_turns(  # noqa: PLR0913, PLR0917
    make: Generator,
    act: Callable[[str, str], str],
    answer: Callable[[str, int], str],
    text: Callable[[int], str],
    count: int,
    each: int,
) -> Iterator[Message]:
    for number in range(count):
        yield assistant(act(make.random.choice(("search", "read_file")), f"src/{make.word()}.py"))
        yield user(answer(text(make.random.randint(each // 4, 2 * each)), number))


@dataclass(slots=True)
class Figures:
    seen: list[Seen] = field(default_factory=list[Seen])

    @property
    def made(self) -> list[Seen]:
        return [one for one in self.seen if one.tiers]

    @property
    def shares(self) -> dict[str, float | None]:
        made = self.made
        roomy = [one for one in made if one.window >= ROOMY]
        return {
            "compacted": _share([bool(one.tiers) for one in self.seen if one.before > FULL]),
            "valid": _share([not one.faults for one in made]),
            "words": _share([not one.missing for one in self.seen]),
            "under half": _share([one.after <= HALF for one in roomy]),
            "reported": _share([not one.unreported for one in made]),
            "recalled": _share([one.recalled for one in made]),
        }

    def missed(self) -> list[str]:
        floors = {"compacted": 1.0, "valid": 1.0, "words": 1.0, "under half": TOLD, "reported": 1.0, "recalled": 1.0}
        shares = self.shares
        return [
            f"{name}: {'nothing was measured' if share is None else f'{share:.1%}'}, under {floor:.0%}"
            for name, floor in floors.items()
            if (share := shares[name]) is None or share < floor
        ]

    def to_json(self) -> dict[str, object]:
        rounded = {name: None if share is None else round(share, 4) for name, share in self.shares.items()}
        return {"asked": len(self.seen), "made": len(self.made), **rounded}


def _share(held: Sequence[bool]) -> float | None:
    return sum(held) / len(held) if held else None


class Summarizer:
    window = 200_000

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        return SummaryAnswer(text="The user asked for something, much of it is done, and the rest of the work goes on.")


async def look(case: Case, form: Format, window: int, *, folder: Path, summarizer: Summarizer | None) -> Seen:
    natives = write_messages(case.messages, form)
    path = folder / "session.jsonl"
    context = Context(model=MODELS[form], format=form, session=path, context_window=window, summarizer=summarizer)
    sources = context.tools_of_its_own
    context.offer([_tool(form)])
    context.add(*natives)
    before = context.status()
    ready = await context.prepare()
    left = list(ready.messages)
    text = "\n".join(_texts(left, form))
    plain = re.sub(r"\s+", " ", text)
    wanted = [one for one in case.words if len(one) / CHARACTERS <= SMALL * window] or [
        limit for limit in LIMITS if any(limit in re.sub(r"\s+", " ", one) for one in case.words)
    ]
    missing = tuple(one for one in wanted if re.sub(r"\s+", " ", one) not in plain)
    same = {id(one) for one in left}
    changed = {number for number, one in enumerate(natives, 1) if id(one) not in same}
    told = {number for one in ready.dropped for number in range(one.first, one.last + 1)}
    recalled = True
    if case.lost and ready.sheds and case.lost not in text:
        (source,) = sources
        reply = await source.call(Call(tool="recall", arguments={"query": case.lost}))
        recalled = case.lost in str(reply)
    if context.session is not None:
        context.session.close()
    return Seen(
        case=case.name,
        format=form,
        window=window,
        before=before.used / window,
        after=ready.status.usage_percent if not ready.status.overflow else 100.0 * ready.status.used / window,
        tiers=tuple(shed.tier for shed in ready.sheds),
        faults=tuple(faults(left, form, original=natives)),
        missing=missing,
        unreported=len(changed ^ told) if ready.sheds else 0,
        recalled=recalled,
    )


def _tool(form: Format) -> object:
    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    if form is Format.ANTHROPIC:
        return {"name": "recall", "description": "Finds", "input_schema": schema}
    if form is Format.GEMINI:
        return {"functionDeclarations": [{"name": "recall", "description": "Finds", "parameters": schema}]}
    function = {"name": "recall", "description": "Finds", "parameters": schema}
    return (
        {"type": "function", **function}
        if form is Format.OPENAI_RESPONSES
        else {"type": "function", "function": function}
    )


def _texts(natives: Sequence[object], form: Format) -> Iterator[str]:
    for native in natives:
        for part in read_message(native, form).parts:
            for one in part.parts if isinstance(part, ToolResult) else (part,):
                if isinstance(one, Text):
                    yield one.text


def run(data: Path) -> Figures:
    del data
    return anyio.run(_run)


async def _run() -> Figures:
    figures, wanted = Figures(), os.environ.get("CASE", "")
    turn = 0
    for window in WINDOWS:
        size = min(LARGEST, int(1.2 * window * CHARACTERS))
        for number, family in enumerate((pasted, giants, conversations, feedback, protocols)):
            if window > 128_000 and family is protocols:
                continue
            for case in family(Generator(SEED + number), size):
                if wanted and wanted not in case.name:
                    continue
                forms = FORMATS if family is not protocols else (FORMATS[turn % 4],)
                if window > 128_000:
                    forms = (FORMATS[turn % 4],)
                for form in forms:
                    turn += 1
                    with tempfile.TemporaryDirectory() as folder:
                        who = Summarizer() if turn % 2 else None
                        seen = await look(case, form, window, folder=Path(folder), summarizer=who)
                        figures.seen.append(seen)
    return figures


def report(figures: Figures) -> None:
    for one in figures.seen:
        if wrong := list(one.wrong()):
            print(f"{one.case}, {one.format.value}, {one.window:,}: {'; '.join(wrong)}")
    print(f"{len(figures.seen)} histories, {len(figures.made)} compacted")
    for name, share in figures.shares.items():
        print(f"{name:12}{'–' if share is None else f'{share:.1%}'}")


if __name__ == "__main__":
    sys.exit(run_alone(run, report))
