import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from context.session.crashing import Machine, Quick, Recording, State, crashes, laid_out
from ullage.context.session import Draft, Session

pytestmark = pytest.mark.requirement("S2:compact:persist")

NAME = Path("runs") / "a session.jsonl"
KINDS = {"killed": {"durable", "acknowledged"}, "power": {"durable"}}
"""Which promises must be kept after what."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


def begun(folder: Path) -> Path:
    folder.mkdir()
    return folder


def said(number: int) -> dict[str, object]:
    return {"role": "user", "content": f"message {number}\nwith “two” lines"}


class Life:
    """A session whose file operations are written down, with what was promised in between."""

    def __init__(self, root: Path, name: Path) -> None:
        self.files = Recording(root)
        self.session = Session.open(root / name, files=self.files)
        self.lines = [record.line for record in self.session.history(full=True)]
        """Of every message, in order."""

    def say(self, number: int, *, durable: bool = False) -> None:
        messages = [said(len(self.lines) + more) for more in range(number)]
        records = self.session.append(messages, durable=durable)  # pyright: ignore[reportArgumentType]
        self.lines += [record.line for record in records]
        self.promise("durable" if durable else "acknowledged")

    def compact(self, first: int, last: int, *kept: int, say: str = "summary") -> None:
        records = self.session.records
        summary = Draft(message={"role": "user", "content": say}, kind="summary")
        self.session.replace(first, last, [summary, *(records[at] for at in kept)], snapshot=records)
        self.promise("durable")

    def promise(self, kind: str) -> None:
        self.files.note(kind, len(self.lines))


def eventful(root: Path) -> Life:
    life = Life(root, NAME)
    life.say(2, durable=True)
    life.say(3)
    life.compact(0, 4, 2)
    life.say(1, durable=True)
    life.say(1)
    life.compact(0, 5, 3, say="a second summary")
    life.say(1)
    life.session.restore(0)
    life.promise("durable")
    life.say(1)
    life.session.restore(2)
    life.promise("durable")
    life.say(1)
    life.session.flush()
    life.promise("durable")
    return life


def promised(life: Life, done: int, kinds: set[str]) -> int:
    """How many messages must be there when so many operations are done."""
    return max((int(str(values[0])) for kind, values in life.files.log[:done] if kind in kinds), default=0)


def check(root: Path, name: Path, lines: list[bytes], least: int) -> None:
    """Nothing promised is lost, nothing is half, and every earlier state can be had, without anybody's help."""
    session = Session.open(root / name, files=Quick())
    found = [record.line for record in session.history(full=True)]
    assert found == lines[: len(found)]
    assert len(found) >= least
    assert session.verify().faults == ()
    check_restoring(session, b"".join(found))
    more = session.append([{"role": "user", "content": "life goes on"}])
    assert [record.line for record in session.history(full=True)] == [*found, more[0].line]
    assert not list(root.rglob("*.tmp"))


def check_restoring(session: Session, originals: bytes) -> None:
    before = session.path.read_bytes()
    was = session.restore(0)
    header, _, rest = session.path.read_bytes().partition(b"\n")
    assert rest == originals
    assert b'"type":"session"' in header
    session.restore(was)
    assert session.path.read_bytes() == before


def run_through(found: Iterable[tuple[int, str, State]], life: Life, root: Path, *, already: dict[str, int]) -> int:
    """Checks every state that may be found; `already` is what was promised before. Says how many there were."""
    checked = dict[tuple[State, int], None]()
    for done, kind, state in found:
        least = max(already[kind], promised(life, done, KINDS[kind]))
        checked[state, least] = None
    for number, (state, least) in enumerate(checked):
        folder = root / str(number)
        laid_out(state, folder)
        check(folder, NAME, life.lines, least)
    return len(checked)


@pytest.mark.requirement("S2:compact:persist")
def test_a_session_survives_a_kill_at_every_byte_and_a_power_cut_at_every_operation(root: Path):
    life = eventful(begun(root / "life"))
    machine = Machine()
    states = run_through(crashes(life.files.log, machine), life, root, already={"killed": 0, "power": 0})
    assert states > 300
    on_disk = {str(path.relative_to(root / "life")): path for path in (root / "life").rglob("*")}
    assert dict(machine.killed()).keys() == {name for name in on_disk if not name.endswith(".lock")}


@pytest.mark.requirement("S2:compact:persist")
def test_whoever_comes_after_a_killed_process_makes_durable_what_that_one_left_open(root: Path):
    first = Life(begun(root / "life"), NAME)
    first.say(2, durable=True)
    first.say(1)
    first.compact(0, 2)
    log = first.files.log
    cuts = [done for done, (kind, _) in enumerate(log, start=1) if kind == "replace"]
    assert len(cuts) == 3
    for cut in cuts:
        folder = root / f"after {cut}"
        machine = Machine()
        for operation in log[:cut]:
            machine.do(operation)
        laid_out(machine.killed(), folder)
        second = Life(folder, NAME)
        second.say(1, durable=True)
        already = {kind: promised(first, cut, KINDS[kind]) for kind in KINDS}
        assert run_through(crashes(second.files.log, machine), second, begun(root / f"states {cut}"), already=already)


@pytest.mark.requirement("S2:compact:persist")
def test_mending_itself_may_be_interrupted_anywhere(root: Path):
    life = Life(begun(root / "life"), NAME)
    life.say(4, durable=True)
    header, *lines = life.session.path.read_bytes().splitlines(keepends=True)
    damaged = b"".join([header, lines[0], b"not a line\n", *lines[1:], b'{"v":1,"seq":5,"id'])
    life.session.path.write_bytes(damaged)
    machine = Machine.holding({str(NAME): damaged}, folders=("runs",))
    mended = Life(root / "life", NAME)
    mended.lines = life.lines
    assert len(mended.session.notes) == 2
    mended.say(1, durable=True)
    assert run_through(crashes(mended.files.log, machine), mended, root, already={"killed": 4, "power": 4})
