import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.settings.address import (
    Address,
    check_location,
    parse_bind,
    parse_location,
    router_of,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:1883", Address("127.0.0.1", 1883)),
        ("localhost:0", Address("localhost", 0)),
        ("[::1]:1883", Address("::1", 1883)),
        ("[fe80::1%eth0]:1", Address("fe80::1%eth0", 1)),
        ("edge-1.example.org.:65535", Address("edge-1.example.org.", 65535)),
    ],
)
def test_bind(text: str, address: Address) -> None:
    """A bind is a host or a bracketed IPv6 address, and a port, 0 included."""
    assert parse_bind(text) == address


@pytest.mark.parametrize(
    "text",
    ["", ":1", "h", "h:", "h:-1", "h:65536", "h:1:2", "::1:5", "[::1]", "[1]:5", "[::1", "a b:1",
     "-h:1", "h:１", "[::1]x:1", "h:1\n", "http://h:1", "*:1"],
)  # fmt: skip
def test_bad_bind(text: str) -> None:
    """Everything else is refused, other alphabets' digits and line ends included."""
    with pytest.raises(ValueError):
        parse_bind(text)


@pytest.mark.parametrize(
    ("text", "tls", "address"),
    [
        ("edge", False, Address("edge", 55555)),
        ("edge", True, Address("edge", 55443)),
        ("[2001:db8::1]", False, Address("2001:db8::1", 55555)),
        ("edge:7", True, Address("edge", 7)),
    ],
)
def test_location_without_a_port(text: str, tls: bool, address: Address) -> None:
    """A location that names no port means the field's port for plain or TLS links."""
    assert parse_location(text, tls_enabled=tls) == address


def test_location_is_at_most_259_characters() -> None:
    """The field's bound on a location holds."""
    assert parse_location("h" * 257 + ":1").port == 1
    with pytest.raises(ValueError, match="at most 259"):
        parse_location("h" * 258 + ":1")


def test_location_of_a_router() -> None:
    """`v:NAME` is a router's name and no address."""
    assert router_of("v:core") == "core"
    assert router_of("core:1") is None
    assert check_location("v:core") == "v:core"


@given(st.from_regex(r"[a-z][a-z0-9.]{0,20}[a-z]", fullmatch=True) | st.ip_addresses().map(str),
       st.integers(0, 65535))  # fmt: skip
def test_text_of_an_address_parses_to_it(host: str, port: int) -> None:
    """What an address prints is what it was parsed from, IPv6 in brackets."""
    assert parse_bind(str(Address(host, port))) == Address(host, port)


@given(st.text(max_size=30))
def test_any_text_parses_or_is_a_value_error(text: str) -> None:
    """No text makes the parser fail in another way."""
    for parse in (parse_bind, parse_location):
        try:
            assert 0 <= parse(text).port <= 65535
        except ValueError:
            continue
