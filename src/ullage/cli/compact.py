"""Shrink a session so that it fits its context window.

Oversized results are truncated first, then old results are replaced by short notes, then the oldest messages become a
digest, or a summary if a summarizer is given. A session written by Ullage is changed in place, and everything removed
stays in its archive. Any other file is left unchanged and the shorter version is written to --output.

With --dry-run nothing is written and no model is called: the command prints what each step would remove, and the
first message that the provider would have to read again.
"""

import argparse
import textwrap
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio

from ullage.clients import rewrite_text
from ullage.context import (
    Breaker,
    Compaction,
    ContextUsage,
    Keeping,
    Options,
    Session,
    Summarizer,
    Teller,
    compact,
    history_entry,
    limits_of,
    render_line,
    shown_tokens,
    usage_of,
)
from ullage.errors import InvalidArguments, UnreadableFile
from ullage.messages import plain
from ullage.tool import Caller

from .input_files import STDIN
from .output import columns, dim, emit, emit_json, how_many, say, yellow
from .session_stats import (
    FoundConversation,
    WeighedConversation,
    add_flags,
    estimate_masking,
    find_by_id,
    read_conversations_in,
    weigh,
)

__all__ = [
    "PlannedCompaction",
    "WrittenSession",
    "arguments",
    "destination",
    "plan_compaction",
    "repair_session",
    "run",
    "write_remaining",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCompaction:
    """A compaction that is planned, with the context before and after it."""

    weighed: WeighedConversation
    work: Compaction
    after: ContextUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSession:
    """The result of writing a compacted session."""

    path: Path
    generation: int | None
    """The generation under which a session keeps what was dropped; None for a list of messages."""


def destination(found: FoundConversation, output: Path | None) -> Path:
    """Return where to write the result.

    Raises:
        InvalidArguments: Another program's file would be changed, or an existing file overwritten.
    """
    if output is None:
        if found.conversation.program == "ullage":
            return Path(found.file)
        raise InvalidArguments(
            f"`{found.file}` belongs to another program and is not changed",
            suggestion="write the shorter session to a new file with --output FILE, or look first with --dry-run",
        )
    if output.exists():
        raise InvalidArguments(f"`{output}` already exists", suggestion="name a file that is not there yet")
    return output


def repair_session(found: FoundConversation, path: Path) -> FoundConversation:
    """Return a session that is changed in place as it is after repairing damage from a crash."""
    if path != Path(found.file):
        return found
    Session.open(path).close()
    return read_conversations_in(found.file)[-1]


async def plan_compaction(
    found: FoundConversation, options: Options, model: str | None, *, summarizer: Summarizer | None = None
) -> PlannedCompaction:
    """Return what would be dropped. Without a summarizer, a digest takes the place of a model's summary."""
    weighed, conversation = weigh(found, options, model), found.conversation
    usage = weighed.usage
    limits = limits_of(
        options,
        usage.context_window,
        fixed=weighed.fixed.total.tokens,
        used=usage.weighed,
        scale=usage.used / max(1, usage.weighed),
        now=True,
    )
    teller = Teller(
        scale=weighed.scale,
        summarizer=summarizer,
        breaker=Breaker(time.monotonic),
        generation=1 + (len(conversation.compactions) if conversation.program == "ullage" else 0),
        recalls=conversation.program != "messages",
        timeout=options.summary_timeout,
    )
    work = await compact(weighed.entries, limits, weighed.scale, teller)
    after = usage_of(weighed.scale, weighed.fixed, work.entries, options, anchored=weighed.anchored)
    return PlannedCompaction(weighed=weighed, work=work, after=after)


def write_remaining(let_go: PlannedCompaction, path: Path) -> WrittenSession:
    """Write the remaining messages to the path."""
    conversation, file = let_go.weighed.conversation, let_go.weighed.file
    if conversation.program == "messages":
        try:
            text = Path(file).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise UnreadableFile(f"`{file}` cannot be read: {error.strerror}") from error
        text = rewrite_text(text, [plain(one.native) for one in let_go.work.entries])
        try:
            with path.open("x", encoding="utf-8") as new_file:
                new_file.write(text)
        except OSError as error:
            raise UnreadableFile(f"`{path}` cannot be written: {error.strerror}") from error
        return WrittenSession(path=path, generation=None)
    with Session.open(path, format=conversation.format, model=let_go.weighed.model) as session:
        # The entries of a new session are written to it first.
        entries = let_go.weighed.entries
        if not session.records:
            for entry in entries:
                session.append([plain(entry.native)], pinned=entry.pinned, kind=entry.kind)
        pairs = zip(entries, session.records, strict=False)
        ids = {entry.record: record.id for entry, record in pairs if record.message == plain(entry.native)}
        known = {id(entry): replace(entry, record=ids.get(entry.record)) for entry in entries}
        left = [known.get(id(entry)) or replace(entry, record=ids.get(entry.record)) for entry in let_go.work.entries]
        before, after = list(known.values()), left
        _, generation = Keeping(session).replace(before, after, let_go.work.sheds)
    return WrittenSession(path=path, generation=generation)


def record(let_go: PlannedCompaction, done: WrittenSession, config: Path | None) -> None:
    """Record the compaction in the ledger of the settings, under the session and the program that it is from."""
    # Imported late, so that a dry run does not wait for it.
    from ullage.app.build_context import open_ledger
    from ullage.processes import user_name

    conversation = let_go.weighed.conversation
    recorder = open_ledger(True, config=config)
    if recorder is not None:
        caller = Caller(principal=user_name(), session=conversation.id or done.path.stem, client=conversation.program)
        recorder.record(
            history_entry(
                caller,
                let_go.after,
                before=let_go.weighed.usage,
                sheds=let_go.work.sheds,
                dropped=len(let_go.work.dropped),
                generation=done.generation,
            )
        )
        recorder.flush()


_TIERS = {
    "clamp": "giant parts cut in their middle",
    "mask": "old results masked",
    "summarise": "oldest messages summarised",
    "digest": "oldest messages put into a digest",
    "trim": "oldest messages left out",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="session file, list of messages or request body")
    parser.add_argument("--dry-run", action="store_true", help="print what would be removed and change nothing")
    parser.add_argument("--output", "-o", type=Path, metavar="FILE", help="new file for the result")
    parser.add_argument(
        "--keep",
        type=float,
        metavar="SHARE",
        help="share of the window kept unchanged at the end (default 0.1, at least 8,000 tokens)",
    )
    parser.add_argument(
        "--target",
        type=float,
        default=0.50,
        metavar="SHARE",
        help="largest share of the window used afterwards (default 0.5)",
    )
    parser.add_argument(
        "--summarizer", metavar="MODEL", help="model of your policy that summarizes the oldest messages"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="ullage.toml with that policy")
    add_flags(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    if arguments.file == STDIN and not arguments.dry_run and arguments.output is None:
        raise InvalidArguments("standard input cannot be changed", suggestion="name a new file with --output FILE")
    sessions = read_conversations_in(arguments.file)
    if arguments.session is None and len(sessions) > 1:
        raise InvalidArguments(
            f"`{arguments.file}` holds {len(sessions):,} sessions",
            suggestion="say which one: --session ID",
            options=tuple(one.conversation.id for one in sessions[-20:] if one.conversation.id is not None),
        )
    found = sessions[0] if arguments.session is None else find_by_id(sessions, arguments.session)
    options = Options(context_window=arguments.window, keep=arguments.keep, target=arguments.target)
    if arguments.dry_run:
        return _report_result(anyio.run(partial(plan_compaction, found, options, arguments.model)), None, arguments)
    path = destination(found, arguments.output)
    found = repair_session(found, path)
    let_go = anyio.run(partial(_plan_with_summarizer, found, options, arguments))
    done = None
    if let_go.work.compacted:
        done = write_remaining(let_go, path)
        record(let_go, done, arguments.config)
    return _report_result(let_go, done, arguments)


async def _plan_with_summarizer(
    found: FoundConversation, options: Options, arguments: argparse.Namespace
) -> PlannedCompaction:
    if arguments.summarizer is None:
        return await plan_compaction(found, options, arguments.model)
    # Imported late, so that a run without a model does not wait for it.
    from .run import open_summarizer

    async with open_summarizer(arguments.summarizer, arguments.config) as summarizer:
        return await plan_compaction(found, options, arguments.model, summarizer=summarizer)


def _report_result(let_go: PlannedCompaction, done: WrittenSession | None, arguments: argparse.Namespace) -> int:
    if arguments.json:
        emit_json(
            {
                "file": let_go.weighed.file,
                "program": let_go.weighed.conversation.program,
                "compacted": let_go.work.compacted,
                "before": let_go.weighed.usage.to_json(),
                "after": let_go.after.to_json(),
                "messages": {"before": len(let_go.weighed.entries), "after": len(let_go.work.entries)},
                "shed": [
                    {
                        "tier": shed.tier,
                        "tokens": shed.tokens,
                        "messages": shed.messages,
                        "brokeAt": shed.broke_at,
                        "reread": shed.reread,
                    }
                    for shed in let_go.work.sheds
                ],
                "dropped": [one.to_json() for one in let_go.work.dropped],
                "warning": let_go.work.warning,
                "output": None if done is None else str(done.path),
                "generation": None if done is None else done.generation,
            }
        )
        return 0
    _print(let_go)
    if not let_go.work.compacted:
        ending = "nothing to remove; nothing was written"
    elif done is None:
        ending = "a dry run: nothing was written"
        if arguments.summarizer is not None:
            ending += "; no model was called, so a digest is shown in place of the summary"
    else:
        ending = f"{done.path}: {how_many(len(let_go.work.entries), 'message')}"
        if done.generation is not None:
            ending += f"; what was removed is in its archive, generation {done.generation}"
    say(ending)
    return 0


def _print(let_go: PlannedCompaction) -> None:
    sheds = let_go.work.sheds
    emit(f"before  {render_line(let_go.weighed.usage)}")
    if sheds:
        emit(f"after   {render_line(let_go.after)}")
        emit()
        rows = [(_TIERS[shed.tier], f"{shed.messages:,}", shown_tokens(shed.tokens)) for shed in sheds]
        titles, *lines = columns([("what", "messages", "tokens removed"), *rows], right=frozenset({1, 2}))
        emit(dim(titles))
        for line in lines:
            emit(line)
        emit()
        # The message from which on a provider must read the prompt again, after all steps.
        first = min(shed.broke_at for shed in sheds)
        reread = sum(entry.weight.tokens for entry in let_go.work.entries[first:])
        kept = f"its first {how_many(first, 'message')}" if first else "the system prompt and the tools"
        again = f"the {shown_tokens(reread)} tokens after that are sent again once"
        for line in textwrap.wrap(f"The prompt cache stays valid for {kept}; {again}.", 80):
            emit(line)
        masking = estimate_masking(let_go.weighed)
        if masking is not None and all(shed.tier != "mask" for shed in let_go.work.sheds):
            results, freed = how_many(masking.shed.messages, "old result"), shown_tokens(masking.shed.tokens)
            for line in textwrap.wrap(f"Masking {results} alone would free {freed}, which is not enough.", 80):
                emit(dim(line))
    if let_go.work.warning is not None:
        for line in textwrap.wrap(f"warning: {let_go.work.warning}", 80):
            emit(yellow(line))
