"""The sample database: an invented garden and kitchen shop.

`rows` generates its people, products and two years of its trade, identical on every machine.

`make_sample` creates the file on first use, completely or not at all: it writes a temporary file and renames it, so
that a concurrent reader opens either the old file or the new one. A file of an earlier edition is replaced.
"""

import contextlib
import os
import random
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from ullage.errors import SourceFailed

__all__ = ["AFTERWARDS", "EDITION", "TABLES", "make_sample", "rows"]

EDITION = 1
"""To be incremented with every change below; a file of an earlier edition is recreated."""

TABLES = """
CREATE TABLE categories (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    parent_id INTEGER REFERENCES categories(id)
);
CREATE TABLE products (
    id INTEGER PRIMARY KEY,
    sku TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    category_id INTEGER NOT NULL REFERENCES categories(id),
    price NUMERIC(10,2) NOT NULL CHECK (price > 0),
    stock INTEGER NOT NULL DEFAULT 0 CHECK (stock >= 0),
    discontinued_on DATE
);
CREATE TABLE customers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE,
    city TEXT NOT NULL,
    country CHAR(2) NOT NULL,
    joined_on DATE NOT NULL
);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers(id),
    ordered_at TIMESTAMP NOT NULL,
    status TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'paid', 'shipped', 'returned', 'cancelled')),
    coupon TEXT
);
CREATE TABLE order_items (
    order_id INTEGER NOT NULL REFERENCES orders(id) ON DELETE CASCADE,
    line INTEGER NOT NULL,
    product_id INTEGER NOT NULL REFERENCES products(id),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    unit_price NUMERIC(10,2) NOT NULL,
    PRIMARY KEY (order_id, line)
);
CREATE TABLE reviews (
    id INTEGER PRIMARY KEY,
    product_id INTEGER NOT NULL REFERENCES products(id),
    customer_id INTEGER NOT NULL REFERENCES customers(id),
    stars INTEGER NOT NULL CHECK (stars BETWEEN 1 AND 5),
    title TEXT,
    written_on DATE NOT NULL
);
"""

AFTERWARDS = """
CREATE INDEX orders_by_customer ON orders(customer_id);
CREATE INDEX orders_by_time ON orders(ordered_at);
CREATE INDEX items_by_product ON order_items(product_id);
CREATE INDEX reviews_by_product ON reviews(product_id, stars);
CREATE VIEW order_totals AS
    SELECT o.id AS order_id, o.customer_id, o.ordered_at, o.status, ROUND(SUM(i.quantity * i.unit_price), 2) AS total
    FROM orders AS o JOIN order_items AS i ON i.order_id = o.id GROUP BY o.id;
CREATE TRIGGER items_leave_the_stock AFTER INSERT ON order_items BEGIN
    UPDATE products SET stock = MAX(0, stock - NEW.quantity) WHERE id = NEW.product_id;
END;
"""

_CATEGORIES = {
    "Garden": ("Tools", "Seeds", "Pots"),
    "Kitchen": ("Pans", "Knives", "Jars"),
    "Home": ("Lamps", "Textiles", "Clocks"),
}
_WARES = {
    "Tools": ("Spade", "Rake", "Trowel", "Secateurs", "Watering Can"),
    "Seeds": ("Tomato Seeds", "Basil Seeds", "Sunflower Seeds", "Pumpkin Seeds", "Radish Seeds"),
    "Pots": ("Clay Pot", "Hanging Pot", "Herb Planter", "Balcony Box", "Cachepot"),
    "Pans": ("Frying Pan", "Saucepan", "Stockpot", "Wok", "Griddle"),
    "Knives": ("Chef's Knife", "Bread Knife", "Paring Knife", "Cleaver", "Sharpening Steel"),
    "Jars": ("Preserving Jar", "Spice Jar", "Biscuit Tin", "Oil Bottle", "Honey Pot"),
    "Lamps": ("Reading Lamp", "Lantern", "Floor Lamp", "Night Light", "String Lights"),
    "Textiles": ("Tea Towel", "Apron", "Wool Blanket", "Cushion", "Table Runner"),
    "Clocks": ("Wall Clock", "Kitchen Timer", "Alarm Clock", "Hourglass", "Mantel Clock"),
}
_MAKES = ("Alder", "Brook", "Corvus")
_FIRST = (
    *("Ada", "Bruno", "Chiara", "Dinesh", "Elif", "Farid", "Greta", "Hana", "Ivo", "Jonna", "Kofi", "Lúcia"),
    *("Mirek", "Nadia", "Oskar", "Priya", "Quentin", "Rosa", "Sven", "Tomás", "Uma", "Vera", "Wanja", "Yara"),
)
_LAST = (
    *("Almeida", "Berger", "Castellan", "Dvorak", "Eklund", "Ferrante", "Grau", "Haddad", "Iversen", "Jansky"),
    *("Kessler", "Lindqvist", "Moreau", "Nakata", "Okafor", "Petrov", "Quispe", "Rossi", "Sato", "Tanaka"),
)
_CITIES = (
    *(("Lisbon", "PT"), ("Porto", "PT"), ("Graz", "AT"), ("Lyon", "FR"), ("Turin", "IT"), ("Malmö", "SE")),
    *(("Bremen", "DE"), ("Kraków", "PL"), ("Ghent", "BE"), ("Cork", "IE"), ("Leeds", "GB"), ("Bergen", "NO")),
)
_PLAIN = str.maketrans("áú", "au")
_STATES = ("open", "paid", "paid", "shipped", "shipped", "shipped", "shipped", "shipped", "returned", "cancelled")
_TITLES = {
    1: ("Broke in a week", "Not as described"),
    2: ("Disappointing", "Arrived scratched"),
    3: ("Does the job", "Fine for the price"),
    4: ("Very good", "Would buy again"),
    5: ("Perfect", "My favourite, better than expected", None),
}
_CUSTOMERS, _ORDERS, _REVIEWS = 300, 1_000, 500
_OPENED = datetime(2024, 11, 1, 8, 0)  # noqa: DTZ001 - the shop's own clock
_DAYS = 730

Value = str | int | float | None
Item = TypeVar("Item")


class _Dice:
    """Reproducible random draws, based only on `random()`, the one method whose sequence Python guarantees."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def below(self, end: int) -> int:
        return int(self._random() * end)

    def one(self, of: Sequence[Item]) -> Item:
        return of[self.below(len(of))]

    def early(self, end: int) -> int:
        """Return a number below `end`, smaller ones being likelier."""
        return int(self._random() ** 2 * end)


def rows() -> Iterator[tuple[str, tuple[Value, ...]]]:
    """Yield every row with its table's name, referenced rows first."""
    dice = _Dice(20_241_101)
    groups = list(_CATEGORIES) + [name for children in _CATEGORIES.values() for name in children]
    numbers = {name: number for number, name in enumerate(groups, 1)}
    for name, number in numbers.items():
        parent = next((numbers[parent] for parent, children in _CATEGORIES.items() if name in children), None)
        yield "categories", (number, name, parent)
    products: list[tuple[Value, ...]] = []
    wares = [(make, ware, group) for make in _MAKES for group, wares in _WARES.items() for ware in wares]
    for number, (make, ware, group) in enumerate(wares, 1):
        price = round(2.5 + dice.early(9_000) / 100, 2)
        gone = None if dice.below(20) else _day(_OPENED + timedelta(days=dice.below(_DAYS)))
        sku = f"{group[:2].upper()}-{1000 + number}"
        products.append((number, sku, f"{make} {ware}", numbers[group], price, dice.below(240), gone))
    yield from (("products", product) for product in products)
    for number in range(1, _CUSTOMERS + 1):
        first, last, (city, country) = dice.one(_FIRST), dice.one(_LAST), dice.one(_CITIES)
        joined = _OPENED - timedelta(days=dice.early(_DAYS))
        email = f"{first}.{last}{number}@example.com".lower().translate(_PLAIN)
        yield "customers", (number, f"{first} {last}", email, city, country, _day(joined))
    prices = [float(str(product[4])) for product in products]
    for number in range(1, _ORDERS + 1):
        moment = _OPENED + timedelta(days=(number - 1) * _DAYS // _ORDERS, seconds=dice.below(50_000))
        coupon = None if dice.below(8) else dice.one(("SPRING10", "WELCOME", "LOYAL5"))
        who = 1 + dice.early(_CUSTOMERS)
        yield "orders", (number, who, moment.isoformat(sep=" "), dice.one(_STATES), coupon)
        for line in range(1, 2 + dice.early(5)):
            product = _pick_popular(dice, len(prices))
            yield "order_items", (number, line, product + 1, 1 + dice.early(4), prices[product])
    for number in range(1, _REVIEWS + 1):
        stars = 5 - dice.early(5)
        product, who = 1 + _pick_popular(dice, len(prices)), 1 + dice.below(_CUSTOMERS)
        written = _day(_OPENED + timedelta(days=dice.below(_DAYS)))
        yield "reviews", (number, product, who, stars, dice.one(_TITLES[stars]), written)


def _pick_popular(dice: _Dice, wares: int) -> int:
    """Return a product; a few sell well, at arbitrary positions in the list."""
    return dice.early(wares) * 37 % wares


def _day(moment: datetime) -> str:
    return moment.date().isoformat()


_APPLICATION = 0x756C6C67
"""SQLite's application id in the file header, so that no other file is taken for the shop."""


def make_sample(path: Path) -> Path:
    """Return the path of the shop's file, which is created if it is missing."""
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
            names = ("application_id", "user_version")
            application, edition = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    except sqlite3.Error:
        application, edition = 0, 0
    if (application, edition) == (_APPLICATION, EDITION):
        return path
    if path.exists() and application != _APPLICATION:
        raise SourceFailed(
            f"`{path.name}` lies where the sample shop would, and is not it",
            suggestion="move that file away, or name a database in the settings",
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        try:
            with contextlib.closing(sqlite3.connect(name)) as connection:
                connection.executescript(TABLES)
                for table, group in groupby(rows(), key=lambda one: one[0]):
                    values = [row for _, row in group]
                    places = ", ".join("?" * len(values[0]))
                    connection.executemany(f"INSERT INTO {table} VALUES ({places})", values)
                connection.commit()
                connection.executescript(AFTERWARDS)
                connection.execute("ANALYZE")
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {EDITION}")
                connection.commit()
            Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)
    except (OSError, sqlite3.Error) as error:
        raise SourceFailed(
            f"the sample shop cannot be written: {error}", suggestion="check that its folder can be written to"
        ) from error
    return path
