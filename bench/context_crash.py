"""Does a session lose anything when its processes are killed at any moment?

Part of `make bench-context`; alone, `python bench/context_crash.py`, with the number of kills and a seed where wished.
A writer and a compactor work on one session at the same time, as processes of their own, and are killed with SIGKILL
at random moments; then the session is opened as if nothing had happened. Every message that was acknowledged must be
there once, byte for byte, every archive must be what it was, and the file as it was before anything was let go must
come back byte for byte. Prints one line of figures, and fails on any loss.
"""

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

from ullage.context.session import Draft, Session, SessionChanged
from ullage.tool import Json

KILLS = 1_000
A_SESSION = 10
"""Rounds that one session lives through."""
LONGEST = 0.15
"""Seconds until a process is killed, once it has begun."""
SIZES = (10, 500, 5_000, 60_000, 1_500_000)
"""Characters of a message; a long one takes long enough to be cut."""
WEIGHTS = (40, 40, 20, 4, 1)
PAUSE = 0.003
"""Seconds at most between two messages."""


@dataclass(slots=True)
class Figures:
    kills: int = 0
    acknowledged: int = 0
    """Messages."""
    compactions: int = 0
    restored: int = 0
    """Times that an earlier state came back byte for byte, and the later one after it."""
    torn: int = 0
    """Files whose last line was cut by the kill, and mended without anybody's help."""
    lost: int = 0
    faults: list[str] = field(default_factory=list[str])
    seconds: float = 0.0

    def missed(self) -> list[str]:
        return [*([f"{self.lost} messages are lost"] if self.lost else []), *self.faults]

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def measure(kills: int, seed: int) -> Figures:
    figures, chance, begin = Figures(), random.Random(seed), time.monotonic()
    while figures.kills < kills:
        with tempfile.TemporaryDirectory(prefix="ullage crash ") as folder:
            _one_session(Path(folder) / "session.jsonl", chance, figures, kills)
    figures.seconds = round(time.monotonic() - begin, 1)
    return figures


def _one_session(path: Path, chance: random.Random, figures: Figures, kills: int) -> None:
    known: dict[int, str] = {}
    """What was acknowledged: the hash of each message's line by its number."""
    for _ in range(A_SESSION):
        if figures.kills >= kills:
            return
        for told in _round(path, chance, figures):
            _hear(told, known, figures)
        _check(path, chance, known, figures)


def _round(path: Path, chance: random.Random, figures: Figures) -> list[str]:
    """Lets both work, and kills first one of them and then the other. Returns what they said before they died."""
    workers = [_Worker(path, work, chance.randrange(1 << 30)) for work in (_write, _compact)]
    chance.shuffle(workers)
    for worker in workers:
        time.sleep(chance.uniform(0, LONGEST))
        worker.kill()
        figures.kills += 1
    return [line for worker in workers for line in worker.said()]


class _Worker:
    """A child of this process that works until it is killed."""

    def __init__(self, path: Path, work: Callable[[Path, random.Random, int], None], seed: int) -> None:
        self._reading, writing = os.pipe()
        self._id = os.fork()
        if self._id == 0:
            os.close(self._reading)
            _live(lambda: work(path, random.Random(seed), writing), writing)
        os.close(writing)
        # It says so when it has begun.
        os.read(self._reading, 1)

    def kill(self) -> None:
        os.kill(self._id, signal.SIGKILL)
        os.waitpid(self._id, 0)

    def said(self) -> list[str]:
        with os.fdopen(self._reading, "rb") as pipe:
            return pipe.read().decode().splitlines()


def _live(work: Callable[[], None], writing: int) -> NoReturn:
    os.write(writing, b".")
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent must hear of it
        os.write(writing, f"fault {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(1)


def _write(path: Path, chance: random.Random, writing: int) -> None:
    session = Session.open(path)
    while True:
        messages = [_message(chance) for _ in range(chance.randint(1, 3))]
        records = session.append(messages, durable=chance.random() < 0.2)
        said = "".join(f"message {one.seq} {sha256(one.line).hexdigest()}\n" for one in records)
        os.write(writing, said.encode())
        time.sleep(chance.uniform(0, PAUSE))


def _message(chance: random.Random) -> dict[str, Json]:
    size = chance.choices(SIZES, WEIGHTS)[0]
    return {"role": "user", "content": f"{chance.getrandbits(64):x} " * (size // 16 + 1)}


def _compact(path: Path, chance: random.Random, writing: int) -> None:
    session = Session.open(path)
    while True:
        records = session.refresh()
        if chance.random() < 0.1:
            session.restore(chance.randint(0, session.generation))
        elif len(records) > 4:
            first = chance.randrange(len(records) - 2)
            last = chance.randint(first + 2, len(records))
            kept = [one for one in records[first:last] if chance.random() < 0.3]
            summary = Draft(message={"role": "user", "content": "<context_summary>"}, kind="summary")
            try:
                session.replace(first, last, [summary, *kept], snapshot=records)
            except SessionChanged:
                continue
            os.write(writing, b"compacted\n")


def _hear(told: str, known: dict[int, str], figures: Figures) -> None:
    match told.split(" ", 2):
        case ["message", number, digest]:
            known[int(number)] = digest
            figures.acknowledged += 1
        case ["compacted"]:
            figures.compactions += 1
        case _:
            figures.faults.append(told)


def _check(path: Path, chance: random.Random, known: dict[int, str], figures: Figures) -> None:
    session = Session.open(path)
    figures.torn += any("torn" in note for note in session.notes)
    originals = session.history(full=True)
    found = [(record.seq, sha256(record.line).hexdigest()) for record in originals]
    figures.lost += len(known.items() - set(found))
    figures.faults += session.verify().faults
    figures.faults += [] if len(found) == len(dict(found)) else ["a message is there twice"]
    if chance.random() < 0.2:
        figures.faults += _restored(session, b"".join(record.line for record in originals))
        figures.restored += 1


def _restored(session: Session, originals: bytes) -> list[str]:
    before = session.path.read_bytes()
    was = session.restore(0)
    is_same = session.path.read_bytes().partition(b"\n")[2] == originals
    session.restore(was)
    came_back = session.path.read_bytes() == before
    return [
        fault
        for fault, is_fine in (("restore(0) differs", is_same), ("restoring forward differs", came_back))
        if not is_fine
    ]


def main() -> int:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else KILLS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    figures = measure(kills, seed)
    print(json.dumps({"seed": seed, **figures.to_json()}))
    return 1 if figures.missed() else 0


if __name__ == "__main__":
    sys.exit(main())
