"""Which engine does a URL get, and what of it is said?"""

import sys

import pytest

from ullage.errors import BadConfiguration
from ullage.sql import DatabaseSettings
from ullage.sql.network import network_engine, warning
from ullage.sql.network.database_pool import Address
from ullage.sql.network.mysql import connect_options

pytestmark = pytest.mark.requirement("S0:sql:engines")


def settings(url: str) -> DatabaseSettings:
    return DatabaseSettings(name="shop", url=url)


@pytest.mark.parametrize(
    ("url", "dialect", "kind"),
    [
        ("postgres://h/d", "postgres", "postgresql"),
        ("postgresql+asyncpg://h/d", "postgres", "postgresql"),
        ("mysql+mysqldb://h/d", "mysql", "mysql"),
        ("mariadb://h/d", "mysql", "mysql"),
        ("mssql+pyodbc://h/d", "tsql", "other"),
        ("oracle+oracledb://h/d", "oracle", "other"),
        ("cockroachdb://h/d", "postgres", "other"),
    ],
)
def test_a_url_says_kind_and_dialect(url: str, dialect: str, kind: str) -> None:
    address = Address.of(url)
    assert (address.dialect, address.kind) == (dialect, kind)
    assert (warning(settings(url)) is None) is (kind != "other")


def test_no_secret_of_a_url_is_shown() -> None:
    address = Address.of("mysql://ada:hunter2@h:33/d?ssl_key_password=hunter3&ssl_ca=x&many=1&many=2")
    assert address.shown == "mysql://h:33/d"
    assert address.secrets == ("hunter2", "hunter3")
    assert "hunter" not in repr(address)


@pytest.mark.parametrize("url", ["nothing", "postgresql://h:port/d"])
def test_what_is_no_url_is_said_without_it(url: str) -> None:
    with pytest.raises(BadConfiguration) as failed:
        network_engine(settings(url))
    assert url not in failed.value.message
    assert failed.value.__cause__ is None


@pytest.mark.parametrize(("scheme", "module"), [("postgresql", "psycopg"), ("mysql", "pymysql")])
def test_a_missing_driver_is_said_with_the_way_to_install_it(
    scheme: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith((f"ullage.sql.network.{scheme}", module))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BadConfiguration) as failed:
        network_engine(settings(f"{scheme}://ada:hunter2@h/d"))
    assert failed.value.suggestion == f"pip install 'ullage[{scheme}]'"
    assert "hunter2" not in failed.value.message


def test_options_of_mysql_are_those_that_weaken_nothing() -> None:
    given = Address.of("mysql://ada:p%C3%A9@h/d?ssl_verify_cert=true&ssl_ca=/ca.pem&charset=latin1").url
    options = connect_options(given)
    assert options["password"] == "pé".encode()
    assert (options["ssl_verify_cert"], options["ssl_ca"], options["charset"]) == (True, "/ca.pem", "utf8mb4")
    for bad in ("local_infile=1", "init_command=x", "ssl_ca=a&ssl_ca=b"):
        with pytest.raises(BadConfiguration):
            connect_options(Address.of(f"mysql://h/d?{bad}").url)
