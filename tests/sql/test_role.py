import pytest
from inline_snapshot import snapshot

from ullage.sql import Probe
from ullage.sql.database import role_sentences

pytestmark = pytest.mark.requirement("S0:sql:read-only")


def test_a_role_that_can_only_read_needs_no_word():
    assert role_sentences("shop", Probe(role="reader", setup_sql="CREATE ROLE …")) == ()


def test_a_role_that_can_write_is_said_with_what_to_do():
    probe = Probe(
        role="app", can_write=("is a superuser", "may INSERT into a", "may DELETE from a", "may CREATE"), setup_sql="x"
    )
    (said,) = role_sentences("shop", probe)
    assert said == snapshot(
        "database `shop`: its role `app` is a superuser, may INSERT into a, may DELETE from a, and 1 more; "
        "for a role that can only read: ullage sql shop --role-sql"
    )
    assert role_sentences("x", Probe(role=None, can_write=("is writable",))) == ("database `x`: it is writable",)
