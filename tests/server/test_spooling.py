"""The spool of a router from its opening to its end."""

from pathlib import Path
from typing import Any

import pytest
import trio

from vpnrouter.core.guaranteed.endpoint_definition import EndpointDefinition
from vpnrouter.core.guaranteed.endpoint_settings import SESSION
from vpnrouter.core.guaranteed.unit_of_work import REJECTED, SPOOLED
from vpnrouter.core.message import Message
from vpnrouter.errors import OperationError
from vpnrouter.server.apply.assemble import build_router
from vpnrouter.server.spool.spool_service import open_spool, open_store
from vpnrouter.spool import keys
from vpnrouter.spool.rocks_store import RocksStore
from vpnrouter.spool.store import Batch
from vpnrouter.wire.mqtt.packets import Publish, Suback, Subscribe, SubscriptionRequest
from vpnrouter.wire.mqtt.properties import Properties

ONE = "msg_vpns: {blue: {queues: {q: {subscriptions: [a/>]}}}}"
OFF = "guaranteed_msging: {enabled: false}\n"


def test_without_guaranteed_messages(configured: Any, tmp_path: Path) -> None:
    """There is no spool, and no directory for one."""
    config = configured(OFF + ONE)
    router = build_router(config, 7, bytes(16))
    assert open_spool(router, config) is None
    assert router.context.spool is None
    assert not (tmp_path / "data-here").exists()


def test_a_restore_that_was_cut_off(configured: Any, tmp_path: Path) -> None:
    """The router begins with nothing only where there was nothing."""
    old = tmp_path / "data-here" / "spool.old"
    old.mkdir(parents=True)
    with pytest.raises(OperationError, match=r"rename spool\.old to spool"):
        open_store(configured(ONE))
    assert list(old.parent.iterdir()) == [old]


def test_what_waits_is_told(stored: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """How many messages, in one line; nothing of none."""
    one = stored(ONE)
    for _ in range(3):
        assert one.publish("a/1") == SPOOLED
    one.close()
    assert capsys.readouterr().err == ""
    one = stored(ONE)
    assert capsys.readouterr().err == "vpnrouter: 3 messages wait in the spool\n"
    assert one.spooling.spool.usage == one.router.vpns["blue"].spooled_bytes > 0


def test_what_was_not_committed(stored: Any, tmp_path: Path) -> None:
    """A close commits it."""
    one = stored(ONE)
    one.spooling.spool.ledger.put(keys.retained("blue", b"x"), b"row")
    one.close()
    store = RocksStore(tmp_path / "data-here" / "spool", create=False)
    assert store.get(keys.retained("blue", b"x")) == b"row"
    store.close()


def test_damage(configured: Any, tmp_path: Path) -> None:
    """What cannot be read is told by its name, and the store is closed: it can be opened again."""
    place = tmp_path / "data-here" / "spool"
    place.parent.mkdir()
    store = RocksStore(place)
    batch = Batch()
    batch.puts.append((keys.endpoint(4), b"[]"))
    store.commit(batch)
    store.close()
    config = configured(ONE)
    for _ in range(2):
        with pytest.raises(OperationError, match="the definition of endpoint 4 is damaged"):
            open_spool(build_router(config, 7, bytes(16)), config)


def test_the_quota_of_the_router(stored: Any, configured: Any) -> None:
    """A reload changes it; what is there stays."""
    one = stored("guaranteed_msging: {max_msg_spool_usage: 1}\n" + ONE)
    assert one.publish("a/1", bytes(900_000)) == SPOOLED
    assert one.publish("a/1", bytes(900_000)) == REJECTED
    one.spooling.change(
        one.router, configured("guaranteed_msging: {max_msg_spool_usage: 2}\n" + ONE)
    )
    assert one.publish("a/1", bytes(900_000)) == SPOOLED


def test_a_session_that_nobody_has(stored: Any) -> None:
    """The definition of an endpoint without a session is deleted, with its messages."""
    one = stored(ONE)
    number = one.spooling.spool.number()
    definition = EndpointDefinition(number, "blue", SESSION, "gone", True)
    one.spooling.spool.ledger.put(keys.endpoint(number), definition.encode())
    one.commit()
    one = stored(ONE)
    one.commit()
    assert one.spooling.store.get(keys.endpoint(number)) is None
    assert list(one.router.vpns["blue"].endpoints) == [(0, "q")]


OPEN = (
    'listeners: [{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}]\n'
    "msg_vpns: {blue: {authentication: {basic: {enabled: false}}, queues: {q: {subscriptions: [b]}}}}"
)
LASTING = Properties(session_expiry_interval=600)


async def lasting(client: Any, *, clean_start: bool) -> bool:
    """Log in as a client whose session lasts; was it there?"""
    answer = await client.connect("durable", clean_start=clean_start, properties=LASTING)
    return bool(answer.session_present)


async def test_a_session_outlives_the_router(running: Any, client_of: Any, stored: Any) -> None:
    """With its messages; also a start at which its message VPN is not configured."""
    async with running(OPEN) as node:
        client = await client_of(node)
        assert not await lasting(client, clean_start=True)
        await client.send(Subscribe(1, [SubscriptionRequest("a", 1)]))
        assert isinstance(await client.packet(), Suback)
        await client.stream.aclose()
        other = await client_of(node)
        await other.connect("other")
        await other.send(Publish(b"a", b"1", qos=1, packet_id=1))
        await other.packet()
    stored("msg_vpns: {green: {}}").close()
    async with running(OPEN) as node:
        client = await client_of(node)
        assert await lasting(client, clean_start=False)
        assert await client.payload() == b"1"


async def test_without_a_reactor(configured: Any, stored: Any) -> None:
    """Commits are heard of in a trio run as well."""
    one = stored(ONE)
    one.spooling.serve_with(None)
    message = Message(b"a/1", b"1", b"")
    message.persistent = True
    message.qos = 1
    one.spooling.spool.publish(one.router.vpns["blue"], message, one, 0)
    one.spooling.committer.step()
    with trio.fail_after(20):
        while not one.told:
            one.spooling.committer.step()
            await trio.sleep(0.001)
    assert one.told == [SPOOLED]
