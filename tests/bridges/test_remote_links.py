"""Which links serve a remote, and where a remote answers."""

from typing import Any

import pytest

from vpnrouter.bridges.link_registry import LinkRegistry, ListenAddress
from vpnrouter.bridges.remote_links import RemoteLinks
from vpnrouter.config.bridge import Bridge
from vpnrouter.config.configured_bridge import ConfiguredBridge
from vpnrouter.config.settings_models import TlsServerCert
from vpnrouter.core.credentials import Credentials
from vpnrouter.core.router import Router
from vpnrouter.core.vpn import MessageVpn
from vpnrouter.errors import OperationError
from vpnrouter.trace.recorder import Recorder

LOGIN = {"basic": {"client_username": "bridge", "password": "word"}}


def links_of(vpn: MessageVpn, router: Router, **written: Any) -> RemoteLinks:
    """What a bridge of this configuration knows of links."""
    book = LinkRegistry(router)
    book.link_port, book.links_port = 55_555, 55_443
    return RemoteLinks(book, vpn, configured(**written))


def configured(**written: Any) -> ConfiguredBridge:
    """A bridge that logs in by a password."""
    fields = {"remote_authentication": LOGIN} | written
    return ConfiguredBridge("b", Bridge.model_validate(fields), TlsServerCert())


def remote(location: str, **fields: Any) -> dict[str, Any]:
    """A remote in blue at `location`."""
    return {"name": "blue", "location": location} | fields


@pytest.fixture
def core() -> Any:
    """Makes the links of a bridge on router core into yellow."""
    router = Router("core", 1, Recorder())
    credentials = Credentials(False, (), b"secret")
    vpn = MessageVpn("yellow", router.context, credentials, {}, {})
    router.add(vpn)
    return lambda **written: links_of(vpn, router, **written)


def address(links: RemoteLinks) -> tuple[str, int]:
    """Where the first remote is dialled."""
    return links.address(links.configured.remotes[0])


def test_a_router_by_its_name(core: Any) -> None:
    """`v:ROUTER` is where a link that was up said that it is; with TLS the other port; the own name is the own one."""
    links = core(remote_msg_vpns=[remote("v:edge")])
    with pytest.raises(OperationError, match=r"^no link to router edge is up that tells"):
        address(links)
    links.book.learn("yellow", "edge", ListenAddress("far", 1, 2), proved=True)
    assert address(links) == ("far", 1)
    links.take(configured(remote_msg_vpns=[remote("v:edge", tls_enabled=True)]))
    assert address(links) == ("far", 2)
    links.take(configured(remote_msg_vpns=[remote("v:core")]))
    assert address(links) == ("127.0.0.1", 55_555)


def test_a_name_that_nobody_has_to_prove(core: Any) -> None:
    """A place that somebody told is not dialled where neither a password nor a certificate would prove the name."""
    nameless = {"basic": {"client_username": "bridge"}}
    links = core(remote_msg_vpns=[remote("v:edge")], remote_authentication=nameless)
    links.book.learn("yellow", "edge", ListenAddress("far", 1, 2), proved=True)
    with pytest.raises(OperationError, match=r"^location v:edge needs a password"):
        address(links)
    tls = [remote("v:edge", tls_enabled=True)]
    links.take(configured(remote_msg_vpns=tls, remote_authentication=nameless))
    assert address(links) == ("far", 2)


def test_a_password_that_would_be_shown(core: Any) -> None:
    """With mechanism plain the password leaves over TLS to a verified name alone."""
    plain = {"basic": {"client_username": "bridge", "password": "word", "mechanism": "plain"}}
    links = core(remote_msg_vpns=[remote("edge:1")], remote_authentication=plain)
    with pytest.raises(OperationError, match=r"^mechanism plain shows the password"):
        address(links)
    tls = [remote("edge:1", tls_enabled=True)]
    links.take(configured(remote_msg_vpns=tls, remote_authentication=plain))
    assert address(links) == ("edge", 1)


def test_out_mappings(core: Any) -> None:
    """What goes out is renamed while the bridge that says so is configured and enabled."""
    written = {
        "remote_msg_vpns": [remote("h", router="edge")],
        "topic_mapping": [{"add_prefix": "x", "direction": "out"}],
    }
    links = core(**written)
    assert links.book.out_mappings["yellow", "edge", "blue"].apply("a") == "x/a"
    links.take(configured(**written, enabled=False))
    assert links.book.out_mappings == {}
    links.take(configured(**written))
    assert links.book.out_mappings
    links.forget()
    assert links.book.out_mappings == {}
