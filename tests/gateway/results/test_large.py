"""What becomes of a result of many megabytes?"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.results.bench_of_results import ONWARD, Bench, handle, records, said, text
from store.databases import opened
from ullage.gateway.results import ResultRules, Vault

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("U:budget")]

RULES = ResultRules(budget=2_000)


def _array(characters: int) -> tuple[str, int]:
    one = json.dumps(records(200, words=9))
    times = characters // len(one) + 1
    whole = [
        {**record, "id": turn * 200 + place} for turn in range(times) for place, record in enumerate(json.loads(one))
    ]
    return json.dumps(whole), len(whole)


@pytest.mark.requirement("U:budget")
async def test_of_a_megabyte_the_head_is_shown_and_every_record_can_be_reached(tmp_path: Path):
    array, count = _array(1_000_000)
    with opened(str(tmp_path / "ullage.db")) as database:
        bench = Bench(said(array), RULES, Vault(database))
        reply = await bench.call()
        assert 1_900 < bench.weight(reply) <= 2_000
        assert f" of {count} records shown" in text(reply)
        reached = list[int]()
        async for page in bench.pages(handle(reply), max_tokens=20_000):
            reached += [int(line.split(",")[0]) for line in page.splitlines()[1:-1]]
    assert reached == list(range(count))


_SCRIPT = """
import anyio, json, resource, sys, threading, time
from pathlib import Path
from gateway.results.test_large import RULES, _array
from gateway.results.bench_of_results import Bench, ONWARD, handle, said, text
from store.databases import opened
from ullage.gateway.results import Vault

most = 0.0

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6

def watch():
    global most
    while True:
        most = max(most, resident())
        time.sleep(0.01)

threading.Thread(target=watch, daemon=True).start()

async def main(folder):
    await Bench(said("word " * 9_000), RULES).call()
    array = Path(folder, "array.json").read_text(encoding="utf-8")
    global most
    count, before = int(Path(folder, "count").read_text()), resident()
    most = before
    with opened(str(Path(folder, "ullage.db"))) as database:
        bench = Bench(said(array), RULES, Vault(database))
        longest = 0.0
        async def live():
            nonlocal longest
            while True:
                start = time.perf_counter()
                await anyio.sleep(0.005)
                longest = max(longest, time.perf_counter() - start - 0.005)
        began = time.perf_counter()
        async with anyio.create_task_group() as group:
            group.start_soon(live)
            reply = await bench.call()
            group.cancel_scope.cancel()
        held = time.perf_counter() - began
        weight, last, after = bench.weight(reply), text(reply).splitlines()[-1], most
        name, pages, far = handle(reply), list(), 0.0
        for offset in range(0, count, count // 50):
            began = time.perf_counter()
            page = text(await bench.read(name, offset=offset))
            far = max(far, time.perf_counter() - began)
            pages.append([offset, int(page.splitlines()[1].split(",")[0])])
        began = time.perf_counter()
        found = text(await bench.read(name, grep=f'"id": {count - 1},'))
        grepped = time.perf_counter() - began
        print(json.dumps(dict(
            megabytes=len(array) / 1e6, count=count, weight=weight, last=last, held=held, longest=longest, far=far,
            grepped=grepped, found=found, pages=pages, before=before, after=after, read=most,
            file=Path(folder, "ullage.db").stat().st_size / 1e6)))

anyio.run(main, sys.argv[1])
"""


@pytest.mark.heavy
@pytest.mark.requirement("U:budget")
def test_of_fifty_megabytes_every_record_can_be_reached_within_a_few_times_their_memory(tmp_path: Path):
    if not Path("/proc/self/statm").exists():
        pytest.skip("how much memory a process has is read from /proc")
    array, count = _array(50_000_000)
    (tmp_path / "array.json").write_text(array, encoding="utf-8")
    (tmp_path / "count").write_text(str(count))
    tests = str(Path(__file__).parents[2])
    script = f"import sys; sys.path.insert(0, {tests!r})\n{_SCRIPT}"
    run = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    figures = json.loads(run.stdout)
    sys.stderr.write(json.dumps({key: value for key, value in figures.items() if key != "pages"}, indent=1))
    assert figures["weight"] <= 2_000
    assert f" of {count} records shown" in figures["last"]
    assert ONWARD.search(figures["last"])
    assert all(offset == first for offset, first in figures["pages"])
    assert f"\n{count - 1}," in figures["found"]
    assert figures["read"] - figures["before"] < 3 * figures["megabytes"]
