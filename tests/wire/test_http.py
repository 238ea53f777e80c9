import socket

import pytest

from ullage.errors import InvalidArguments, Unavailable
from ullage.wire import Address, listen


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("8787", "http://127.0.0.1:8787/mcp"),
        (":80", "http://127.0.0.1:80/mcp"),
        ("localhost:9000", "http://localhost:9000/mcp"),
        ("[::1]:9000", "http://[::1]:9000/mcp"),
    ],
)
def test_an_address_is_a_port_or_a_host_and_a_port(text: str, url: str):
    assert Address.parse(text).url == url


@pytest.mark.parametrize("text", ["", "host", "1:2:x", "70000", "-1", "٣", "::1"])
def test_what_is_no_address_is_refused_with_how_to_write_one(text: str):
    with pytest.raises(InvalidArguments) as caught:
        Address.parse(text)
    assert "127.0.0.1:8787" in caught.value.suggestion


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.1", "example.com", "::", "127.0.0.2"])
def test_beyond_loopback_nothing_is_served(host: str):
    with pytest.raises(InvalidArguments) as caught:
        listen(Address(host, 0))
    assert "127.0.0.1" in caught.value.options


def test_a_taken_port_is_said_to_be_taken_or_passed_over():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match="in use"):
            listen(Address("127.0.0.1", port))
        bound, address = listen(Address("127.0.0.1", port), next_free=True)
        with bound:
            assert address.port > port
            assert bound.getsockname()[1] == address.port
