"""Every state in which a machine may stop: a model of a disk that is fed with the file operations of a session.

A killed process leaves what the kernel has seen, the last write cut anywhere. A power cut leaves what was made durable,
and of everything later any part: names without their data, data without their names, halves, and zeros.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, combinations
from pathlib import Path

from ullage.context.session import Files

Operation = tuple[str, tuple[object, ...]]
_PROMISES = frozenset({"acknowledged", "durable"})
"""What stands in a log besides operations: how many messages must be there from now on."""


class Quick(Files):
    """The disk without waiting for it."""

    def sync(self, path: Path) -> None:
        assert path.exists()

    def sync_folder(self, path: Path) -> None:
        assert path.is_dir()


class Recording(Quick):
    """Writes down every operation that changes something, paths from the root on."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log: list[Operation] = []

    def note(self, kind: str, *values: object) -> None:
        self.log.append((kind, tuple(self._short(value) for value in values)))

    def _short(self, value: object) -> object:
        return value.relative_to(self.root) if isinstance(value, Path) else value

    def make_folder(self, path: Path) -> None:
        if not path.exists():
            self.note("make_folder", path)
        super().make_folder(path)

    def create(self, path: Path, data: bytes, mode: int = 0o600) -> None:
        self.note("create", path)
        self.note("write", path, data)
        super().create(path, data, mode)

    def append(self, path: Path, data: bytes, size: int) -> None:
        self.note("write", path, data)
        super().append(path, data, size)

    def sync(self, path: Path) -> None:
        super().sync(path)
        self.note("sync", path)

    def sync_folder(self, path: Path) -> None:
        super().sync_folder(path)
        self.note("sync_folder", path)

    def replace(self, source: Path, target: Path) -> None:
        self.note("replace", source, target)
        super().replace(source, target)

    def remove(self, path: Path) -> None:
        if path.exists():
            self.note("remove", path)
        super().remove(path)


@dataclass(slots=True)
class _Inode:
    data: bytes = b""
    durable: bytes = b""
    folder: bool = False


State = tuple[tuple[str, bytes | None], ...]
"""Paths and what stands there; None for a folder."""
_Name = tuple[str, Path, _Inode | None]


@dataclass(slots=True)
class Machine:
    """A disk with what the kernel has seen and what would survive."""

    names: dict[Path, _Inode] = field(default_factory=dict[Path, _Inode])
    settled: dict[Path, _Inode] = field(default_factory=dict[Path, _Inode])
    pending: list[tuple[_Name, ...]] = field(default_factory=list[tuple[_Name, ...]])
    """Changes of names that are not durable yet, each all or nothing."""

    @classmethod
    def holding(cls, files: dict[str, bytes], folders: tuple[str, ...]) -> "Machine":
        """One on which these are durable."""
        names = {Path(name): _Inode(folder=True) for name in folders}
        names |= {Path(name): _Inode(data, data) for name, data in files.items()}
        return cls(names=dict(names), settled=dict(names))

    def do(self, operation: Operation) -> None:
        kind, values = operation
        if kind not in _PROMISES:
            getattr(self, f"_{kind}")(*values)

    def killed(self) -> State:
        return _state({path: None if node.folder else node.data for path, node in self.names.items()})

    def without_power(self) -> Iterator[State]:
        """Any part of what is not durable, and each way in which unsaved data may be there."""
        for chosen in chain.from_iterable(
            combinations(self.pending, number) for number in range(len(self.pending) + 1)
        ):
            names = dict(self.settled)
            for change in chosen:
                _apply(names, change)
            for left in _LEFT:
                yield _state({path: None if node.folder else left(node) for path, node in _reachable(names).items()})

    def _rename(self, *change: _Name) -> None:
        _apply(self.names, change)
        self.pending.append(change)

    def _make_folder(self, path: Path) -> None:
        self._rename(("put", path, _Inode(folder=True)))

    def _create(self, path: Path) -> None:
        self._rename(("put", path, _Inode()))

    def _write(self, path: Path, data: bytes) -> None:
        self.names[path].data += data

    def _sync(self, path: Path) -> None:
        self.names[path].durable = self.names[path].data

    def _sync_folder(self, folder: Path) -> None:
        done = [change for change in self.pending if change[0][1].parent == folder]
        self.pending = [change for change in self.pending if change not in done]
        for change in done:
            _apply(self.settled, change)

    def _replace(self, source: Path, target: Path) -> None:
        self._rename(("drop", source, None), ("put", target, self.names[source]))

    def _remove(self, path: Path) -> None:
        self._rename(("drop", path, None))


def _apply(names: dict[Path, _Inode], change: tuple[_Name, ...]) -> None:
    for kind, path, node in change:
        if kind == "put" and node is not None:
            names[path] = node
        else:
            names.pop(path, None)


def _reachable(names: dict[Path, _Inode]) -> dict[Path, _Inode]:
    return {path: node for path, node in names.items() if all(up in names for up in path.parents[:-1])}


def _half(node: _Inode) -> bytes:
    return node.data[: (len(node.durable) + len(node.data)) // 2]


_LEFT = (
    lambda node: node.durable,
    lambda node: node.data,
    _half,
    lambda node: node.durable + bytes(len(node.data) - len(node.durable)),
)
"""Nothing of what was not durable, all of it, half of it, and zeros in its place."""


def _state(found: dict[Path, bytes | None]) -> State:
    return tuple(sorted((str(path), data) for path, data in found.items()))


def splits(data: bytes) -> list[int]:
    """Where a write may be cut: near its ends, in its middle and around every line break."""
    breaks = [at + 1 for at, byte in enumerate(data) if byte == 0x0A]
    near = (0, 1, len(data) // 2, len(data) - 1, *breaks, *(at - 1 for at in breaks), *(at + 1 for at in breaks))
    return sorted({at for at in near if 0 <= at < len(data)})


def crashes(log: list[Operation], machine: Machine) -> Iterator[tuple[int, str, State]]:
    """How many operations were done, what happened, and what is left."""
    for done, operation in enumerate(log):
        yield from ((done, kind, state) for kind, state in dict.fromkeys(_before(machine, operation)))
        machine.do(operation)
    yield from ((len(log), kind, state) for kind, state in dict.fromkeys(_now(machine)))


def _now(machine: Machine) -> Iterator[tuple[str, State]]:
    yield "killed", machine.killed()
    yield from (("power", state) for state in machine.without_power())


def _before(machine: Machine, operation: Operation) -> Iterator[tuple[str, State]]:
    """And in the midst of it, where it is a write."""
    yield from _now(machine)
    if operation[0] == "write":
        path, data = operation[1]
        assert isinstance(path, Path)
        assert isinstance(data, bytes)
        node = machine.names[path]
        before = node.data
        for at in splits(data):
            node.data = before + data[:at]
            yield "killed", machine.killed()
        node.data = before


def laid_out(state: State, root: Path) -> None:
    """Makes a folder what a crash left."""
    root.mkdir()
    for name, data in state:
        path = root / name
        if data is None:
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(data)
