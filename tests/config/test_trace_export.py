import pytest
from pydantic import ValidationError

from vpnrouter import limits
from vpnrouter.config.secrets import REVEAL
from vpnrouter.config.trace import Otlp


def test_nothing_is_sent_unless_asked_for() -> None:
    """Off by default, with the collector's usual address on this machine."""
    otlp = Otlp()
    assert not otlp.enabled
    assert otlp.endpoint == "http://127.0.0.1:4318/v1/traces"
    assert (otlp.headers, otlp.timeout_s, otlp.max_queue) == ({}, 10, limits.OTLP_QUEUE_ROWS)


@pytest.mark.parametrize(
    "endpoint",
    ["http://c/v1/traces", "https://c.example:443/x?tenant=1", "http://[::1]:4318/v1/traces"],
)
def test_addresses(endpoint: str) -> None:
    """A URL with host and, if wanted, port, path and query."""
    assert Otlp(endpoint=endpoint).endpoint == endpoint


@pytest.mark.parametrize(
    ("endpoint", "says"),
    [
        ("127.0.0.1:4318", "http://HOST:PORT/PATH"),
        ("grpc://c:4317", "http://HOST:PORT/PATH"),
        ("http://:4318/", "http://HOST:PORT/PATH"),
        ("http://c:0/", "http://HOST:PORT/PATH"),
        ("http://c:70000/", "http://HOST:PORT/PATH"),
        ("http://c:x/", "http://HOST:PORT/PATH"),
        ("http://[::1/", "http://HOST:PORT/PATH"),
        ("http://user:pw@c/", "give a header"),
        ("http://c/v1 traces", "no blanks"),
        ("http://c/v1\r\nx: y", "no blanks"),
        ("http://ü/", "ASCII"),
        ("http://c/#x", "after #"),
        ("http://c/" + "x" * limits.LOCATION_LENGTH, "at most"),
        ("", "http://HOST:PORT/PATH"),
    ],
)
def test_no_addresses(endpoint: str, says: str) -> None:
    """Everything else is refused, and the message says what is wanted."""
    with pytest.raises(ValidationError, match=says):
        Otlp(endpoint=endpoint)


def test_header_values_are_secrets() -> None:
    """They are shown nowhere, may come from the environment, and are written back only on demand."""
    otlp = Otlp.model_validate(
        {"headers": {"authorization": "Bearer abc", "X-Key": {"env": "KEY"}}},
        context={"environment": {"KEY": "from-there"}},
    )
    assert otlp.headers["authorization"].reveal() == "Bearer abc"
    assert otlp.headers["X-Key"].reveal() == "from-there"
    assert "abc" not in repr(otlp)
    assert "from-there" not in repr(otlp)
    assert otlp.model_dump()["headers"] == {"authorization": "********", "X-Key": {"env": "KEY"}}
    assert otlp.model_dump(context={REVEAL: True})["headers"]["authorization"] == "Bearer abc"


@pytest.mark.parametrize("name", ["", "a b", "a:b", "ä", "a\n", "x" * 129])
def test_no_header_names(name: str) -> None:
    """A header's name is a token of HTTP."""
    with pytest.raises(ValidationError, match="header's name"):
        Otlp.model_validate({"headers": {name: "x"}})


@pytest.mark.parametrize("value", ["bad\nb: c", "bad\r", "bad\x00", " bad", "bad☃"])
def test_no_header_values(value: str) -> None:
    """What would begin another header is refused, and not shown."""
    with pytest.raises(ValidationError, match="header authorization") as caught:
        Otlp.model_validate({"headers": {"authorization": value}})
    assert "bad" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [("timeout_s", 0), ("timeout_s", 301), ("max_queue", 999), ("max_queue", 10_000_001)],
)
def test_bounds(field: str, value: int) -> None:
    """Times and sizes have both a least and a most."""
    with pytest.raises(ValidationError):
        Otlp.model_validate({field: value})
