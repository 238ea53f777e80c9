import gc
import json
import weakref

import anyio
import pytest

from ullage.wire import jsonrpc as freeing
from ullage.wire.jsonrpc import free_unused, keep_until_unused


class Leaf:
    """Something whose end can be seen."""


def grown(leaf: object) -> dict:
    rows = [{"id": at, "more": [at]} for at in range(3_000)]
    return {"result": {"rows": rows, "last": [[leaf]]}}


def test_a_value_that_nobody_uses_is_taken_apart_whole():
    leaf = Leaf()
    seen = weakref.ref(leaf)
    todo: list[object] = [grown(leaf)]
    del leaf
    assert free_unused(todo) == []
    assert todo == []
    assert seen() is None


def test_what_is_used_elsewhere_stays_as_it_is():
    value = grown("x")
    rows, last = value["result"]["rows"], value["result"]["last"]
    before = json.dumps([rows, last])
    todo: list[object] = [value]
    del value
    used = free_unused(todo)
    assert len(used) == 2
    assert json.dumps([rows, last]) == before


@pytest.mark.anyio
async def test_a_kept_value_is_freed_after_its_last_use(monkeypatch):
    monkeypatch.setattr(freeing, "_PAUSE", 0.01)
    leaf = Leaf()
    seen = weakref.ref(leaf)
    value = {"rows": [leaf]}
    rows = value["rows"]
    del leaf
    keep_until_unused(value)
    del value
    await anyio.sleep(0.1)
    assert seen() is not None
    assert len(rows) == 1
    gc.disable()
    try:
        del rows
        with anyio.fail_after(10):
            while seen() is not None:
                await anyio.sleep(0.01)
    finally:
        gc.enable()
