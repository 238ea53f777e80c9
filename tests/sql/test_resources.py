import pytest

from ullage.errors import UnknownResource
from ullage.sql.sql_source import resource_of, table_of, template_of


def test_addresses_lead_back_to_what_they_mean():
    assert resource_of("shop")["uri"] == "sql://shop/schema"
    assert template_of("shop")["uriTemplate"] == "sql://shop/tables/{table}"
    assert table_of("shop", "sql://shop/schema") is None
    assert table_of("my shop", "sql://my%20shop/tables/a%2Fb") == "a/b"


@pytest.mark.parametrize("uri", ["sql://other/schema", "sql://shop/tables/", "file:///etc/passwd", "sql://shop"])
def test_other_addresses_are_refused(uri: str):
    with pytest.raises(UnknownResource):
        table_of("shop", uri)
