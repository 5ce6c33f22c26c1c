"""Two routers that stand still, with clients, events and traces, for the tests of the terminal interface."""

import importlib.util
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from vpnrouter.bridges.status import BridgeRates, Rate, RemoteStatus
from vpnrouter.core.vpn import VpnTotals
from vpnrouter.errors import TopicError
from vpnrouter.management.events import EventStatus
from vpnrouter.management.live_traces import TraceBatch, TraceFilter
from vpnrouter.management.status.clients import ClientStatus, SubscriptionStatus

PLACE = Path(__file__).parents[1] / "management" / "standing.py"


def _load() -> Any:
    spec = importlib.util.spec_from_file_location("tui_standing", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


standing = _load()


class StillClients:
    """Clients that stand still, that were handed in; `looked` counts how many were made for an answer."""

    def __init__(self, clients: Sequence[ClientStatus]) -> None:
        self.clients = {(one.msg_vpn_name, one.client_name): one for one in clients}
        self.subscribed: list[SubscriptionStatus] = []
        self.disconnected: list[str] = []
        self.looked = 0

    def client_names(self, msg_vpn: str) -> list[str]:
        return [name for vpn, name in self.clients if vpn == msg_vpn]

    def client(self, msg_vpn: str, client: str) -> ClientStatus | None:
        self.looked += 1
        return self.clients.get((msg_vpn, client))

    def subscriptions(self, msg_vpn: str, client: str) -> list[SubscriptionStatus]:
        return [one for one in self.subscribed if (one.msg_vpn_name, one.name) == (msg_vpn, client)]

    def subscription_count(self, msg_vpn: str) -> int:
        return sum(one.msg_vpn_name == msg_vpn for one in self.subscribed)

    def holders(self, msg_vpn: str) -> list[tuple[str, str]]:
        held = {(one.holder, one.name) for one in self.subscribed if one.msg_vpn_name == msg_vpn}
        return sorted(held)

    def held(self, msg_vpn: str, holder: str, name: str) -> list[SubscriptionStatus]:
        wanted = (msg_vpn, holder, name)
        return [o for o in self.subscribed if (o.msg_vpn_name, o.holder, o.name) == wanted]

    async def matches(self, msg_vpn: str, topic: str, most: int) -> list[SubscriptionStatus]:
        if topic.startswith("bad"):
            raise TopicError("bad topic")
        return [one for one in self.subscribed if one.msg_vpn_name == msg_vpn][:most]

    def disconnect(self, msg_vpn: str, client: str) -> bool:
        self.disconnected.append(client)
        return (msg_vpn, client) in self.clients

    def clear_stats(self, msg_vpn: str, client: str) -> bool:
        return (msg_vpn, client) in self.clients


class StillLog:
    """An EventLog of events that were handed in."""

    def __init__(self) -> None:
        self.log: list[EventStatus] = []

    @property
    def last_event_id(self) -> int:
        return self.log[-1].event_id if self.log else 0

    def after(self, event_id: int, most: int, sees: Any = None) -> list[Any]:
        return [_event(one) for one in self.log if one.event_id > event_id][:most]

    def newest(self, most: int, sees: Any = None) -> list[Any]:
        return [_event(one) for one in self.log[-most:]]


def _event(one: EventStatus) -> Any:
    kind = SimpleNamespace(level_name=one.level, scope=one.scope, name=one.event, area=one.area)
    return SimpleNamespace(
        event_id=one.event_id,
        time_ns=one.time_ns,
        kind=kind,
        msg_vpn=one.msg_vpn_name,
        name=one.name,
        text=one.text,
    )


class StillTraces:
    """A TraceTap over rows that were handed in; `wishes` notes what was asked for."""

    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []
        self.wishes: list[TraceFilter] = []

    def look(self, wish: TraceFilter, after: int, most: int) -> TraceBatch:
        self.wishes.append(wish)
        rows = self.rows[after : after + most]
        return TraceBatch(after + len(rows), rows)


class StillMeters:
    """VpnMeters with rates that were handed in."""

    def __init__(self) -> None:
        self.rates_of: dict[str, int] = {}

    def totals(self, vpn: Any) -> VpnTotals:
        return VpnTotals(5, 6, 7, 8, vpn.discards.counts)

    def rates(self, vpn: Any) -> BridgeRates:
        rate = self.rates_of.get(vpn.name, 0)
        return BridgeRates(rx_msg=Rate(rate), tx_msg=Rate(2 * rate))


class StillRouter(standing.Still):  # type: ignore[misc, name-defined]
    """A router that stands still, with everything else that the API asks of one."""

    def __init__(self, name: str, msg_vpns: list[str], bridges: list[Any]) -> None:
        super().__init__(msg_vpns, bridges, name)
        self.dialling = True
        self.shown = StillClients([])
        self.events = self.context.log = StillLog()
        self.traces = self.context.traces = StillTraces()
        self.meters = self.context.meters = StillMeters()


def application(router: Any, users: dict[str, dict[str, Any]] | None = None) -> Any:
    """The application that tells of a StillRouter."""
    router.context.clients = router.shown
    for msg_vpn, name in router.shown.clients:
        router.router.vpns[msg_vpn].publishers[name] = None
    return standing_application(router, users)


standing_application = standing.application


def serving(
    router: StillRouter, users: Any = None, *, others: bool = False
) -> AbstractContextManager[str]:
    """Serves a router in a thread of its own, with `others` beside it; gives HOST:PORT."""
    app = application(router, users)
    if others:
        # Paths are made ready at the first request, with warnings silenced: two threads at that undo each
        # other's silence.
        app.openapi()
    standing.application = lambda *_: app
    return standing.serving(router, users)


def edge() -> StillRouter:
    """A router with a bridge that is up, one that is down, clients, and a queue that nobody reads."""
    router = StillRouter(
        "edge",
        ["blue", "green"],
        [
            standing.bridge_status(
                "blue",
                "from-core",
                remote_msg_vpn_name="yellow",
                remote_router_name="core",
                remote_address="198.51.100.7:55555",
                outbound_bridge_name="to-edge",
                outbound_state="ready",
                client_name="#bridge/edge/blue/from-core",
                establisher="local",
                rx_msg_rate=1_250,
                tx_msg_rate=40,
                data_rx_msg_count=1_234_567,
                data_tx_msg_count=9_876,
                last_rx_age_ms=120,
                last_tx_age_ms=3_400,
                discarded_tx={"transmit-congestion": 12},
            ),
            standing.bridge_status(
                "green",
                "from-red",
                health="down",
                inbound_state="not-ready-connecting",
                inbound_failure_reason="cannot connect to 198.51.100.9:55555: Connection refused",
                state_age_ms=192_000,
                failure_count=7,
                last_failure_age_ms=4_000,
                uptime=0,
                remotes=(
                    RemoteStatus(
                        "red",
                        "198.51.100.9:55555",
                        1,
                        enabled=True,
                        up=False,
                        last_connection_failure_reason="Connection refused",
                    ),
                ),
            ),
        ],
    )
    router.meters.rates_of = {"blue": 1_250, "green": 3}
    for reason, count in (("transmit-congestion", 12), ("no-subscription-match", 900)):
        router.router.vpns["blue"].discards.add(reason, count)
    router.shown = StillClients(
        [
            ClientStatus(
                "blue",
                f"sensor-{number:02}",
                client_username="sensor",
                client_id=f"sensor-{number:02}",
                client_address=f"192.0.2.{number}:40000",
                client_profile_name="default",
                acl_profile_name="sensors",
                platform="MQTT 5",
                keepalive=60,
                uptime=7_325,
                subscription_count=2,
                rx_msg_count=1_000 * number,
                rx_byte_count=64_000 * number,
                tx_msg_count=10,
                tx_byte_count=640,
                slow_subscriber=number == 3,
            )
            for number in range(1, 9)
        ]
    )
    router.shown.subscribed = [
        SubscriptionStatus("blue", "alerts/#", "mqtt", "client", "sensor-01", 1),
        SubscriptionStatus("blue", "orders/>", "smf", "queue", "orders", 1),
        SubscriptionStatus("blue", "cmd/01", "mqtt", "client", "sensor-01", connected=False),
    ]
    router.queues = standing.StillQueues(
        {
            ("blue", "orders"): {number: ORDER % number for number in range(1, 251)},
            ("blue", "dead"): {},
            ("blue", "raw"): {7: bytes(range(48)), 8: b"\x1b[2Jplain text"},
        }
    )
    router.queues.changes["blue", "orders"] = {
        "bind_count": 0,
        "oldest_msg_age_ms": 3_725_000,
        "max_msg_spool_usage": 1,
        "dead_msg_queue": "dead",
    }
    router.queues.changes["blue", "raw"] = {"bind_count": 2}
    router.events.log = [
        EventStatus(
            number,
            1_795_316_400_000_000_000 + number * 1_000_000_000,
            level,
            "VPN",
            event,
            "green",
            "from-red",
            text,
        )
        for number, (level, event, text) in enumerate(
            [
                ("info", "VPN_BRIDGING_LINK_UP", "bridge from-red is up"),
                ("warning", "VPN_BRIDGING_LINK_DOWN", "Connection refused"),
            ],
            1,
        )
    ]
    router.traces.rows = [
        {
            "ts_ns": 1_795_316_400_000_000_000,
            "router": "edge",
            "vpn": "blue",
            "event": "discard",
            "trace_id": "0123456789abcdef0123456789abcdef",
            "topic": "orders/eu/1",
            "client": "sensor-01",
            "reason": "transmit-congestion",
            "size_bytes": 512,
        }
    ]
    return router


ORDER = b'{"order": %d, "city": "K\xc3\xb6ln", "items": [{"sku": "a-1", "count": 2}]}'


def core() -> StillRouter:
    """The other end of `from-core`."""
    return StillRouter(
        "core",
        ["yellow"],
        [
            standing.bridge_status(
                "yellow",
                "to-edge",
                remote_msg_vpn_name="blue",
                remote_router_name="edge",
                remote_address="198.51.100.3:50123",
                outbound_bridge_name="from-core",
                outbound_state="ready",
                establisher="remote",
                rx_msg_rate=40,
                tx_msg_rate=1_250,
                data_rx_msg_count=9_876,
                data_tx_msg_count=1_234_567,
            )
        ],
    )
