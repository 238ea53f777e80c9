from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.gateway.merge.tool_names import Template, block_mapped, mapped, owners_of, unmapped, with_uri

pytestmark = pytest.mark.requirement("S1:aggregate")


@given(st.text(min_size=1), st.text())
def test_a_mapped_address_reads_back_to_its_server(server: str, uri: str):
    assert unmapped(mapped(server, uri)) == (server, uri)


def test_an_address_that_nobody_mapped_is_left_alone():
    assert unmapped("file:///a") is None
    assert unmapped("ullage+from://server-and-no-more") is None


@pytest.mark.parametrize(
    ("template", "uri", "fits"),
    [
        ("file:///{path}", "file:///a/b.txt", True),
        ("file:///{path}", "https://a", False),
        ("repo://{owner}/{name}/contents{/path*}", "repo://me/it/contents/src/a.py", True),
        ("repo://{owner}/{name}/contents{/path*}", "repo://me/it/issues", False),
        ("note://{id}/text", "note://7/text", True),
        ("note://{id}/text", "note://7/texts", False),
        ("note://fixed", "note://fixed", True),
        ("note://fixed", "note://fixed/more", False),
        ("a{x}aa", "aa", False),
        ("s://q{?a,b}", "s://q", True),
        ("{+any}", "whatever://it/is", True),
    ],
)
def test_a_template_fits_an_address_that_has_its_fixed_parts_in_order(template: str, uri: str, fits: object):
    assert Template.of(template).matches(uri) is fits


class Searched(str):
    """An address that counts how often it is searched."""

    __slots__ = ("searches",)

    def find(self, *sought: Any) -> int:  # noqa: ANN401 - whatever `str` takes
        self.searches = getattr(self, "searches", 0) + 1
        return super().find(*sought)


def test_a_template_made_to_be_slow_is_not():
    hostile = Template.of("a" + "{x}a" * 1_000 + "b")
    long, endless = Searched("a" * 8_000), Searched("a" * 10_000_000)
    assert not hostile.matches(long)
    assert long.searches == 999, "once for each part between the first and the last"
    assert not hostile.matches(endless)
    assert not hasattr(endless, "searches")


OWNERS = owners_of(
    [("one", [{"uri": "file:///a"}, {"uri": "file:///b"}]), ("two", [{"uri": "file:///a"}, {"uri": "file:///c"}])],
    [("one", [{"uriTemplate": "repo://{x}"}]), ("two", [{"uriTemplate": "repo://{x}/tags"}])],
)


def test_the_first_that_offers_an_address_keeps_it():
    assert OWNERS.outward("one", "file:///a") == "file:///a"
    assert OWNERS.outward("two", "file:///a") == "ullage+from://two/file:///a"
    assert OWNERS.outward("two", "file:///c") == "file:///c"


def test_an_address_that_nobody_lists_belongs_to_the_surest_template():
    assert OWNERS.owner("repo://it/tags") == "two"
    assert OWNERS.owner("repo://it/more") == "one"
    assert OWNERS.owner("nowhere://") is None
    assert OWNERS.outward("two", "nowhere://") == "nowhere://"


def test_an_address_that_looks_mapped_cannot_lead_to_another_server():
    assert OWNERS.outward("two", "ullage+from://one/secret") == "ullage+from://two/ullage+from://one/secret"


def test_only_blocks_with_an_address_change():
    def louder(uri: str) -> str:
        return uri.upper()

    text, odd = {"type": "text", "text": "a"}, {"type": "resource", "resource": None}
    assert block_mapped(text, louder) is text
    assert block_mapped(odd, louder) is odd
    assert block_mapped({"type": "resource_link", "uri": "a", "name": "n"}, louder)["uri"] == "A"
    embedded = {"type": "resource", "resource": {"uri": "a", "text": "t"}, "annotations": {}}
    assert block_mapped(embedded, louder) == {
        "type": "resource",
        "resource": {"uri": "A", "text": "t"},
        "annotations": {},
    }
    assert block_mapped(embedded, str.lower) is embedded
    assert with_uri({"name": "no address"}, louder) == {"name": "no address"}
