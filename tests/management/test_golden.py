"""What routers in memory show, byte for byte as the files in `golden` have it.

Where a change of what is shown is meant, write the files anew and look at what has changed:

    VPNROUTER_GOLDEN=write python -m pytest tests/management/test_golden.py
"""

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from management_routers import LiveRouter, routers

from vpnrouter.core.discard_reasons import DUPLICATE, TTL_EXCEEDED
from vpnrouter.core.guaranteed.endpoint_settings import CONNECTOR_LINK, PARKING, QUEUE
from vpnrouter.server.connectors.connection_runner import ConnectionRunner
from vpnrouter.server.connectors.runner import ConnectorRunner
from vpnrouter.settings.kinds import CONNECTOR
from vpnrouter.trace.recorder import Recorder

GOLDEN = Path(__file__).parent / "golden"

NEAR = """
listeners: [{protocol: link, bind: "127.0.0.1:55555"}]
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_usernames: {ann: {}, d/e: {}, peer: {password: pw}}
    client_profiles: {default: {allow_bridge_connections_enabled: true}, z: {}}
    acl_profiles:
      a/b: {}
      default: {publish_topic: {exceptions: [secret/>]}}
    queues:
      orders: {subscriptions: [orders], permission: consume}
      for-far: {subscriptions: [far/>]}
      dead: {}
      last: {max_spooled_msg_count: 1, subscriptions: [last]}
      small: {max_spooled_msg_count: 3, subscriptions: [small]}
      small-closed: {ingress_enabled: false, egress_enabled: false, subscriptions: [closed]}
    topic_endpoints: {s: {}, t: {permission: consume}}
    replay_logs: {log: {}}
    bridges:
      both: &far
        remote_authentication: {basic: {client_username: peer, password: pw}}
        remote_msg_vpns: [{name: red, router: far, location: "127.0.0.1:55556"}]
        remote_subscriptions: [a/>, {topic: b/*, deliver_always_enabled: true}]
      from-queue:
        <<: *far
        on_reject: park
        remote_msg_vpns:
          - {name: red, router: far, location: "127.0.0.1:55556", queue_binding: for-near}
          - {name: gone, router: gone, location: "198.51.100.7:55555", enabled: false}
        remote_subscriptions: []
      unbound:
        <<: *far
        remote_msg_vpns:
          - {name: red, router: far, location: "127.0.0.1:55556", queue_binding: no-such-queue}
      "off": {<<: *far, enabled: false}
    connectors:
      to-plant:
        provider: {url: "mqtt://192.0.2.7:1883", name: plant, mqtt_version: "5"}
        links:
          in: {source: {address: plant/#}, target: {topic: AS_SOURCE}, quality_of_service: at-most-once}
          in-1: {source: {address: meters/#}, target: {topic: AS_SOURCE}}
          out:
            source: {topic: to/plant/>}
            target: {address: AS_SOURCE}
            then: park
          "off": {enabled: false, source: {topic: nothing}, target: {address: AS_SOURCE}}
      down:
        provider: {url: "mqtt://192.0.2.8:1883"}
        links: {out: {source: {queue: dead}, target: {address: dead}}}
  a/b:
    authentication: {basic: {enabled: false}}
    queues: {"x,y": {subscriptions: [seven]}}
    bridges:
      "x,y[z]":
        remote_authentication: {basic: {client_username: any}}
        remote_msg_vpns: [{name: gone, router: gone, location: "198.51.100.7:55555"}]
  closed:
    enabled: false
    authentication: {basic: {enabled: false}}
    bridges: {both: *far}
"""

FAR = """
listeners: [{protocol: link, bind: "127.0.0.1:55556"}]
msg_vpns:
  red:
    authentication: {basic: {enabled: false}}
    client_usernames: {ann: {}, peer: {password: pw}}
    client_profiles: {default: {allow_bridge_connections_enabled: true}}
    queues:
      for-near: {subscriptions: [near/>]}
    bridges:
      both:
        remote_authentication: {basic: {client_username: peer, password: pw}}
        remote_msg_vpns:
          - {name: blue, router: near, location: "127.0.0.1:55555", queue_binding: for-far}
        remote_subscriptions: [c/>]
"""

MASKED = re.compile(
    r"^((?:process_|vpnrouter_event_loop_|vpnrouter_run_delay_|vpnrouter_uptime_)\w*(?:\{.*\})?) .*$",
    re.MULTILINE,
)
"""Samples of what the machine does."""

VERSIONS = re.compile(r'(version|build|python)(": ?"|=")[^"]*"')
"""What the build is."""

LEFT_OUT = re.compile(r"/SEMP/v2/(config|action|monitor/about)|/vpnrouter/v1/config|/health/")
"""What is not monitored."""


def still_connector(mine: Any, clock: Any) -> ConnectorRunner:
    """A connector that does not dial; its links are those of one in memory."""

    class StillConnection(ConnectionRunner):
        def _make_links(self) -> Any:
            return mine.links

    class StillConnector(ConnectorRunner):
        def _connection(self, link: str) -> ConnectionRunner:
            names = (self.router, None, self.vpn.name, self.name, link, self.configured, None)
            return StillConnection(*names, {}, draw=lambda: 0.5, clock=clock)

    places = (mine.node.router, None, mine.vpn_name, mine.name, mine.configured, None)
    return StillConnector(*places, clock=clock)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A clock that stands where a test sets it."""
    now = [0]
    monkeypatch.setattr(time, "monotonic_ns", lambda: now[0])
    monkeypatch.setattr(time, "monotonic", lambda: now[0] / 1e9)
    return now


@pytest.fixture
def mesh(tmp_path: Path, clock: list[int]) -> Iterator[list[LiveRouter]]:
    """Two routers after a day's work."""
    # Whose bridges come first dial; a bridge of the other may use the same connection.
    far, near = routers(tmp_path, far=FAR, near=NEAR)
    for each in (near, far):
        each.context.edge.accepts = lambda: (2, 1)
    _connect(near, far)
    _work(near, far)
    _clear(near)
    _set_aside(near)
    near.have_connectors(*_connectors(near))
    near.mesh.wait(3_000)
    clock[0] = near.mesh.now_ns
    with near.traced(tmp_path) as hand_over:
        hand_over()
        yield [near, far]


def _connect(near: LiveRouter, far: LiveRouter) -> None:
    near.connect("blue", "c2", "b/#", "a")
    near.connect("blue", "c1", "a", "c/+/d", "$share/s/a/b", user="d/e")
    near.connect("blue", "c/3,x")
    near.connect("blue", "consumer").bind("$queue/orders")
    near.connect("a/b", "other", "a")
    far.connect("red", "f1", "c/1")
    near.connect("blue", "away", "kept")
    near.clients["away"].lose()


def _work(near: LiveRouter, far: LiveRouter) -> None:
    """Let messages take all ways."""
    near.publish("c1", "orders", *[b"%d" % number for number in range(1, 26)])
    near.publish("c1", "kept", b"1", b"22", b"333")
    near.publish("c2", "small", *[b"small"] * 5)
    near.publish("c2", "closed", b"closed")
    near.publish("c2", "nobody/wants/this", b"nobody")
    near.publish("other", "seven", b"seven")
    near.publish("c1", "far/1", b"one", b"two")
    far.publish("f1", "near/1", b"1", b"2", b"3")
    for topic in ("a/1", "b/2", "b/3", "nobody"):
        far.clients["f1"].publish(topic, b"direct")
    near.clients["c1"].publish("c/1", b"direct")
    near.clients["c1"].publish("to/plant/1", b"direct", qos=1, packet_id=9)
    near.clients["c1"].publish("a", b"retained", retain=True)
    near.mesh.settle()
    bridge = near.bridge("blue", "both").record
    bridge.counters.discard_rx(DUPLICATE, 3)
    bridge.counters.discard_tx(TTL_EXCEEDED, 4)
    bridge.failures += 2
    near.router.vpns["blue"].rejected += 5
    for step in range(4):
        # Rates need samples.
        now_ns = near.mesh.now_ns + step * 1_000_000_000
        for each in (near, far):
            for number, source in enumerate(each.context.bridges.now().values(), step):
                record = source.runner.record if hasattr(source, "runner") else source.record
                record.counters.data_rx(number, 10 * number, now_ns)
                record.counters.data_tx(2 * number, 30 * number, now_ns)
                source.sample(now_ns)


def _clear(near: LiveRouter) -> None:
    """Begin the counts of some objects anew, and go on."""
    context = near.context
    context.bridges["blue", "from-queue"].clear_stats()
    context.bridges["blue", "both"].clear_stats()
    context.queues.clear_stats("blue", "orders")
    context.clients.clear_stats("blue", "c1")
    context.clients.clear_session_stats("blue", "c2")
    near.publish("c1", "orders", b"after")
    near.publish("c1", "far/2", b"after")
    near.clients["c1"].publish("nobody", b"after")
    near.bridge("blue", "both").record.counters.discard_rx(DUPLICATE, 2)


def _set_aside(near: LiveRouter) -> None:
    """Have messages in parking lots and what a flow was told, where all numbers differ."""
    endpoints = near.router.vpns["blue"].endpoints
    orders = endpoints[QUEUE, "orders"]
    first = near.ids("blue", "orders")[0]
    lots = [one for (kind, _), one in endpoints.items() if kind in {PARKING, CONNECTOR_LINK}]
    assert len(lots) > 2
    for number, lot in enumerate(lots, 1):
        for message_id in range(first, first + number):
            assert not orders.copy_message(message_id, lot)
    driver = near.bridge("blue", "from-queue")
    taker, flow = driver.taker, driver.half.flow
    taker.received, taker.taken, taker.refusals = 71, 72, 73
    taker.duplicates, taker.unmatched = 74, 75
    flow.window_closed, flow.queue_msgs, flow.stands_by = 76, 77, True
    near.mesh.settle()


def _connectors(near: LiveRouter) -> list[ConnectorRunner]:
    """The connectors of a router: one is up, with counts that all differ, and one waits."""
    made = []
    for each in near.mesh.connectors:
        runner = still_connector(each, lambda: near.mesh.now_ns)
        now_ns = near.mesh.now_ns
        machine = runner.connections[""].machine
        assert machine.begin(now_ns) or machine.due(now_ns)
        if each.name == "down":
            machine.failed("no route", now_ns, 0.5)
        else:
            machine.reached(now_ns)
            machine.joined(now_ns)
        runner.connections[""].memory.held = 81
        for number, link in enumerate(each.links.all.values(), 1):
            counters = link.counters
            for place, name in enumerate(("messages", "bytes_", "duplicates", "returned")):
                setattr(counters, name, getattr(counters, name) + 100 * number + 7 * place)
            counters.refused, counters.dead_letters = 3 + number, 5 + number
            counters.discarded.add(TTL_EXCEEDED, number)
            counters.discarded.add("one's own", number)
        runner.sample(now_ns)
        made.append(runner)
    return made


async def test_metrics(mesh: list[LiveRouter]) -> None:
    """Samples of all kinds of objects, in both formats, for who sees all and for who sees one message VPN."""
    assert isinstance(mesh[0].router.context.recorder, Recorder)
    users = {"bob": {"password": "pw", "msg_vpns": ["blue"]}}
    for each in mesh:
        async with each.api() as client:
            for name, accept in (
                ("plain", "text/plain"),
                ("openmetrics", "application/openmetrics-text"),
            ):
                answer = await client.get("/metrics", headers={"accept": accept})
                assert answer.status_code == 200
                page = VERSIONS.sub(r"\1\2X\"", MASKED.sub(r"\1 X", answer.text)).replace(
                    '\\"', '"'
                )
                _compare(f"{each.node.name}.metrics.{name}.txt", page)
    async with mesh[0].api(users, auth=("bob", "pw")) as client:
        answer = await client.get("/metrics")
        assert answer.status_code == 200
        _compare("near.metrics.bob.txt", answer.text)


async def test_answers(mesh: list[LiveRouter], tmp_path: Path) -> None:
    """Every path that shows something, with each object that there is."""
    for each in mesh:
        async with each.api() as client:
            described = (await client.get("/SEMP/v2/openapi.json")).json()
            wanted = {
                path
                for path, methods in described["paths"].items()
                if "get" in methods and not LEFT_OUT.match(path) and path != "/metrics"
            }
            parts = []
            seen: set[str] = set()
            for path in sorted(wanted):
                for url in _filled(path, each):
                    answer = await client.get(url)
                    if answer.status_code == 200:
                        seen.add(path)
                    parts.append(f"GET {url} {answer.status_code}\n{_text(answer)}\n")
            if each.node.name == "near":
                assert seen == wanted
        text = VERSIONS.sub(r'\1\2X"', "".join(parts)).replace(str(tmp_path), "FOLDER")
        _compare(f"{each.node.name}.answers.txt", text)


def _filled(path: str, router: LiveRouter) -> Iterator[str]:
    """The path with the names of all objects that are there."""
    found = [("", {})]
    context = router.context
    for part in re.split(r"(\{\w+\})", path):
        found = [
            (url + segment, known | {part: name})
            for url, known in found
            for segment, name in _names(part, known, context)
        ]
    for url, _ in found:
        # What matches is asked with a topic.
        yield f"{url}?topic=a" if path.endswith("/matches") else url


def _names(part: str, known: dict[str, str], context: Any) -> list[tuple[str, str]]:
    """What a part of a path may be: itself, or of each object its segment and its name."""
    if not part.startswith("{"):
        return [(part, "")]
    vpn_name = known.get("{msgVpnName}", "")
    vpn = context.router.vpns.get(vpn_name)
    if part == "{msgVpnName}":
        names = list(context.router.vpns)
    elif part == "{bridgeKey}":
        names = [name for place, name in context.bridges if place == vpn_name]
    elif part == "{remoteKey}":
        bridge = context.bridges[vpn_name, known["{bridgeKey}"]].status(0)
        return [
            (
                ",".join(
                    [_quoted(one.remote_msg_vpn_name), _quoted(one.remote_msg_vpn_location), ""]
                ),
                one.remote_msg_vpn_name,
            )
            for one in bridge.remotes
        ]
    elif part == "{clientName}":
        names = list(context.clients.client_names(vpn_name))
    elif part == "{subscriptionTopic}":
        held = context.clients.subscriptions(vpn_name, known["{clientName}"])
        names = [one.subscription_topic for one in held]
    elif part == "{sessionKey}":
        names = list(context.clients.session_names(vpn_name))
    elif part == "{connectorName}":
        found = context.edge.objects[CONNECTOR].items() if context.edge.objects else ()
        names = [name for msg_vpn, name, _ in found if msg_vpn == vpn_name]
    elif part == "{topicEndpointName}":
        names = ["s", "t"] if vpn_name == "blue" else []
    elif part == "{clientUsername}":
        names = list(vpn.credentials.usernames)
    elif part == "{clientProfileName}":
        names = ["default", "z"]
    elif part == "{aclProfileName}":
        names = ["default", "a/b"]
    elif part == "{queueName}":
        names = list(context.queues.queue_names(vpn_name))
    else:
        assert part == "{msgId}"
        held = context.queues.msgs(vpn_name, known["{queueName}"], 0, 2)
        names = [str(one.msg_id) for one in held]
    suffix = ",auto" if part in {"{bridgeKey}", "{sessionKey}"} else ""
    return [(_quoted(name) + suffix, name) for name in names]


def _quoted(name: str) -> str:
    return "".join(one if one.isalnum() or one in "-._~" else f"%{ord(one):02X}" for one in name)


def _text(answer: Any) -> str:
    if not answer.headers.get("content-type", "").startswith("application/json"):
        return answer.text
    rows = json.loads(answer.text)
    # In one line of the file one attribute, or one object without further ones.
    assert json.dumps(rows, separators=(",", ":"), ensure_ascii=False) == answer.text
    return json.dumps(rows, indent=0, ensure_ascii=False)


async def test_description(mesh: list[LiveRouter]) -> None:
    """The attributes of every answer with their types, and the sums of all that is described."""
    async with mesh[0].api() as client:
        described = (await client.get("/SEMP/v2/openapi.json")).json()
    lines = []
    for path, methods in described.pop("paths").items():
        for method, operation in methods.items():
            lines.append(f"{method} {path} {_sum(operation)}\n")
            answers = operation.get("responses", {}).get("200", {}).get("content", {})
            if LEFT_OUT.match(path):
                continue
            for kind, body in answers.items():
                data = body.get("schema", {}).get("properties", {}).get("data", {})
                row = data.get("items", data).get("properties", {})
                lines += [f"  {kind} {name}: {json.dumps(each)}\n" for name, each in row.items()]
    described["info"].pop("version")
    lines += [f"{key} {_sum(value)}\n" for key, value in described.items()]
    _compare("description.txt", "".join(lines))


def _sum(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def _compare(name: str, text: str) -> None:
    """Compare with a file, or write it."""
    file = GOLDEN / name
    if os.environ.get("VPNROUTER_GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
