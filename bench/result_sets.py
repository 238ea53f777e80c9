"""Which result sets are weighed?

Made up, the same on every run: eight tables of a hundred rows as databases give them, wide and narrow, with numbers,
dates, UUIDs, NULLs and words of several languages; and beside them what is told apart because no form can do much about
it: nested values, long texts, and the small answers that questions usually get. A folder of JSON files, each an array
of objects, can take the place of the eight.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from uuid import UUID

from ullage.table import Cell, Row, find_table

ROWS = 100
FIRST = ("Ada", "Grace", "José", "Zoë", "Łukasz", "明", "Chidi", "Ingrid", "Omar", "Priya")
LAST = ("Lovelace", "Hopper", "García", "Müller", "Nowak", "田中", "Okafor", "Larsen", "Haddad", "Sharma")
CITIES = ("Lisbon", "Osaka", "Tromsø", "São Paulo", "Nairobi", "Leeds", "Gdańsk", "Perth")
WORDS = "quiet ledger amber harbour swift maple copper lantern river paper violet stone morning cedar".split()  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class ResultSet:
    name: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def result_sets() -> list[ResultSet]:
    makers = {
        "employees": _employee,
        "orders": _order,
        "line items": _line_item,
        "airports": _airport,
        "cars": _car,
        "employment": _employment,
        "weather": _weather,
        "customers": _customer,
    }
    return [_hundred(name, maker) for name, maker in makers.items()]


def other_sets() -> list[ResultSet]:
    random = Random(7)
    regions = ("north", "south", "east", "west", "overseas")
    totals: list[dict[str, Cell]] = [
        {"region": region, "orders": random.randint(90, 900), "revenue": _money(random, 90_000)} for region in regions
    ]
    return [
        _hundred("products", _product),
        _hundred("log lines", _log_line),
        _made("aggregate 5x3", totals),
        _made("one row", [_customer(random, 1)]),
        _made("one value", [{"count": 18_204}]),
    ]


def _hundred(name: str, maker: Callable[[Random, int], dict[str, Cell]]) -> ResultSet:
    random = Random(name)
    return _made(name, [maker(random, number) for number in range(1, ROWS + 1)])


def read_sets(folder: Path) -> list[ResultSet]:
    """Files that hold no table are passed over."""
    sets: list[ResultSet] = []
    for path in sorted(folder.glob("*.json")):
        found = find_table(json.loads(path.read_text(encoding="utf-8")))
        if found is not None and found.columns:
            sets.append(_made(path.stem, [row for row in found.rows if isinstance(row, dict)]))
    return sets


def _made(name: str, records: Sequence[Mapping[str, Cell]]) -> ResultSet:
    columns = tuple(dict.fromkeys(key for record in records for key in record))
    return ResultSet(name, columns, tuple(tuple(record.get(column) for column in columns) for record in records))


def _money(random: Random, most: int) -> Decimal:
    return Decimal(random.randint(100, most * 100)) / 100


def _day(random: Random) -> str:
    return (date(2024, 1, 1) + timedelta(days=random.randint(0, 700))).isoformat()


def _person(random: Random) -> str:
    return f"{random.choice(FIRST)} {random.choice(LAST)}"


def _words(random: Random, count: int) -> str:
    return " ".join(random.choice(WORDS) for _ in range(count))


def _uuid(random: Random) -> str:
    return str(UUID(int=random.getrandbits(128), version=4))


def _employee(random: Random, number: int) -> dict[str, Cell]:
    return {
        "id": number,
        "name": _person(random),
        "department": random.choice(("sales", "engineering", "finance", "support")),
        "title": random.choice(("Analyst", "Senior Engineer", "Clerk", "Head of Unit")),
        "salary": random.randint(28, 160) * 1_000,
        "hired_on": _day(random),
    }


def _order(random: Random, number: int) -> dict[str, Cell]:
    return {
        "order_key": number * 32 + 1,
        "customer_key": random.randint(1, 150_000),
        "status": random.choice("OFP"),
        "total_price": _money(random, 400_000),
        "order_date": _day(random),
        "priority": random.choice(("1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW")),
        "clerk": f"Clerk#{random.randint(1, 1000):09}",
        "ship_priority": 0,
        "comment": _words(random, 6),
    }


def _line_item(random: Random, number: int) -> dict[str, Cell]:
    return {
        "order_key": number // 4 + 1,
        "part_key": random.randint(1, 200_000),
        "supplier_key": random.randint(1, 10_000),
        "line_number": number % 4 + 1,
        "quantity": random.randint(1, 50),
        "extended_price": _money(random, 90_000),
        "discount": Decimal(random.randint(0, 10)) / 100,
        "tax": Decimal(random.randint(0, 8)) / 100,
        "return_flag": random.choice("ANR"),
        "line_status": random.choice("OF"),
        "ship_date": _day(random),
        "commit_date": _day(random),
        "receipt_date": _day(random),
        "ship_instruct": random.choice(("DELIVER IN PERSON", "NONE", "TAKE BACK RETURN", "COLLECT COD")),
        "ship_mode": random.choice(("AIR", "RAIL", "SHIP", "TRUCK", "MAIL")),
        "comment": _words(random, 4),
    }


def _airport(random: Random, _: int) -> dict[str, Cell]:
    return {
        "iata": "".join(random.choice("ABCDEFGHKLMNPRSTUVZ") for _ in range(3)),
        "name": f"{random.choice(LAST)} Field",
        "city": random.choice(CITIES),
        "state": random.choice(("TX", "AK", "NY", None)),
        "country": "USA",
        "latitude": round(random.uniform(-70, 70), 6),
        "longitude": round(random.uniform(-180, 180), 6),
    }


def _customer(random: Random, number: int) -> dict[str, Cell]:
    first, last = random.choice(FIRST), random.choice(LAST)
    return {
        "id": _uuid(random),
        "name": f"{first} {last}",
        "email": f"{first}.{last}{number}@example.com".lower(),
        "phone": None if number % 3 else f"+44 20 {random.randint(1000, 9999)} {random.randint(1000, 9999)}",
        "city": random.choice(CITIES),
        "postcode": f"{random.randint(0, 99_999):05}",
        "vip": number % 7 == 0,
        "credit": _money(random, 5_000),
        "birthday": None if number % 2 else _day(random),
        "note": None if number % 5 else f"“{_words(random, 3)}”, {_words(random, 2)}",
        "referred_by": None if number % 4 else _uuid(random),
        "created_at": f"{_day(random)} 09:{number % 60:02}:17",
        "updated_at": None,
    }


def _car(random: Random, number: int) -> dict[str, Cell]:
    return {
        "name": f"{random.choice(LAST).lower()} {random.choice(WORDS)} {random.randint(100, 999)}",
        "miles_per_gallon": None if number % 25 == 0 else round(random.uniform(9, 46), 1),
        "cylinders": random.choice((4, 6, 8)),
        "displacement": random.randint(70, 455),
        "horsepower": random.randint(46, 230),
        "weight_in_lbs": random.randint(1_600, 5_200),
        "acceleration": round(random.uniform(8, 25), 1),
        "year": f"19{random.randint(70, 82)}-01-01",
        "origin": random.choice(("USA", "Europe", "Japan")),
    }


def _employment(random: Random, number: int) -> dict[str, Cell]:
    sectors = (
        "nonfarm private goods_producing service_providing private_service mining construction manufacturing durable"
        " nondurable trade wholesale retail transportation utilities information finance professional education leisure"
        " other government"
    )
    month: dict[str, Cell] = {"month": f"{2006 + number // 12}-{number % 12 + 1:02}-01"}
    month |= {sector: random.randint(500, 150_000) for sector in sectors.split()}
    return month | {"nonfarm_change": random.randint(-800, 500)}


def _weather(random: Random, number: int) -> dict[str, Cell]:
    return {
        "location": random.choice(("Seattle", "New York")),
        "date": (date(2012, 1, 1) + timedelta(days=number)).isoformat(),
        "precipitation": round(random.uniform(0, 30), 1),
        "temp_max": round(random.uniform(0, 35), 1),
        "temp_min": round(random.uniform(-10, 20), 1),
        "wind": round(random.uniform(0, 9), 1),
        "weather": random.choice(("sun", "rain", "fog", "drizzle", "snow")),
    }


def _log_line(random: Random, number: int) -> dict[str, Cell]:
    return {
        "at": f"{_day(random)} 12:{number % 60:02}:05.{random.randint(0, 999):03}",
        "level": random.choice(("INFO", "WARN", "ERROR")),
        "service": random.choice(("checkout", "search", "billing")),
        "message": f"{_words(random, 7)}: {random.randint(1, 9_999)} ms",
    }


def _product(random: Random, number: int) -> dict[str, Cell]:
    return {
        "sku": f"{random.choice('ABCD')}-{number:05}",
        "name": _words(random, 2).title(),
        "price": _money(random, 300),
        "stock": random.randint(0, 900),
        "tags": [random.choice(WORDS), random.choice(WORDS)],
        "size": {"w": random.randint(1, 90), "h": random.randint(1, 90)},
        "discontinued": number % 11 == 0,
    }
