from pathlib import Path

import pytest

from ullage.tokens.bpe.room import has_room

MEBIBYTE = 1 << 20


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """With four gibibytes to be had, and no container."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable:    4194304 kB\n", encoding="ascii")
    return tmp_path


def write(machine: Path, **files: str) -> None:
    for name, text in files.items():
        path = machine / "sys" / "fs" / "cgroup" / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")


def test_a_machine_has_what_it_says(machine: Path):
    assert has_room(1000 * MEBIBYTE, root=machine)
    assert not has_room(4097 * MEBIBYTE, root=machine)


def test_a_container_has_what_it_may_have_less_what_it_has(machine: Path):
    write(machine, memory_dot_max=f"{512 * MEBIBYTE}\n", memory_dot_current=f"{200 * MEBIBYTE}\n")
    assert has_room(300 * MEBIBYTE, root=machine)
    assert not has_room(400 * MEBIBYTE, root=machine)


def test_a_container_of_the_older_kind_has_too(machine: Path):
    write(machine, memory__memory_dot_limit_in_bytes="400000000", memory__memory_dot_usage_in_bytes="300000000")
    assert has_room(90_000_000, root=machine)
    assert not has_room(110_000_000, root=machine)


def test_a_container_without_a_limit_has_what_the_machine_has(machine: Path):
    write(machine, memory_dot_max="max\n", memory_dot_current="3000000000\n")
    assert has_room(1000 * MEBIBYTE, root=machine)


def test_a_service_has_no_more_than_the_slice_above_it(machine: Path):
    (machine / "proc" / "self").mkdir()
    (machine / "proc" / "self" / "cgroup").write_text("0::/system.slice/ullage.service\n", encoding="ascii")
    write(machine, system_dot_slice__memory_dot_max="500000000", system_dot_slice__memory_dot_current="300000000")
    below = "system_dot_slice__ullage_dot_service__memory_dot_"
    write(machine, **{f"{below}max": "max", f"{below}current": "100000000"})
    assert has_room(190_000_000, root=machine)
    assert not has_room(210_000_000, root=machine)


def test_where_nobody_says_there_is(tmp_path: Path):
    assert has_room(MEBIBYTE, root=tmp_path)


def test_what_no_address_space_holds_is_not_there(tmp_path: Path):
    assert not has_room(1 << 60, root=tmp_path)
