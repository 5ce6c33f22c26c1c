"""What bridges keep of guaranteed messages: positions over connections and restarts, parking lots as written."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.bridges.received_positions import ReceivedPositions
from vpnrouter.config.bridge import Bridge
from vpnrouter.config.router import RouterConfig
from vpnrouter.core.guaranteed.endpoint_settings import PARKING
from vpnrouter.core.message import Message
from vpnrouter.errors import OperationError
from vpnrouter.server.apply.assemble import build_router
from vpnrouter.server.bridges.flows import BridgeFlows, lot_terms
from vpnrouter.server.spool.spool_service import SpoolService
from vpnrouter.spool import keys
from vpnrouter.spool.store import Batch, MemoryStore, Store
from vpnrouter.spool.verify import verify


def written(**fields: Any) -> Bridge:
    """A bridge."""
    remote = {"name": "blue", "location": "h", "queue_binding": "q"}
    return Bridge.model_validate({"remote_msg_vpns": [remote]} | fields)


class Lasting(Store):
    """A store in memory that stays open for the next life."""

    def __init__(self) -> None:
        super().__init__()
        self._inner = MemoryStore(b"s" * 16)
        self.store_id = self._inner.store_id

    def commit(self, batch: Batch) -> None:
        self._inner.commit(batch)

    def get(self, key: bytes) -> bytes | None:
        return self._inner.get(key)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self._inner.scan(prefix)

    def close(self) -> None:
        """Nothing is closed."""


class Life:
    """One life of a router with bridge b in VPN v, over a store that outlives it."""

    def __init__(self, tmp_path: Path, store: Lasting, **fields: Any) -> None:
        bridges = (
            {}
            if fields.pop("without", False)
            else {"b": written(**fields).model_dump(by_alias=True)}
        )
        for bridge in bridges.values():
            bridge.pop("remote_authentication")
        document = {
            "router": {"name": "r", "data_dir": str(tmp_path)},
            "msg_vpns": {"v": {"bridges": bridges}},
        }
        config = RouterConfig.model_validate(document)
        self.router = build_router(config, 1, b"s")
        self.vpn = self.router.vpns["v"]
        self.spooling = SpoolService(self.router, store, config)
        self.flows = BridgeFlows(self.spooling.spool, store, self.spooling.endpoints)
        self.store = store

    def of(self, **fields: Any) -> Any:
        """What bridge b keeps, written so."""
        return self.flows.of(self.vpn, "b", written(**fields))

    @property
    def lot(self) -> Any:
        """The endpoint of its parking lot."""
        return self.vpn.endpoints.get((PARKING, "b"))

    def park(self, flow: Any, *topics: str) -> None:
        """Set messages aside."""
        for topic in topics:
            flow.taker.lot.park(Message(topic.encode(), b""), flow.taker.lanes.found(hash(topic)))
        self.sync()

    def sync(self) -> None:
        """End rounds until nothing is left."""
        spool = self.spooling.spool
        while spool.busy:
            batch = spool.end_round()
            if batch is not None:
                self.store.commit(batch)
                spool.committed()

    def end(self) -> None:
        """The router stops."""
        self.spooling.close()


@pytest.fixture
def store() -> Lasting:
    """A store."""
    return Lasting()


def test_the_terms_of_a_lot() -> None:
    """What is configured in megabytes; all of it may be out at once; 0 is not the last value only."""
    terms = lot_terms(written(max_parked_msg_spool_usage=3))
    assert terms.max_msg_spool_usage == 3_000_000
    assert terms.max_spooled_msg_count == limits.LINK_PARKED
    assert terms.max_delivered_unacked_msgs_per_flow >= limits.LINK_PARKED
    assert not lot_terms(written(max_parked_msg_spool_usage=0)).last_value


def test_a_lot_only_where_the_bridge_parks(tmp_path: Path, store: Lasting) -> None:
    """It comes and goes with the policy, as long as nothing is in it; quota and policy change in place."""
    life = Life(tmp_path, store)
    flow = life.of()
    assert life.lot is None
    flow.change(written(on_reject="park", max_parked_msg_spool_usage=3))
    assert life.lot.settings.max_msg_spool_usage == 3_000_000
    flow.change(written(on_reject="park", max_parked_msg_spool_usage=4))
    assert life.lot.settings.max_msg_spool_usage == 4_000_000
    assert flow.taker.lot.endpoint is life.lot
    flow.change(written(on_reject="skip"))
    assert (life.lot, flow.taker.lot) == (None, None)
    assert flow.taker.lanes.policy == 2
    life.end()


def test_what_is_parked_is_not_left_behind(tmp_path: Path, store: Lasting) -> None:
    """A policy that parks no more, in this life and the next, goes on trying what is parked."""
    life = Life(tmp_path, store, on_reject="park")
    flow = life.of(on_reject="park")
    life.lot.settings.ingress_enabled = True
    life.park(flow, "a", "b", "a")
    flow.change(written())
    assert flow.taker.lot.endpoint.spooled_count == 3
    life.end()
    life = Life(tmp_path, store)
    flow = life.of()
    life.sync()
    assert life.lot.spooled_count == 3
    assert flow.taker.lot.ready
    flow.taker.retry()
    life.sync()
    assert life.lot.spooled_count == 0
    life.end()


def test_a_lot_of_a_bridge_that_is_gone(tmp_path: Path, store: Lasting) -> None:
    """It keeps what it has, shut down, and is there again with the bridge; an empty one goes."""
    life = Life(tmp_path, store, on_reject="park")
    flow = life.of(on_reject="park")
    life.park(flow, "a")
    flow.remove()
    assert (life.lot.spooled_count, life.lot.settings.ingress_enabled) == (1, False)
    flow = life.of(on_reject="park")
    life.sync()
    assert life.lot.settings.ingress_enabled
    assert flow.taker.lot.ready
    flow.taker.retry()
    life.sync()
    assert life.lot.spooled_count == 0
    flow.remove()
    assert life.lot is None
    life.end()


def test_other_lanes(tmp_path: Path, store: Lasting) -> None:
    """What is parked is sorted into the lanes that are written now."""
    life = Life(tmp_path, store, on_reject="park")
    flow = life.of(on_reject="park")
    life.park(flow, "a", "b")
    before = flow.taker.lot
    flow.change(written(on_reject="park", lane_by="partition-key"))
    life.sync()
    assert flow.taker.lot is not before
    assert flow.taker.lot.ready
    assert sum(len(numbers) for numbers in flow.taker.lanes.parked.values()) == 2
    life.end()


def test_positions_stay_with_the_bridge(tmp_path: Path, store: Lasting) -> None:
    """The receiver is the same while the router runs, and knows in the next life what it has taken."""
    life = Life(tmp_path, store)
    flow = life.of()
    flow.taker.accepted.of(b"x" * 16, "q").add(7)
    flow.remove()
    assert life.of().taker is flow.taker
    value = flow.taker.accepted.encode()
    life.end()
    batch = Batch()
    batch.put(keys.bridge("v", "b"), value)
    store.commit(batch)
    life = Life(tmp_path, store)
    assert life.of().taker.accepted.named("q") == {b"x" * 16: [(7, 1)]}
    life.end()


def test_positions_of_bridges_that_are_deleted(
    tmp_path: Path, store: Lasting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Positions of deleted bridges outlive restarts, within bounds of number and days, and leave the store then."""
    life = Life(tmp_path, store, without=True)
    many = limits.LINK_GONE_BRIDGES + 3
    for number in range(many):
        flow = life.flows.of(life.vpn, f"b{number}", written())
        if number != 7:
            # What the remote has settled leaves nothing behind.
            flow.taker.accepted.of(b"x" * 16, "q").add(number)
        batch = Batch()
        batch.put(keys.bridge("v", f"b{number}"), flow.taker.accepted.encode())
        if number != 7:
            store.commit(batch)
        flow.remove()
    life.sync()
    rows = [key for key, _ in store.scan(keys.BRIDGE)]
    assert len(rows) == limits.LINK_GONE_BRIDGES
    assert keys.bridge("v", "b0") not in rows
    assert verify(store) == []
    life.end()
    life = Life(tmp_path, store, without=True)
    life.flows.look_for_gone()
    again = life.flows.of(life.vpn, "b9", written())
    assert again.taker.accepted.named("q") == {b"x" * 16: [(9, 1)]}
    again.remove()
    life.sync()
    later_s = time.time() + (limits.LINK_GONE_DAYS + 1) * 86_400
    monkeypatch.setattr(time, "time", lambda: later_s)
    life.end()
    life = Life(tmp_path, store, without=True)
    kept = life.flows.of(life.vpn, "b10", written())
    life.flows.look_for_gone()
    life.sync()
    assert [key for key, _ in store.scan(keys.BRIDGE)] == [keys.bridge("v", "b10")]
    assert store.get(keys.GONE) is None
    assert kept.taker.accepted.named("q") == {b"x" * 16: [(10, 1)]}
    life.end()


def test_a_bridge_that_was_deleted_while_the_router_was_down(
    tmp_path: Path, store: Lasting
) -> None:
    """The start that does not find it begins to count its days."""
    batch = Batch()
    positions = ReceivedPositions()
    positions.of(b"x" * 16, "q").add(7)
    batch.put(keys.bridge("v", "b"), positions.encode())
    store.commit(batch)
    life = Life(tmp_path, store, without=True)
    life.flows.look_for_gone()
    life.sync()
    ((vpn, name, _),) = json.loads(store.get(keys.GONE) or b"[]")
    assert (vpn, name) == ("v", "b")
    life.of()
    life.sync()
    assert store.get(keys.GONE) is None
    life.end()


def test_damaged_positions(tmp_path: Path, store: Lasting) -> None:
    """A bridge whose positions cannot be read does not start: it would take messages twice."""
    batch = Batch()
    batch.put(keys.bridge("v", "b"), b"\xff")
    store.commit(batch)
    life = Life(tmp_path, store)
    with pytest.raises(OperationError, match="bridge b of message VPN v"):
        life.of()
    life.end()
