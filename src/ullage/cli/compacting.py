"""What is let go of a session on a person's word, and where does the rest go?

By the same tiers as before a model's call, whether the threshold is reached or not. A session of Ullage is changed in
its place, with what is let go in its archive; a file of another program never is. Nothing is printed here.
"""

import time
from dataclasses import dataclass, replace
from pathlib import Path

from ullage.clients import rewritten_text
from ullage.context import (
    Breaker,
    Compaction,
    ContextUsage,
    Entry,
    Keeping,
    Options,
    Session,
    Summarizer,
    Teller,
    compact,
    limits_of,
    usage_of,
)
from ullage.errors import InvalidArguments, UnreadableFile
from ullage.messages import plain

from .sessions import Found, Weighed, all_in, weigh

__all__ = ["LetGo", "Written", "destination", "mended", "planned", "written"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LetGo:
    weighed: Weighed
    work: Compaction
    after: ContextUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    path: Path
    generation: int | None
    """Under which a session keeps what was let go; None for a list of messages."""


def destination(found: Found, output: Path | None) -> Path:
    """Where the result goes; refused where that would change another program's file, or write over any."""
    if output is None:
        if found.conversation.program == "ullage":
            return Path(found.file)
        raise InvalidArguments(
            f"`{found.file}` is not Ullage's own and is not changed",
            suggestion="say where the rest goes: --output FILE; or see what would be let go: --dry-run",
        )
    if output.exists():
        raise InvalidArguments(f"`{output}` is there already", suggestion="name a file that is not there yet")
    return output


def mended(found: Found, path: Path) -> Found:
    """A session that is to be changed in its place, as it is once what a crash left torn is put right."""
    if path != Path(found.file):
        return found
    Session.open(path).close()
    return all_in(found.file)[-1]


async def planned(found: Found, options: Options, model: str | None, *, summarizer: Summarizer | None = None) -> LetGo:
    """What would be let go. Without a summarizer, a digest stands for what a model would say."""
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
    return LetGo(weighed=weighed, work=work, after=after)


def written(let_go: LetGo, path: Path) -> Written:
    """Puts what remains where it is to be."""
    conversation, file = let_go.weighed.conversation, let_go.weighed.file
    if conversation.program == "messages":
        _write_new(path, rewritten_text(_text(file), [plain(one.native) for one in let_go.work.entries]))
        return Written(path=path, generation=None)
    with Session.open(path, format=conversation.format, model=let_go.weighed.model) as session:
        before, after = _recorded(session, let_go)
        _, generation = Keeping(session).replace(before, after, let_go.work.sheds)
    return Written(path=path, generation=generation)


def _recorded(session: Session, let_go: LetGo) -> tuple[list[Entry], list[Entry]]:
    """What was there and what is left, under the ids that the session's file has for them; a session that is new is
    given what was there first."""
    entries = let_go.weighed.entries
    if not session.records:
        for entry in entries:
            session.append([plain(entry.native)], pinned=entry.pinned, kind=entry.kind)
    pairs = zip(entries, session.records, strict=False)
    ids = {entry.record: record.id for entry, record in pairs if record.message == plain(entry.native)}
    known = {id(entry): replace(entry, record=ids.get(entry.record)) for entry in entries}
    left = [known.get(id(entry)) or replace(entry, record=ids.get(entry.record)) for entry in let_go.work.entries]
    return list(known.values()), left


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UnreadableFile(f"`{file}` cannot be read: {error.strerror}") from error


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UnreadableFile(f"`{path}` cannot be written: {error.strerror}") from error
