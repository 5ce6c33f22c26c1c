"""What identifies the listeners that answer."""

from vpnrouter.config.listeners import Listener
from vpnrouter.server.net.listeners import keyed, served


def listener(protocol: str, bind: str, **more: object) -> Listener:
    """A listener as written."""
    return Listener.model_validate({"protocol": protocol, "bind": bind, **more})


def test_alike_listeners_are_counted() -> None:
    """Listeners with one protocol and address are told apart by their place."""
    first = listener("mqtt", "127.0.0.1:0")
    other = listener("link", "127.0.0.1:0")
    second = listener("mqtt", "127.0.0.1:0", msg_vpn="blue")
    found = keyed([first, other, second])
    assert [str(key) for key in found] == [
        "[mqtt 127.0.0.1:0]",
        "[link 127.0.0.1:0]",
        "[mqtt 127.0.0.1:0 #2]",
    ]
    assert list(found.values()) == [first, other, second]


def test_what_is_served() -> None:
    """A listener that is disabled is left out, and counts all the same."""
    off = listener("mqtt", "127.0.0.1:0", enabled=False)
    on = listener("mqtt", "127.0.0.1:0")
    assert [str(key) for key in served([off, on])] == ["[mqtt 127.0.0.1:0 #2]"]
