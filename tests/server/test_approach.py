"""What a bridge knows of its remotes: where they are by name, which connection of theirs it may use."""

from typing import Any

import pytest
import trio

from vpnrouter.bridges.book import Place
from vpnrouter.config.bridge import Bridge
from vpnrouter.config.msg_vpn import TlsServerCert
from vpnrouter.errors import OperationError


def remote(location: str, **fields: Any) -> dict[str, Any]:
    """A remote in blue at `location`."""
    return {"name": "blue", "location": location} | fields


def test_a_router_by_its_name(voyage: Any) -> None:
    """`v:ROUTER` is where a link that is up says, whichever side dialled it; with TLS the other port."""

    async def tell(sea: Any) -> None:
        core, edge = sea.island("core", "yellow"), sea.island("edge", "blue")
        runner = core.bridge({"remote_msg_vpns": [remote("v:edge")]}, run=False)
        address = runner.approach._address
        with pytest.raises(OperationError, match=r"^no link to router edge is up that tells"):
            address(runner.approach.current)
        edge.bridge({"remote_msg_vpns": [remote("core", name="yellow")]})
        await sea.until(lambda: edge.runner.record.is_up)
        assert address(runner.approach.current) == ("edge", 55_555)
        tls = remote("v:edge", tls_enabled=True)
        written = Bridge.model_validate({"remote_msg_vpns": [tls]})
        runner.approach.take(written, TlsServerCert())
        assert address(runner.approach.current) == ("edge", 55_443)
        # It says where the other one is as well.
        assert edge.book.place_of("blue", "core", tls=False) == ("core", 55_555)

    voyage(tell)


def test_a_bridge_to_a_router_by_its_name(voyage: Any) -> None:
    """A bridge to a name waits until a link tells where that is, and then connects."""

    async def tell(sea: Any) -> None:
        core = sea.island("core", "yellow")
        sea.island("edge", "blue")
        third = sea.island("third", "red")
        core.bridge({"remote_msg_vpns": [remote("v:edge")]})
        await trio.sleep(10)
        assert not core.runner.record.is_up
        assert sea.dialed == []
        assert core.runner.record.inbound_failure_reason.startswith("no link to router edge")
        core.book.learn("yellow", "edge", Place("edge", 55_555, 0), proved=False)
        await sea.until(lambda: core.runner.record.is_up)
        assert core.runner.record.remote_router_name == "edge"
        assert third.book.serving == {}

    voyage(tell)


def test_another_router_under_that_name(voyage: Any) -> None:
    """A place that another router answers at by now is told and not used."""

    async def tell(sea: Any) -> None:
        core = sea.island("core", "yellow")
        sea.island("third", "blue")
        core.book.learn("yellow", "edge", Place("third", 55_555, 0), proved=False)
        core.bridge({"remote_msg_vpns": [remote("v:edge")]})
        await sea.until(lambda: core.runner.record.failures > 0)
        assert core.runner.record.inbound_failure_reason == (
            "404 Router Name Mismatch: this is third"
        )

    voyage(tell)


def test_a_name_that_nobody_has_to_prove(voyage: Any) -> None:
    """A place that somebody told is not dialled where neither a password nor a certificate would prove the name."""

    async def tell(sea: Any) -> None:
        core = sea.island("core", "yellow")
        sea.island("third", "blue")
        core.book.learn("yellow", "edge", Place("third", 55_555, 55_443), proved=True)
        nameless = {"basic": {"client_username": "bridge"}}
        core.bridge({"remote_msg_vpns": [remote("v:edge")], "remote_authentication": nameless})
        await sea.until(lambda: core.runner.record.failures > 0)
        assert core.runner.record.inbound_failure_reason.startswith("location v:edge needs a pass")
        assert sea.dialed == []
        tls = remote("v:edge", tls_enabled=True)
        core.change(
            remote_msg_vpns=Bridge.model_validate({"remote_msg_vpns": [tls]}).remote_msg_vpns
        )
        await sea.until(lambda: bool(sea.dialed))
        assert sea.names == ["edge"]

    voyage(tell)


def test_the_own_router(voyage: Any) -> None:
    """`v:` with the own name is the own listener."""

    async def tell(sea: Any) -> None:
        core = sea.island("core", "yellow")
        runner = core.bridge({"remote_msg_vpns": [remote("v:core")]}, run=False)
        assert runner.approach._address(runner.approach.current) == ("127.0.0.1", 55_555)

    voyage(tell)


def test_a_name_learned_serves_for_reuse(voyage: Any) -> None:
    """A bridge that names no router uses the connection of one that once gave its name, not before."""

    async def tell(sea: Any) -> None:
        core, edge = sea.island("core", "yellow"), sea.island("edge", "blue")
        runner = core.bridge({"remote_msg_vpns": [remote("edge")]}, run=False)
        edge.bridge({"remote_msg_vpns": [remote("core", name="yellow")]})
        await sea.until(lambda: edge.runner.record.is_up)
        assert runner.approach.incoming() is None
        runner.approach.learn("other")
        assert runner.approach.incoming() is None
        runner.approach.learn("edge")
        found = runner.approach.incoming()
        assert found is not None
        assert found[0].location == "edge"
        assert found[1].peer_router == "edge"

    voyage(tell)


def test_out_mappings(voyage: Any) -> None:
    """What goes out is renamed while the bridge that says so is written and enabled."""

    async def tell(sea: Any) -> None:
        core = sea.island("core", "yellow")
        rules = [{"add_prefix": "x", "direction": "out"}]
        written = {"remote_msg_vpns": [remote("h", router="edge")], "topic_mapping": rules}
        approach = core.bridge(written, run=False).approach
        mapping = core.book.out_mappings["yellow", "edge", "blue"]
        assert mapping.apply("a") == "x/a"
        off = Bridge.model_validate(written | {"enabled": False})
        approach.take(off, TlsServerCert())
        assert core.book.out_mappings == {}
        approach.take(Bridge.model_validate(written), TlsServerCert())
        approach.forget()
        assert core.book.out_mappings == {}

    voyage(tell)


def test_choose(voyage: Any) -> None:
    """A remote that is no more written can't be gone to."""

    async def tell(sea: Any) -> None:
        core = sea.island("core", "yellow")
        written = {"remote_msg_vpns": [remote("one", connect_order=1), remote("two")]}
        approach = core.bridge(written, run=False).approach
        one, two = approach.remotes.all()
        terms = approach.choose(two)
        assert terms is not None
        assert approach.current.location == "two"
        approach.take(
            Bridge.model_validate({"remote_msg_vpns": [remote("one", connect_order=1)]}),
            TlsServerCert(),
        )
        assert approach.choose(two) is None
        assert approach.choose(None) is None
        assert approach.choose(one) is not None

    voyage(tell)
