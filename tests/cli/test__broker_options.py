"""Where a broker is and who comes: options into one value."""

from pathlib import Path
from typing import Any

import pytest
import typer

from vpnrouter.cli._broker_options import (
    DEFAULT_URL,
    Broker,
    Version,
    broker_of,
    check_texts,
    user_properties,
)


def made(**given: Any) -> Broker:
    """A broker of the default options and those given."""
    options: dict[str, Any] = {
        "verb": "pub",
        "url": DEFAULT_URL,
        "host": "",
        "port": 0,
        "user": "",
        "password_file": None,
        "password_env": "",
        "ca_file": None,
        "cert": None,
        "key": None,
        "client_id": "",
        "keepalive": 60,
        "version": Version.V5,
    }
    return broker_of(**(options | given))


@pytest.mark.parametrize(
    ("given", "text", "username"),
    [
        ({}, "mqtt://127.0.0.1:1883", None),
        ({"url": "mqtt://ann%40blue@h:9"}, "mqtt://h:9", "ann@blue"),
        ({"url": "mqtts://h"}, "mqtts://h:8883", None),
        ({"url": "mqtt://[::1]"}, "mqtt://[::1]:1883", None),
        ({"url": "mqtt://a@h", "host": "other", "port": 7, "user": "b"}, "mqtt://other:7", "b"),
    ],
)
def test_address_and_user(given: dict[str, Any], text: str, username: str | None) -> None:
    """The URL says everything; single options take the place of its parts."""
    broker = made(**given)
    assert (str(broker), broker.username) == (text, username)


def test_each_client_has_its_own_id() -> None:
    """Two commands at once do not throw each other out, unless an id is given."""
    assert made().client_id != made().client_id
    assert made(client_id="x").client_id == "x"
    assert made(version=Version.V311).level == 4


def test_password_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line of a file, or an environment variable."""
    (tmp_path / "p").write_bytes(b"s\xc3\xa9cret\r\nmore\n")
    broker = made(user="ann", password_file=tmp_path / "p")
    assert broker.password == "sécret".encode()
    monkeypatch.setenv("P", "other")
    assert made(user="ann", password_env="P").password == b"other"
    assert "other" not in str(made(user="ann", password_env="P"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": "h:1883"}, "is not of the form"),
        ({"url": "mqtt://h:x"}, "is not of the form"),
        ({"url": "mqtt://h/path"}, "is not of the form"),
        ({"url": "mqtt://u:hidden@h"}, "no place on a command line"),
        ({"password_env": "NO_SUCH_VARIABLE"}, "is not set"),
        ({"password_file": Path("/no/such"), "user": "a"}, "cannot read /no/such"),
        ({"key": Path("/k")}, "whose key it is"),
        ({"ca_file": Path("/no/such")}, "cannot use /no/such"),
    ],
)
def test_what_makes_no_sense(given: dict[str, Any], said: str) -> None:
    """It is refused in words, without the password."""
    with pytest.raises(typer.BadParameter, match=said) as caught:
        made(**given)
    assert "hidden" not in str(caught.value)


def test_a_password_without_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """MQTT 3.1.1 has no such thing, and in MQTT 5 it is a mistake."""
    monkeypatch.setenv("P", "x")
    with pytest.raises(typer.BadParameter, match="whose password"):
        made(password_env="P")


def test_user_properties() -> None:
    """The first `=` parts name and value; order and doubles stay."""
    assert user_properties(["b=1", "a=x=y", "b="]) == [("b", "1"), ("a", "x=y"), ("b", "")]
    assert user_properties(None) == []


@pytest.mark.parametrize("text", ["", "a\0b", "x" * 65_536, "\udcff"])
def test_texts_without_a_form(text: str) -> None:
    """Empty, with NUL, too long, or no UTF-8."""
    check_texts(["a/b", "x" * 65_535], "TOPIC")
    with pytest.raises(typer.BadParameter):
        check_texts([text], "TOPIC")
