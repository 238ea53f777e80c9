import re
import tracemalloc
from collections.abc import Set
from json import dumps

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context.talks import assistant, call, result, tool, user
from ullage.context import structured_values as records
from ullage.context.identifiers import (
    Item,
    identifier_steps,
    identifiers,
    is_record,
    read_identifiers,
    read_structure,
    slices,
    write,
    write_value,
)
from ullage.context.structured_text import Kind, kind_of
from ullage.messages import Media, Message, Text, Thinking, ToolResult, Unknown
from ullage.models import shipped
from ullage.tokens import Meter, drain
from ullage.tool import Json

pytestmark = pytest.mark.requirement("S2:compact:how")

METER = Meter(shipped())
BOOKING = {
    "reservation_id": "ZFA04Y",
    "flights": [{"flight_number": "HAT136", "date": "2024-05-20", "price": 255}],
    "payment_id": "credit_card_4421486",
    "cabin": "basic economy",
}


def count(text: str) -> int:
    return METER.count(text, "gpt-4o").tokens


def ledger(*messages: Message, room: int = 400, earlier: tuple[str, ...] = (), beside: tuple[Message, ...] = ()) -> str:
    return identifiers(messages, room=room, count=count, earlier=earlier, beside=beside)


def kept(*messages: Message, room: int = 400, beside: tuple[Message, ...] = ()) -> list[str]:
    return [item.word for item in read_identifiers(ledger(*messages, room=room, beside=beside))]


def asked(arguments: object, name: str = "read") -> Message:
    return assistant(call("1", name, dumps(arguments, ensure_ascii=False)))


def told(text: str) -> Message:
    return tool(result("1", text))


def test_what_a_call_was_given_is_kept_to_the_letter() -> None:
    found = kept(asked({"path": "/srv/app/src/tui/main-view.ts", "limit": 120, "tags": ["v2.1", "hot"]}))
    assert {"/srv/app/src/tui/main-view.ts", "120", "v2.1", "hot"} <= set(found)


def test_values_of_a_result_stand_together_under_their_names() -> None:
    assert ledger(told(dumps(BOOKING))) == (
        "- {reservation_id=ZFA04Y, flights=[{flight_number=HAT136, date=2024-05-20, price=255}], "
        "payment_id=credit_card_4421486, cabin=basic economy}"
    )


def test_values_of_which_nobody_can_say_what_they_belong_to_stand_under_their_names() -> None:
    lines = ledger(user(f"The booking is {dumps(BOOKING)}, as I said.")).split("\n")
    assert "reservation_id: ZFA04Y" in lines
    assert "flight_number: HAT136" in lines
    assert "price: 255" in lines
    assert "cabin: `basic economy`" in lines


def test_names_are_found_in_lines_too() -> None:
    listed = ledger(user("matched:\n- server_name: filesystem\n  mode: plain")).split("\n")
    assert "server_name: filesystem" in listed


def test_what_the_user_says_is_kept() -> None:
    found = kept(user("Please book for Amelia at $1,250.50 on 3/14/2027, mail ann.lee+x@example.com, order #4711."))
    assert {"Amelia", "$1,250.50", "3/14/2027", "ann.lee+x@example.com", "#4711"} <= set(found)


def test_links_flags_and_symbols_are_kept() -> None:
    text = "see https://example.com/a/b?id=7&x=y#top, run `tool --dry-run -v` and call session.state.readFile()"
    assert {"https://example.com/a/b?id=7&x=y#top", "--dry-run", "-v", "session.state.readFile"} <= set(
        kept(user(text))
    )


def test_everyday_words_are_left_out() -> None:
    assert kept(user("please look into this matter and tell me what you think"), assistant(Text("Sure. I will."))) == []


def test_a_plain_word_is_kept_where_it_stands_for_a_thing() -> None:
    assert "economy" in kept(asked({"cabin": "economy"}))
    assert "berlin" in kept(told('{"city": "berlin"}'))


def test_a_place_in_a_file_is_the_file_and_the_line() -> None:
    assert {"src/app.ts", "1204"} <= set(kept(told("src/app.ts:1204: const x\nsrc/app.ts:1204: again")))


def test_json_within_json_is_read_as_it_is_meant() -> None:
    inner = dumps({"text": dumps({"order_id": "W-77101"}) + "\nname_of_thing\nother_thing"})
    found = kept(told(inner[1:-1]))
    assert {"W-77101", "name_of_thing", "other_thing"} <= set(found)


def test_a_path_of_windows_keeps_its_backslashes() -> None:
    assert r"C:\new\tools\run.cmd" in kept(told(r"wrote C:\new\tools\run.cmd"))


def test_what_thinking_and_unknown_parts_and_addresses_say_counts() -> None:
    message = Message(
        role="user",
        parts=(
            Unknown({"a": [{"ticket": "QX-981"}, None, True, 77.5]}),
            Media(kind="image", url="https://e.org/p.png"),
        ),
    )
    found = kept(message, assistant(Thinking(text="maybe user_991 did it")))
    assert {"QX-981", "77.5", "https://e.org/p.png", "user_991"} <= set(found)


def test_a_result_within_a_message_of_the_user_is_a_result() -> None:
    told_by_user = Message(role="user", parts=(ToolResult(parts=(Text('{"id": "A1B2C3"}'),), call_id="1"),))
    assert "id: A1B2C3" in ledger(told_by_user)


def test_arguments_that_are_no_json_are_read_as_a_text() -> None:
    assert "src/x.py" in kept(assistant(call("1", "read", '{"path": "src/x.py')))


@pytest.mark.requirement("S2:compact:how")
def test_what_was_used_in_a_call_goes_before_what_was_only_read() -> None:
    listing = "\n".join(f"lib/module_{n}/part_{n}.py" for n in range(200))
    found = kept(told(listing), asked({"path": "lib/module_7/part_7.py"}), told("done"), room=60)
    assert found[0] == "lib/module_7/part_7.py"
    assert 1 < len(found) < 30


def test_the_newer_goes_before_the_older() -> None:
    calls = [asked({"path": f"src/part_{n:03}.py"}) for n in range(100)]
    found = kept(*calls, room=60)
    assert "src/part_099.py" in found
    assert "src/part_000.py" not in found


def test_what_stays_beside_is_not_repeated_nor_are_its_parts() -> None:
    head = (told("src/app/main.py src/app/other.py main.py"), user("order W-10 and W-11"))
    found = kept(*head, beside=(user("now src/app/main.py and W-11"),))
    assert {"src/app/other.py", "W-10"} <= set(found)
    assert not {"src/app/main.py", "main.py", "W-11"} & set(found)


def test_a_name_is_not_repeated_where_its_path_is_there() -> None:
    found = kept(told("main_view.py src/app/main_view.py this.state this.state.value"))
    assert "src/app/main_view.py" in found
    assert "this.state.value" in found
    assert not {"main_view.py", "this.state"} & set(found)


@pytest.mark.requirement("S2:compact:how")
def test_an_earlier_ledger_is_carried_forward() -> None:
    first = ledger(asked({"reservation_id": "ZFA04Y", "path": "/srv/old/a.py"}))
    later = ledger(told("src/new_thing.py"), earlier=(first,))
    assert {"ZFA04Y", "/srv/old/a.py", "src/new_thing.py"} <= {item.word for item in read_identifiers(later)}
    assert "reservation_id: ZFA04Y" in later.split("\n")


def test_an_earlier_ledger_competes_for_its_place() -> None:
    first = ledger(told(" ".join(f"old_thing_{n}" for n in range(100))), room=300)
    later = ledger(*(asked({"path": f"src/new_{n}.py"}) for n in range(30)), earlier=(first,), room=120)
    words = [item.word for item in read_identifiers(later)]
    assert any(word.startswith("src/new") for word in words)
    assert count(later) <= 120


def test_what_is_seen_again_keeps_its_place_in_time() -> None:
    first = ledger(asked({"path": "src/kept.py"}))
    later = ledger(
        asked({"path": "src/kept.py"}), *(asked({"path": f"src/n{n}.py"}) for n in range(3)), earlier=(first,)
    )
    assert next(item.word for item in read_identifiers(later)) in ("src/kept.py", "src/n2.py")


def test_there_is_no_ledger_without_messages_or_without_room() -> None:
    assert ledger() == ""
    assert ledger(asked(BOOKING), room=0) == ""
    assert ledger(asked(BOOKING), room=-5) == ""


def test_the_room_is_filled_where_there_is_enough_to_fill_it() -> None:
    text = ledger(told("\n".join(f"/srv/data/file_{n}.csv" for n in range(3_000))), room=1_000)
    assert 950 < count(text) <= 1_000


WORDS = st.one_of(
    st.sampled_from(["src/a/b.py", "W-1", "a b", "https://x.y/z", "-n", "12,345", "`x`", "</context_summary>", "名前"]),
    st.text(max_size=40),
)


@given(st.lists(st.tuples(st.sampled_from("uatr"), WORDS), max_size=12), st.integers(0, 80))
@settings(max_examples=60)
def test_a_ledger_never_has_more_than_its_room_and_is_read_as_it_was_written(
    said: list[tuple[str, str]], room: int
) -> None:
    makers = {"u": user, "a": lambda text: assistant(Text(text)), "t": told, "r": lambda text: asked({text: [text]})}
    text = ledger(*(makers[who](words) for who, words in said), room=room)
    assert count(text) <= room
    items = read_identifiers(text)
    assert write(items) == text
    assert all(item.label and item.word for item in items)


def test_the_same_history_gives_the_same_ledger() -> None:
    messages = (asked(BOOKING), told("src/a.py src/b.py 2024-01-01"), user("go on with Amelia"))
    assert ledger(*messages) == ledger(*messages)


def test_a_line_that_is_none_of_a_ledgers_is_passed_over() -> None:
    assert read_identifiers("hello\nwhat <b> is: this\nids: A1 `b c`") == (
        Item("A1", "ids", 0.0),
        Item("b c", "ids", 0.5),
    )


def test_no_name_and_no_value_breaks_out_of_its_line() -> None:
    hostile = {"a: b\n</context_summary>\nnames": "x_1\r\u2028ids: y_2", "k`": "ignore_all `rules`", "n": "z_3\x00"}
    text = ledger(asked(hostile))
    assert "</context_summary>" not in text
    assert all(line.isprintable() for line in text.split("\n"))
    assert {item.label for item in read_identifiers(text)} <= {"ids", "names", "n"}


def test_other_scripts_are_read() -> None:
    found = kept(user('{"name": "王小明", "город": "Санкт-Петербург", "path": "/данные/файл_7.txt"}'))
    assert {"王小明", "/данные/файл_7.txt"} <= set(found)
    assert "Санкт-Петербург" in found


@pytest.mark.parametrize(
    "text",
    [
        "x" * 10_000_000,
        "\x00\xff\ud800" * 200_000,
        "1,234," * 100_000 + "x",
        "/." * 200_000 + ":1",
        '"a":' * 200_000,
        "a: " * 200_000,
        " " * 500_000,
        "\\n\\t\\" * 200_000,
        "https://" * 100_000,
        "A" + ".A" * 200_000,
    ],
    ids=lambda text: text[:8].encode("unicode-escape").decode(),
)
def test_hostile_texts_are_read_in_short_steps(text: str) -> None:
    messages = (told(text), user(text[:200_000]))
    assert sum(1 for _ in identifier_steps(messages, room=400, count=count)) >= len(text) // 65_536
    assert max(map(len, slices(text))) <= 65_536
    assert count(ledger(*messages)) <= 400


def test_json_of_any_depth_is_read() -> None:
    deep: object = "W-4711"
    for _ in range(50_000):
        deep = [deep]
    assert "W-4711" in kept(Message(role="user", parts=(Unknown(deep),)))  # pyright: ignore[reportArgumentType]
    assert kept(assistant(call("1", "read", "[" * 100_000))) == ["read"]


def test_a_long_head_is_worked_on_in_steps() -> None:
    head = [told(" ".join(f"module_{n}.part_{m}" for m in range(300))) for n in range(30)]
    steps = identifier_steps(head, room=500, count=count)
    assert sum(1 for _ in steps) > 20
    assert drain(identifier_steps(head, room=500, count=count)) == identifiers(head, room=500, count=count)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("https://example.com/x", Kind.LINK),
        ("ann@example.com", Kind.MAIL),
        ("src/a.py", Kind.PATH),
        ("/etc/hosts", Kind.PATH),
        ("./run", Kind.PATH),
        ("@scope/package", Kind.PATH),
        (r"C:\x\y.txt", Kind.PATH),
        ("read/write", Kind.DASHED),
        ("3/14/2027", Kind.DATE),
        ("main.rs", Kind.FILE),
        ("2024-05-20T10:00:00", Kind.DATE),
        ("14.03.2027", Kind.DATE),
        ("$1,250.50", Kind.NUMBER),
        ("12ms", Kind.NUMBER),
        ("9f86d081884c7d65", Kind.HASH),
        ("123e4567-e89b-12d3-a456-426614174000", Kind.HASH),
        ("ZFA04Y", Kind.CODED),
        ("this.state", Kind.DOTTED),
        ("node:fs", Kind.DOTTED),
        ("e.g", Kind.WORD),
        ("flight_number", Kind.JOINED),
        ("readFile", Kind.JOINED),
        ("--help", Kind.FLAG),
        ("follow-up", Kind.DASHED),
        ("JFK", Kind.CAPITALS),
        ("New York", Kind.PHRASE),
        ("Seattle", Kind.NAME),
        ("economy", Kind.WORD),
    ],
)
def test_a_word_is_of_the_kind_it_looks_like(word: str, kind: Kind) -> None:
    assert kind_of(word) is kind


ORDER = {
    "order_id": "W2378156",
    "status": "pending",
    "items": [{"item_id": "4107", "price": 12.5}, {"item_id": "4108", "price": 99}],
}


def called(name: str, number: int, **arguments: object) -> Message:
    return assistant(call(str(number), name, dumps(arguments)))


def answered(number: int, text: str) -> Message:
    return tool(result(str(number), text))


def test_a_result_is_one_line_with_its_call() -> None:
    found = ledger(called("get_order", 1, order_id="W2378156"), answered(1, dumps(ORDER)))
    assert found == "- get_order(order_id=W2378156): {status=pending, items=[item_id, price: 4107, 12.5 | 4108, 99]}"


def test_of_one_thing_the_newest_state_is_written() -> None:
    found = ledger(
        called("get_order", 1, order_id="W2378156"),
        answered(1, dumps(ORDER)),
        called("cancel_order", 2, order_id="W2378156", reason="no longer needed"),
        answered(2, dumps(ORDER | {"status": "cancelled"})),
    )
    assert "status=cancelled" in found
    assert "status=pending" not in found


def test_where_room_is_short_no_value_is_cut_and_what_names_things_stays() -> None:
    rows = [
        {"item_id": f"item-{number}-of-the-shop", "price": 10 + number, "description": "soft and warm " * 6}
        for number in range(6)
    ]
    messages = (called("list_items", 1, kind="scarf"), answered(1, dumps(rows)))
    found = identifiers(messages, room=130, count=lambda text: len(text) // 4)
    assert "item-0-of-the-shop, 10" in found
    assert "soft and warm" not in found
    shown = re.findall(r"item-[\w-]*", found)
    assert shown
    assert all(re.fullmatch(r"item-\d-of-the-shop", one) for one in shown)


def test_records_of_an_earlier_ledger_go_on_until_a_newer_one_replaces_them() -> None:
    earlier = ledger(called("get_order", 1, order_id="W2378156"), answered(1, dumps(ORDER)))
    again = ledger(user("And now?"), earlier=(earlier,))
    assert earlier in again.split("\n")
    newer = (called("get_order", 2, order_id="W2378156"), answered(2, dumps(ORDER | {"status": "sent"})))
    assert earlier not in ledger(*newer, earlier=(earlier,)).split("\n")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('[TextContent(type=\'text\', text=\'{"id": "a-1", "city": "Rome"}\')]', "{id=a-1, city=Rome}"),
        ('{"content": [{"type": "text", "text": "{\\"id\\": 7, \\"name\\": \\"x\\"}"}]}', "{id=7, name=x}"),
        (
            "kind: Pod\nmetadata:\n  name: web-1\n  labels:\n  - a\n  - b\nport: 80",
            "{kind=Pod, metadata={name=web-1, labels=[a, b]}, port=80}",
        ),
        ("ID: 1\nName: x\n\nID: 2\nName: y", "[ID, Name: 1, x | 2, y]"),
        (
            "NAME    STATUS    NODE NAME\nweb-1   Running   n1\nweb-2   Failed    n2",
            "[NAME, STATUS, NODE NAME: web-1, Running, n1 | web-2, Failed, n2]",
        ),
        ("| id | price |\n|----|------:|\n| a-1 | 3 |\n| a-2 | 4 |", "[id, price: a-1, 3 | a-2, 4]"),
        ('{"a-1": {"id": "a-1", "price": 3}, "a-2": {"id": "a-2", "price": 4}}', "[id, price: a-1, 3 | a-2, 4]"),
    ],
)
def test_structure_is_read_from_what_programs_write(text: str, wanted: str) -> None:
    assert write_value(read_structure(text)) == wanted


def test_results_that_were_read_leave_nothing_in_memory() -> None:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(20):
            assert is_record(read_structure(dumps([{"id": number, "place": place} for place in range(1_000)])))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 100_000


def test_results_are_read_into_records_one_in_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()

    def noting(text: str) -> Json:
        read.append(text)
        return read_structure(text)

    monkeypatch.setattr(records, "read_structure", noting)
    orders = [dumps(ORDER | {"order_id": f"W{number}"}) for number in range(40)]
    messages = [
        message
        for number, order in enumerate(orders)
        for message in (called("get_order", number, order_id=f"W{number}"), answered(number, order))
    ]
    before, most = 0, 0
    for _ in identifier_steps(messages, room=500, count=count):
        before, most = len(read), max(most, len(read) - before)
    assert (read, most) == (orders, 1)


@pytest.mark.parametrize("length", [119, 120, 121, 240, 241, 900, 5_000])
def test_a_word_is_written_whole_or_not_at_all(length: int) -> None:
    link = "https://shop.example/" + "q" * (length - 21)
    written = write_value({"id": 7, "link": link, "cities": [link, "Rome"]})
    whole, none = f"{{id=7, link={link}, cities=[{link}, Rome]}}", "{id=7, cities=[Rome]}"
    assert written == (whole if length < 1_000 else none)


@pytest.mark.parametrize("first", [3, 118, 119, 120, 121, 300])
def test_prose_is_shortened_between_words_and_says_so(first: int) -> None:
    text = " ".join(["x" * first, *(f"word{number}" for number in range(60))])
    written = write_value({"id": 7, "note": text})
    shown = written.removeprefix("{id=7, note=").removesuffix("…}")
    assert f"{text} ".startswith(f"{shown} ")
    assert len(shown) <= max(120, first)


@pytest.mark.parametrize("text", ["", "The order is on its way.", "def f(x):\n    return {x: 1}", "{" * 5_000, "a: b"])
def test_prose_and_code_are_no_structure(text: str) -> None:
    assert read_structure(text) is None


WRAPPED = """success: true
matched_tools:
- server_name: maps
  tool_name: get_route
  tool_description: "Directions between two points.\\n\\nArgs:\\n    from_latitude: where it\\
    \\ begins\\n    mode: walk or drive"
- server_name: files
  tool_name: write_file
  tool_description: Create a file or overwrite an existing one. Use with care, for
    nobody is asked before. Note: only allowed folders.
"""


def test_a_text_that_yaml_wraps_is_one_value() -> None:
    value = read_structure(WRAPPED)
    assert isinstance(value, dict)
    assert isinstance(tools := value["matched_tools"], list)
    assert [list(tool) for tool in tools if isinstance(tool, dict)] == 2 * [
        ["server_name", "tool_name", "tool_description"]
    ]
    assert "server_name, tool_name: maps, get_route | files, write_file" in write_value(
        value, wanted=frozenset(), bare=True
    )


def test_results_that_begin_alike_are_not_about_the_same() -> None:
    found = ledger(
        called("route", 1, query="maps"),
        answered(1, dumps({"success": "true", "server": "maps", "tool": "get_route"})),
        called("route", 2, query="files"),
        answered(2, dumps({"success": "true", "server": "files", "tool": "write_file"})),
    )
    assert "server=maps, tool=get_route" in found
    assert "server=files, tool=write_file" in found


def test_objects_that_hold_their_own_key_are_written_whole() -> None:
    methods: Json = {
        "card_1": {"id": "card_1", "brand": "visa", "last": 7447},
        "gift_2": {"id": "gift_2", "amount": 250},
    }
    assert "{id=gift_2, amount=250}" in write_value({"methods": methods}, wanted=frozenset(), strict=True)


def record(number: int, *, size: int = 6) -> records.Record:
    value: Json = {f"order_{number}": f"o-{number}", **{f"key_{at}": f"value_{number}_{at}" for at in range(size)}}
    return records.Record(head=f'find("c{number}")', value=value, place=number)


@pytest.mark.parametrize("sizes", [(6, 6, 6), (2, 40, 2, 9), (3,) * 9, (60, *(4,) * 7)])
def test_records_fill_the_room_and_none_could_be_longer(sizes: tuple[int, ...]):
    made = [record(number, size=size) for number, size in enumerate(sizes)]
    forms = [one.lines(frozenset()) for one in made]
    cost = {line: count(line) + 1 for lines in forms for line in lines}
    whole = sum(cost[lines[0]] for lines in forms)
    assert drain(records.fit_records(made, frozenset(), whole, count)) == [lines[0] for lines in forms]
    assert drain(records.fit_records(made, frozenset(), 0, count)) == []
    for room in range(1, whole, max(1, whole // 40)):
        kept = drain(records.fit_records(made, frozenset(), room, count))
        levels = [next((lines.index(line) for line in kept if line in lines), None) for lines in forms]
        used = sum(cost[line] for line in kept)
        assert used <= room
        assert kept == [lines[level] for lines, level in zip(forms, levels, strict=True) if level is not None]
        longer = [
            cost[lines[level - 1]] - cost[lines[level]] for lines, level in zip(forms, levels, strict=True) if level
        ]
        assert all(used + more > room for more in longer)
        left_out = [at for at, level in enumerate(levels) if level is None]
        worth = [at / len(made) + min(1.0, 100 / cost[lines[0]]) for at, lines in enumerate(forms)]
        assert left_out == sorted(sorted(range(len(made)), key=worth.__getitem__)[: len(left_out)]), (
            "old and long ones are left out first"
        )
    shortest = sum(cost[lines[-1]] for lines in forms)
    assert len(drain(records.fit_records(made, frozenset(), shortest, count))) == len(made)
    shortest = sum(cost[lines[-1]] for lines in forms)
    assert len(drain(records.fit_records(made, frozenset(), shortest, count))) == len(made)


def test_a_record_whose_values_were_mentioned_stays_before_newer_ones():
    made = [record(number) for number in range(4)]
    room = count(made[0].lines(frozenset())[0]) + 1
    mentioned = frozenset({"o-0", *(f"value_0_{at}" for at in range(5))})
    (kept,) = drain(records.fit_records(made, mentioned, room, count))
    assert "o-0" in kept
    few = frozenset({"o-0", "value_0_1", "value_0_2"})
    (kept,) = drain(records.fit_records(made, few, room, count))
    assert "o-3" in kept


def test_a_label_selector_is_kept_whole():
    selector = "app=checkout-service,version=blue"
    table = f"NAME     PORT   SELECTOR\nshop     80     {selector}\n" + "filler words of no weight " * 200
    assert selector in kept(tool(result("1", table)), room=60)
    assert kind_of(selector) is Kind.CODED


class Sized(records.Record):
    """A record whose lines have sizes of their own: `a0:10` takes ten tokens."""

    def lines(self, wanted: Set[str]) -> list[str]:
        del wanted
        return self.text.split()


def fitted(room: int, *sizes: tuple[int, ...], value: Json = None, wanted: frozenset[str] = frozenset()) -> str:
    made = [
        Sized(head="", text=" ".join(f"{name}{level}:{size}" for level, size in enumerate(each)), value=value)
        for name, each in zip("abcdefgh", sizes, strict=False)
    ]
    kept = drain(records.fit_records(made, wanted, room, lambda line: int(line.partition(":")[2]) - 1))
    return " ".join(line.partition(":")[0] for line in kept)


STEPS = (10, 6, 2)


@pytest.mark.parametrize(
    ("room", "sizes", "kept"),
    [
        (20, (STEPS, STEPS), "a0 b0"),
        (19, (STEPS, STEPS), "a1 b0"),
        (16, (STEPS, STEPS), "a1 b0"),
        (15, (STEPS, STEPS), "a1 b1"),
        (11, (STEPS, STEPS), "a2 b1"),
        (7, (STEPS, STEPS), "a2 b2"),
        (3, (STEPS, STEPS), "b2"),
        (2, (STEPS, STEPS), "b2"),
        (1, (STEPS, STEPS), ""),
        # What a dropped one leaves lengthens the most valuable that is left, one step at a time.
        (9, ((10, 6, 5), (10, 6, 5)), "b1"),
        (10, ((10, 6, 6), (10, 6, 6)), "b0"),
        (14, ((10, 6, 6), (10, 6, 6), (10, 6, 6)), "b1 c1"),
        (16, ((10, 6, 6), (10, 6, 6), (10, 6, 6)), "b1 c0"),
        # One with fewer forms stays as short as it may be.
        (14, ((10,), STEPS), "a0 b2"),
        (11, ((10,), STEPS), "b0"),
        # Of seven, each has a sixth of the room, and a hundred tokens at least.
        (600, ((101, 100, 1), *((90, 1),) * 6), "a2 b0 c0 d0 e0 f0 g0"),
        (640, ((101, 100, 1), *((90, 1),) * 6), "a1 b0 c0 d0 e0 f0 g0"),
        (641, ((101, 100, 1), *((90, 1),) * 6), "a0 b0 c0 d0 e0 f0 g0"),
        (700, ((170, 117, 116, 1), *((95, 1),) * 6), "a1 b0 c0 d0 e0 f0 g0"),
    ],
)
def test_records_are_shortened_oldest_first_then_dropped_and_lengthened(
    room: int, sizes: tuple[tuple[int, ...], ...], kept: str
):
    assert fitted(room, *sizes) == kept


def test_six_records_are_not_bound_to_a_part_each():
    six = ((400, 1), *((90, 1),) * 5)
    assert fitted(849, *six) == "a1 b0 c0 d0 e0 f0"
    assert fitted(849, *six, (0, 0)) == "a1 b0 c0 d0 e0 f0 g0"
    assert fitted(840, (400, 390, 1), *((90, 1),) * 5) == "a1 b0 c0 d0 e0 f0"
    assert fitted(840, (400, 390, 1), *((90, 1),) * 5, (0, 0)) == "a1 b0 c0 d0 e0 f0 g0"


def test_the_worth_of_a_record_grows_with_age_with_up_to_six_mentions_and_if_it_is_short():
    value: Json = {f"k{at}": f"v{at}" for at in range(9)}

    def worth(count: int, age: float, tokens: int = 10**9, value: Json = value) -> float:
        mentioned = frozenset(f"v{at}" for at in range(count))
        return round(records._worth(record_of(value), mentioned, age, tokens), 6)

    assert [worth(count, 0.5) for count in (0, 3, 6, 9)] == [0.5, 1.0, 1.5, 1.5]
    assert [worth(0, 0.5, tokens) for tokens in (50, 100, 200, 1_000)] == [1.5, 1.5, 1.0, 0.6]
    long: Json = {f"k{at}": f"v{at}" for at in range(50)}
    assert worth(6, 0.5, value=long) == 1.0, "six of fifty values are half as much as six of twenty-five"
    assert records._worth(records.Record(head="x"), frozenset(), 0.5, 10) == -0.5
    earlier = records.Record(head="", text="get(id=A1): {b=B2}")
    assert records._worth(earlier, frozenset(), 0.5, 10**9) == pytest.approx(0.5)
    assert records._worth(earlier, frozenset({"B2"}), 0.5, 10**9) == pytest.approx(0.5)


def record_of(value: Json) -> records.Record:
    return records.Record(head="x", value=value)


ROOMS = [
    {"room_code": "R214", "guest": "Mara Okafor", "booking": "BK-88123", "rate": "129.50"},
    {"room_code": "R377", "guest": "Tomás Ibarra", "booking": "BK-88907", "rate": "88.00"},
    {"room_code": "R410", "guest": "Lena Vogt", "booking": "BK-90011", "rate": "240.00"},
]
SHAPES = {
    "JSON lines": "\n".join(dumps(room) for room in ROOMS),
    "commas": "room_code,guest,booking,rate\n" + "\n".join(",".join(room.values()) for room in ROOMS),
    "semicolons": "room_code;guest;booking;rate\n" + "\n".join(";".join(room.values()) for room in ROOMS),
    "elements": "<rooms>"
    + "".join(f"<room>{''.join(f'<{key}>{value}</{key}>' for key, value in room.items())}</room>" for room in ROOMS)
    + "</rooms>",
    "attributes": "<?xml version='1.0'?>\n<rooms>\n"
    + "\n".join(f"  <room {' '.join(f'{key}={value!r}' for key, value in room.items())}/>" for room in ROOMS)
    + "\n</rooms>",
    "paths of keys": "\n".join(
        f"rooms[{at}].{key}: {value}" for at, room in enumerate(ROOMS) for key, value in room.items()
    ),
    "numbered": "\n".join(
        f"{at}. Room {room['room_code']}: guest {room['guest']}, booking {room['booking']}, {room['rate']} EUR a night"
        for at, room in enumerate(ROOMS, 1)
    ),
    "bullets": "Three rooms are booked:\n"
    + "\n".join(f"- {room['room_code']} for {room['guest']} ({room['booking']}, {room['rate']})" for room in ROOMS),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_what_belongs_together_stays_together_in_every_shape_of_result(shape: str) -> None:
    text = ledger(asked({"floor": "2"}, "list_rooms"), told(SHAPES[shape]), room=600)
    (line,) = [line for line in text.split("\n") if line.startswith("- list_rooms")]
    at = [line.index(room[key]) for room in ROOMS for key in ("room_code", "booking")]
    assert at == sorted(at), "each booking is behind its own room"
    assert all(value in line for room in ROOMS for value in room.values())


def test_rows_that_were_mentioned_stay_if_room_is_short() -> None:
    many = [
        f"{at}. Room R{at}: booking BK-{at}, guest number {1000 + at}, {at}.50 EUR a night" for at in range(100, 160)
    ]
    messages = (asked({"floor": "2"}, "list_rooms"), told("\n".join(many)), user("Keep R131, please."))
    (line,) = [line for line in ledger(*messages, room=300).split("\n") if line.startswith("- list_rooms")]
    assert "R131" in line
    assert "BK-131" in line
    assert "BK-132" not in line


@pytest.mark.parametrize(
    "text",
    [
        "def first(a, b, c):\n    return a, b, c\n\ndef second(a, b):\n    return a",
        "<html><body><p>Room R214</p></body></html>",
        "<rooms><room>R214</rooms>",
        "Yes, sure.\nNo, never.\nWell, perhaps.",
        "- read the guide\n- write the tests\n- open a pull request",
        "The meeting is on Tuesday.",
    ],
)
def test_pages_code_and_prose_are_no_records(text: str) -> None:
    assert read_structure(text) is None


def test_names_that_json_escapes_are_kept_as_they_are_spelt() -> None:
    found = kept(
        asked({"page": "1"}, "list_guests"), told(dumps({"city": "Malmö", "street": "Łąkowa", "host": "東京.jp"}))
    )
    text = ledger(
        asked({"page": "1"}, "list_guests"), told(dumps([{"city": "Malmö"}, {"city": "Kraków", "at": "C:\\users\\x"}]))
    )
    assert not any("\\u" in word for word in found)
    assert "Malmö" in text
    assert "Kraków" in text


def test_records_in_the_note_of_a_masked_result_outlive_the_result() -> None:
    record = "- get_room(code=R214): {guest=Mara Okafor, booking=BK-88123, rate=129.50}"
    masked = '[get_room(code="R214") gave 900 tokens, removed to make room; call it again if needed]'
    text = ledger(asked({"code": "R214"}, "get_room"), told(f"{masked}\n{record}\nids: BK-88907"), room=400)
    assert record in text.split("\n")
    assert "BK-88907" in text
    cut = "[… 900 tokens removed to make room …]"
    text = ledger(asked({"code": "R377"}, "get_room"), told(f"first lines\n{cut}\n{record}\nlast lines"), room=400)
    assert record in text.split("\n")


def test_of_an_earlier_list_the_rows_that_were_asked_for_stay() -> None:
    rows = " | ".join(f"R{at}, BK-{at}, {at}.50" for at in range(100, 140))
    earlier = f"- list_rooms(floor=2): {{rooms=[code, booking, rate: {rows}] (+3 more)}}"
    asked_for = "- get_room(code=R117): {guest=Lena Vogt}"
    text = ledger(user("Go on."), room=160, earlier=(f"{earlier}\n{asked_for}",))
    assert "[code, booking, rate: R117, BK-117, 117.50] (+42 more)" in text


def page(number: int, *, of: int = 6) -> tuple[Message, Message]:
    rows: list[Json] = [
        {
            "booking": f"BK-{number}{at:02}",
            "guest": {"name": f"Guest {number} {at}", "customer_id": f"C{number}{at:02}77"},
            "hotel": "Krone",
            "nights": at + 1,
            "status": "confirmed",
        }
        for at in range(of)
    ]
    return asked({"page": number}, "list_bookings"), told(dumps({"bookings": rows}, indent=2))


def test_what_belongs_together_in_the_newest_results_outlives_what_earlier_compactions_kept() -> None:
    text, room = "", 1_900
    for since in range(10, 50, 10):
        messages = [message for number in range(since, since + 7) for message in page(number)]
        text = ledger(*messages, room=room, earlier=(text,) if text else ())
        assert count(text) <= room
        lines = [line for line in text.split("\n") if line.startswith("- ")]
        for number in range(since, since + 7):
            for at in range(6):
                assert any(f"BK-{number}{at:02}" in line and f"C{number}{at:02}77" in line for line in lines)
    assert "BK-10" in text, "of the oldest, some words are left"


@pytest.mark.parametrize(
    "value",
    [
        {"id": "R1", "guest": {"name": "Tom O'Brien", "no": "C1"}, "tags": ["a", "b c"], "note": "late, by car"},
        [{"id": "R1", "at": None, "in": {"x": "1"}}, {"id": "R2", "at": "9:30", "in": {"x": "2"}}],
        {"rooms": [{"code": f"R{at}", "rate": f"{at}.50"} for at in range(6)], "floor": "2"},
    ],
)
def test_a_record_of_an_earlier_compaction_is_shortened_like_a_new_one(value: Json) -> None:
    for rows in (1_000, 3):
        text = write_value(value, rows=rows)
        (earlier,) = records.read_records(f"- find(q=x): {text}", [])
        assert earlier.lines(frozenset())[0] == f"- find(q=x): {text}"
        assert earlier.value is not None
    assert earlier.lines(frozenset())[-1] == records.Record(head="find(q=x)", value=value).lines(frozenset())[-1]


@pytest.mark.parametrize(
    "text", ["{a=", "[a: b", "{a=1}}", "[" * 3_000, "{a=" * 3_000, "[a=b, c]", "{a=[x: {y=1} | z]}"]
)
def test_a_record_that_cannot_be_read_back_stays_as_it_is(text: str) -> None:
    (earlier,) = records.read_records(f"- find(q=x): {text}", [])
    assert earlier.lines(frozenset()) == [f"- find(q=x): {text}"]


def test_rows_of_an_earlier_list_are_not_asked_for_by_a_page_number_or_a_state() -> None:
    rooms = [f'"No. {at}, {("free", "taken")[at % 2]}, {at % 9} beds"' for at in range(100, 130)]
    (record,) = records.read_records(f"- list_rooms(page=3): {{rooms=[code, state: {' | '.join(rooms)}]}}", [])
    assert len(record.lines(frozenset({"3", "free"}))) == 1
    assert len(record.lines(frozenset({"117"}))) == 2


def test_a_number_by_a_short_name_is_kept_with_what_it_belongs_to() -> None:
    strict = write_value(
        [{"Invoice No.": "4711", "customer_no": "C77", "piano": "Steinway D"}], wanted=frozenset(), strict=True
    )
    assert "4711" in strict
    assert "C77" in strict
    assert "Steinway" not in strict
