"""A month of made-up use, for the dashboard's tests and pictures: three programs, four servers, two principals."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from ullage.ledger import Entry, ModelUse
from ullage.ledger.rows import write_entries
from ullage.models import Usage
from ullage.store import Database
from upstreams import scripted, tool

SERVERS = {
    "github": "list_issues create_issue get_pull_request list_commits search_code merge_pull_request get_file_contents "
    "create_branch list_releases add_comment",
    "notion": "search_pages get_page create_page update_page query_database append_blocks",
    "kubernetes": "pods_list pods_log deployments_list events_list nodes_top resources_get",
    "browser": "navigate click fill_form take_screenshot read_console wait_for evaluate",
}
_USED = {
    "github": (("list_issues", 5200, 1400), ("get_file_contents", 9100, 2000), ("search_code", 7600, 1900)),
    "notion": (("query_database", 6400, 1600), ("get_page", 3900, 1500)),
    "kubernetes": (("pods_log", 21_000, 2000), ("pods_list", 1500, 1500)),
}
_MODELS = (("claude-sonnet-5", "claude-code", "3", "15"), ("gpt-5.3-codex", "codex", "1.25", "10"))
_PROJECTS = ("/home/ada/orders", "/home/ada/website", "/home/ada/infra")
_TEXTS = ("title", "body", "labels", "assignee", "milestone", "state", "since", "page", "per_page", "sort", "branch")


def servers() -> dict[str, dict[str, Any]]:
    """Settings of four scripted servers."""
    found = dict[str, dict[str, Any]]()
    for number, (name, words) in enumerate(SERVERS.items()):
        tools = [_tool(name, one, number + place) for place, one in enumerate(words.split())]
        found[name] = scripted(*tools)
    return found


def _tool(server: str, name: str, number: int) -> dict[str, Any]:
    said = name.replace("_", " ")
    properties = {
        text: {"type": "string", "description": f"The {text.replace('_', ' ')} that {said} of {server} goes by."}
        for text in _TEXTS[: 3 + number % 8]
    }
    is_reading = name.split("_", maxsplit=1)[0] in (
        "list",
        "get",
        "search",
        "query",
        "pods",
        "nodes",
        "events",
        "read",
        "resources",
    )
    return tool(
        name,
        f"{said.capitalize()} in {server}. Returns what matches, newest first, a page at a time.",
        inputSchema={"type": "object", "properties": properties},
        annotations={"readOnlyHint": is_reading},
    )


def entries(now: datetime, principal: str = "ada", *, days: int = 30, seed: int = 7) -> Iterator[Entry]:
    """Yield a month of entries that ends at `now`."""
    random = Random(seed)
    for back in range(days):
        date = now - timedelta(days=days - 1 - back)
        if date.weekday() >= 5 and random.random() < 0.7:
            continue
        for number in range(random.randint(1, 3)):
            start = date - timedelta(hours=3 * (number + 1), minutes=random.randint(0, 59))
            model, client, price, answer = _MODELS[(back + number) % 2]
            about: dict[str, Any] = {"principal": principal, "client": client}
            session = f"{back:02d}{number}{random.getrandbits(64):016x}-{client}"
            yield from _calls(random, start, session, (model, Decimal(price), Decimal(answer)), about)
            yield from _served(random, start, f"stdio-{session[:12]}", about)
    yield from _delegated(random, now, principal)


def _calls(
    random: Random, start: datetime, session: str, model: tuple[str, Decimal, Decimal], about: dict[str, Any]
) -> Iterator[Entry]:
    name, price, answer = model
    project = random.choice(_PROJECTS)
    window, time = 16_000 + random.randint(0, 4000), start
    for _ in range(random.randint(30, 70)):
        time += timedelta(seconds=random.randint(20, 75))
        growth = random.randint(900, 6500)
        window = 30_000 + random.randint(0, 8000) if window + growth > 158_000 else window + growth
        is_missed = random.random() < 0.03
        cached = 0 if is_missed else max(0, window - growth)
        output = random.randint(150, 1400)
        usage = Usage(input=window, output=output, cache_read=cached, cache_write=0, reasoning=output // 4)
        paid = ((window - cached) * price + cached * price / 10 + output * answer) / 1_000_000
        missed = window - growth if is_missed else 0
        use = ModelUse(
            usage=usage, dollars=paid, source="log", missed_tokens=missed,
            missed_dollars=missed * price * Decimal("0.9") / 1_000_000 if missed else None,
        )  # fmt: skip
        yield Entry(
            time=time,
            kind="model",
            session=session,
            project=project,
            model=name,
            tokens=window + output,
            use=use,
            **about,
        )


def _served(random: Random, start: datetime, session: str, about: dict[str, Any]) -> Iterator[Entry]:
    time, replies = start + timedelta(seconds=50), 0
    for _ in range(random.randint(8, 22)):
        time += timedelta(seconds=random.randint(40, 190))
        if random.random() < 0.4:
            replies += 380
            yield Entry(time=time, kind="search", session=session, tool="find_tool", tokens=380, saved_tokens=-380,
                        milliseconds=4.0, **about)  # fmt: skip
        server = random.choices(tuple(_USED), (6, 2, 3))[0]
        name, before, after = random.choice(_USED[server])
        size = int(before * random.uniform(0.4, 1.8))
        passed = min(size, after)
        yield Entry(
            time=time, kind="result", session=session, server=server, tool=name, tokens=passed, baseline_tokens=size,
            saved_tokens=size - passed, milliseconds=random.lognormvariate(5, 0.7), is_error=random.random() < 0.04,
            **about,
        )  # fmt: skip
        if size > 3 * after and random.random() < 0.5:
            yield Entry(time=time, kind="page", session=session, server=server, tool=name, tokens=900,
                        saved_tokens=-900, milliseconds=2.0, **about)  # fmt: skip
        carried = 640 + replies
        yield Entry(
            time=time + timedelta(seconds=1), kind="definitions", session=session, tokens=carried, baseline_tokens=9400,
            saved_tokens=9400 - carried, detail={"requests": 1, "replies": replies}, **about,
        )  # fmt: skip


def _delegated(random: Random, now: datetime, principal: str) -> Iterator[Entry]:
    for number in range(60):
        model, price = (("claude-haiku-4-5", "1"), ("gpt-5-mini", "0.25"), ("mistral-local", None))[number % 3]
        size = random.randint(400, 9000)
        dollars = None if price is None else size * Decimal(price) / 1_000_000
        use = ModelUse(usage=Usage(input=size, output=size // 5), dollars=dollars, key=f"{principal}-{number}")
        yield Entry(
            time=now - timedelta(hours=9 * number + 1), kind="model", principal=principal, session="run",
            client="ullage", server="provider", model=model, tokens=size, is_error=number % 20 == 0, use=use,
            milliseconds=random.lognormvariate(7 + number % 3 / 3, 0.5),
        )  # fmt: skip


def fill(database: Database, *found: Entry) -> None:
    """Write entries and their sums."""
    for start in range(0, len(found), 500):
        database.write(lambda connection, start=start: write_entries(connection, found[start : start + 500]))


def fill_month(database: Database, principal: str, *, now: datetime | None = None, seed: int = 7) -> None:
    """Write a month of a principal's use."""
    fill(database, *entries(now or datetime.now(UTC), principal, seed=seed))
