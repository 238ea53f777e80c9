from json import dumps
from time import process_time

import pytest

from context.talks import assistant, call, result, tool
from ullage.context.outline_text import read_outline
from ullage.context.structured_text import read_structure
from ullage.context.structured_values import records_of
from ullage.tokens import drain
from ullage.tool import Json

pytestmark = pytest.mark.requirement("S2:compact:how")

BOLT: dict[str, Json] = {"sku": "KX-85-3895", "bin": "C01-2", "price": "31.24"}
PIPE: dict[str, Json] = {"sku": "AB-29-0114", "bin": "D40-7", "price": "8.10"}
BOTH: list[Json] = [BOLT, PIPE]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            (
                "<html><head><style>td {color: red}</style></head><body><h1>Stock</h1><table><thead><tr><th>sku</th>"
                "<th>bin</th><th>price</th></tr></thead><tbody><tr><td>KX-85-3895</td><td>C01-2</td><td>31.24</td></tr>"
                "<tr><td><b>AB-29-0114</b></td><td>D40-7</td><td>8.10</td></tr></tbody></table></body></html>"
            ),
            BOTH,
        ),
        (
            (
                "<table><tr><th>sku</th><td>KX-85-3895</td></tr><tr><th>bin</th><td>C01-2</td></tr>"
                "<tr><th>price</th><td>31.24</td></tr></table>"
            ),
            BOLT,
        ),
        (
            (
                "<div class='card'><h3>KX-85-3895</h3><ul><li><b>sku</b>: KX-85-3895</li><li><b>bin</b>: C01-2</li>"
                "<li>price: 31.24</li></ul></div><div class='card'><h3>AB-29-0114</h3><ul><li>sku: AB-29-0114</li>"
                "<li>bin: D40-7</li><li>price: 8.10</li></ul></div>"
            ),
            BOTH,
        ),
        ("<dl><dt>sku</dt><dd>KX-85-3895</dd><dt>bin</dt><dd>C01-2</dd><dt>price</dt><dd>31.24</dd></dl>", BOLT),
        (
            (
                "Two parts:\n\n### 1. KX-85-3895\n- **sku**: KX-85-3895\n- **bin:** C01-2\n- **price**: 31.24\n\n"
                "### 2. AB-29-0114\n- **sku**: AB-29-0114\n- **bin**: D40-7\n- **price**: 8.10"
            ),
            BOTH,
        ),
        (
            (
                "Found:\n* Part 1\n  * sku: KX-85-3895\n  * bin: C01-2\n  * price: 31.24\n* Part 2\n"
                "  * sku: AB-29-0114\n  * bin: D40-7\n  * price: 8.10"
            ),
            {"Found": [{"heading": "Part 1", **BOLT}, {"heading": "Part 2", **PIPE}]},
        ),
        (
            (
                '[[part]]\nsku = "KX-85-3895"\nbin = \'C01-2\'\nprice = 31.24\n\n[[part]]\nsku = "AB-29-0114"\n'
                'bin = "D40-7"\nprice = 8.10'
            ),
            BOTH,
        ),
        (
            (
                "sku ........... KX-85-3895\nbin ........... C01-2\nprice ......... 31.24\n------\n"
                "sku ........... AB-29-0114\nbin ........... D40-7\nprice ......... 8.10"
            ),
            BOTH,
        ),
        ('sku=KX-85-3895 bin=C01-2 price="31.24"\nsku=AB-29-0114 bin=D40-7 price=8.10', BOTH),
        (
            "📦 Sku: KX-85-3895\n📍 Bin: C01-2\n💶 Price: 31.24\n\n📦 Sku: AB-29-0114\n📍 Bin: D40-7\n💶 Price: 8.10",
            [{key.title(): value for key, value in one.items()} for one in (BOLT, PIPE)],
        ),
        (
            "库存：\n货号：KX-85-3895\n货位：C01-2\n价格：31.24",
            {"库存": None, "货号": "KX-85-3895", "货位": "C01-2", "价格": "31.24"},
        ),
        (
            "Hex bolt\nsku: KX-85-3895\nbin: C01-2\n\nCopper pipe\nsku: AB-29-0114\nbin: D40-7",
            [
                {"heading": "Hex bolt", "sku": "KX-85-3895", "bin": "C01-2"},
                {"heading": "Copper pipe", "sku": "AB-29-0114", "bin": "D40-7"},
            ],
        ),
        (" sku        | bin   | price\n------------+-------+-------\n KX-85-3895 | C01-2 | 31.24\n(1 row)", [BOLT]),
        (
            (
                "Parts in stock:\n\n| sku | bin | price |\n|---|---|---|\n| KX-85-3895 | C01-2 | 31.24 |\n"
                "| AB-29-0114 | D40-7 | 8.10 |\n\nTotal: 2"
            ),
            BOTH,
        ),
        (
            "SKU          BIN     PRICE\nKX-85-3895   C01-2   31.24\nAB-29-0114           8.10",
            [
                {"SKU": "KX-85-3895", "BIN": "C01-2", "PRICE": "31.24"},
                {"SKU": "AB-29-0114", "BIN": "", "PRICE": "8.10"},
            ],
        ),
        ("sku\tbin\tprice\nKX-85-3895\tC01-2\t31.24\nAB-29-0114\t\t8.10", [BOLT, {**PIPE, "bin": ""}]),
        (
            '2 rows\nsku,bin,price\nKX-85-3895,"C01\n2",31.24\nAB-29-0114,D40-7,8.10\n',
            [{**BOLT, "bin": "C01\n2"}, PIPE],
        ),
        (
            '{"columns": ["sku", "bin", "price"], "rows": [["KX-85-3895", "C01-2", "31.24"]], "rowCount": 1}',
            [BOLT],
        ),
        (
            '{"sku": ["KX-85-3895", "AB-29-0114"], "bin": ["C01-2", "D40-7"], "price": ["31.24", "8.10"]}',
            BOTH,
        ),
        (
            (
                '{"data": {"edges": [{"cursor": "Y", "node": {"sku": "KX-85-3895", "bin": "C01-2", "price": "31.24"}}],'
                ' "pageInfo": {"hasNextPage": false}}}'
            ),
            [BOLT],
        ),
        (
            (
                'Part 1:\n{"sku": "KX-85-3895", "bin": "C01-2", "price": "31.24"}\nPart 2:\n'
                '{"sku": "AB-29-0114", "bin": "D40-7", "price": "8.10"}'
            ),
            [{"heading": "Part 1", **BOLT}, {"heading": "Part 2", **PIPE}],
        ),
        (
            '[pod]\nnamespace = "prod"\ncase = 7\nclass = "A1"',
            {"heading": "pod", "namespace": "prod", "case": "7", "class": "A1"},
        ),
        (
            "<list><pr><number>7</number><body>Fix</body><section>S1</section></pr></list>",
            {"pr": {"number": "7", "body": "Fix", "section": "S1"}},
        ),
        ("[{'sku': 'KX-85-3895', 'bin': 'C01-2', 'price': '31.24'}, ('a', None)]", [BOLT, ["a", None]]),
    ],
)
def test_values_are_read_with_those_that_belong_to_them(text: str, value: Json) -> None:
    assert read_structure(text) == value


@pytest.mark.parametrize(
    "text",
    [
        (
            "<html><body><h1>Our story</h1><p>In 1998 two friends opened a shop: bolts.</p><p>It still does, and the "
            "shop has grown since then.</p><table><tr><td>imprint</td><td>privacy</td></tr></table></body></html>"
        ),
        "def price(sku):\n    bin = find(sku)\n    return bin.price\n\n\nclass Stock:\n    name = 'x'\n",
        "const a = 1;\nlet b = {\n  c: 2,\n};\nfunction f() {\n  return a;\n}\n",
        "\n".join(f"line {line} of the module: the value is {line}" for line in range(20)),
        "2026-01-01 12:00:01 INFO start: ok\n2026-01-01 12:00:02 INFO stop: ok\n",
        "One thing: this is a sentence.\nAnother sentence follows without a name.\nAnd a third one, to be sure.",
        "[[unclosed",
        "Got random number: 12\nGot random number: 715\nGot random number: 83\nDone",
        "import os\n\n\nasync def f():\n    a = 1\n    b = 2\n    c = 3\n",
        "=====\n-----\n",
    ],
)
def test_prose_code_and_logs_are_no_outline(text: str) -> None:
    assert read_outline(text) is None


def test_a_line_of_a_listing_is_not_cut_at_its_first_colon() -> None:
    text = "1. Room R101: booking BK-101, guest 7, 10.50 EUR\n2. Room R102: booking BK-102, guest 8, 11.50 EUR"
    assert read_structure(text) == text.split("\n")


@pytest.mark.parametrize(
    "text",
    ["a: b\n" * 5_000, "# x\n" * 5_000, "- " * 20_000, "<td>" * 5_000, "a=1 " * 20_000, "{" * 5_000, "a." * 9_000],
)
def test_long_and_odd_texts_are_read_in_linear_time(text: str) -> None:
    begin = process_time()
    read_structure(text)
    half = process_time()
    read_structure(text * 2)
    assert process_time() - half < 0.1 + 4 * (half - begin)


def test_results_under_one_heading_do_not_replace_each_other() -> None:
    results = [
        f"## Part details\n- **Bin**: {bin_}\n- **Price**: {price}" for bin_, price in (("C01-2", 31), ("D40-7", 8))
    ]
    messages = [
        message
        for number, text in enumerate(results)
        for message in (assistant(call(str(number), "look", dumps({"at": number}))), tool(result(str(number), text)))
    ]
    assert [record.head for record in drain(records_of(messages))] == ["look(at=0)", "look(at=1)"]


def test_a_listing_gives_way_to_the_details_of_what_was_chosen() -> None:
    rows = [{"Order ID": f"ORD-{at}", "sum": at} for at in range(100, 105)]
    detail = {"order_id": "ORD-103", "sum": 103, "city": "Graz"}
    messages = (
        assistant(call("1", "list_orders", "{}")),
        tool(result("1", dumps({"results": rows}))),
        assistant(call("2", "get_order", dumps({"orderId": "ORD-103"}))),
        tool(result("2", dumps(detail))),
    )
    listed, chosen = drain(records_of(messages))
    assert listed.is_passed
    assert listed.value == [row for row in rows if row["Order ID"] != "ORD-103"]
    assert chosen.value == {"order_id": "ORD-103", "sum": 103, "city": "Graz"}


def test_a_row_is_not_replaced_because_it_shares_a_state() -> None:
    rows = [{"id": at, "state": "open"} for at in range(3)]
    messages = (
        assistant(call("1", "list", "{}")),
        tool(result("1", dumps(rows))),
        assistant(call("2", "count", dumps({"state": "open"}))),
        tool(result("2", dumps({"state": "open", "count": 3, "oldest": "2026-01-01"}))),
    )
    listed, _ = drain(records_of(messages))
    assert listed.value == rows
