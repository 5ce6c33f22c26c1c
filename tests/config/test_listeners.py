import pytest

from vpnrouter.config.listeners import CLIENT_PROTOCOLS, TLS_PROTOCOLS, Listener
from vpnrouter.config.model_schema import kind_of
from vpnrouter.settings.address import Address

PROTOCOLS = set(kind_of(Listener.model_fields["protocol"].annotation).choices)


def test_protocols() -> None:
    """Each protocol has a form with TLS, whose name ends in s; four lead into a message VPN."""
    assert {"mqtt", "ws", "link", "http"} == PROTOCOLS - TLS_PROTOCOLS - {"ws" + "s"}
    assert {f"{plain}s" for plain in PROTOCOLS - TLS_PROTOCOLS} == TLS_PROTOCOLS
    assert {"mqtt", "mqtts", "ws", "wss"} == CLIENT_PROTOCOLS


@pytest.mark.parametrize(
    ("bind", "address"), [("[::1]:0", Address("::1", 0)), ("h:9", Address("h", 9))]
)
def test_address(bind: str, address: Address) -> None:
    """A listener knows its address taken apart, and is on unless switched off."""
    listener = Listener(protocol="mqtt", bind=bind)
    assert listener.address == address
    assert listener.enabled
    assert listener.msg_vpn is None
