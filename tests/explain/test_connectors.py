"""Connectors in the answers: what leaves for a provider, what waits, and what comes back by other connectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from explain_asking import step, steps

from vpnrouter.explain.explain import GOES_ROUND, explain, explain_trace
from vpnrouter.explain.live import live_mesh
from vpnrouter.explain.render import tree
from vpnrouter.explain.request import CONNECTOR, Event, ExplainRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import Loaded
    from vpnrouter.explain.request import Explanation

    Configured = Callable[..., Loaded]

URL = "mqtt://broker:1883"


def text(vpns: dict[str, dict[str, Any]]) -> str:
    """A configuration with these message VPNs, to which everybody may log in."""
    opened = {"authentication": {"basic": {"enabled": False}}, "max_msg_spool_usage": 100}
    return yaml.safe_dump({"msg_vpns": {name: opened | vpn for name, vpn in vpns.items()}})


def connector(links: dict[str, Any], url: str = URL, **more: Any) -> dict[str, Any]:
    """A connector with these links."""
    provider = {"url": url} | more.pop("provider", {})
    return {"provider": provider, "links": links, **more}


def vpn(links: dict[str, Any], queues: Any = None, **more: Any) -> dict[str, Any]:
    """A message VPN with the connector `there`."""
    return {"connectors": {"there": connector(links, **more)}, "queues": queues or {}}


def ask(mesh: list[Loaded], topic: str, mode: str = "persistent", **chosen: Any) -> Explanation:
    """What becomes of a message that is published in edge/blue."""
    live = chosen.pop("live", None)
    return explain(mesh, ExplainRequest("edge", "blue", topic, mode, **chosen), live)


def arrivals(told: Explanation) -> list[str]:
    """Who gets it, in short."""
    return [f"{one.router} {one.kind} {one.name} {one.mode} {one.topic}" for one in told.arrivals]


ONCE = {"quality_of_service": "at-most-once"}
EXACT = {"quality_of_service": "once-and-only-once"}
ALL = {"q": {"subscriptions": [">"]}}


def topic(filter_: str, **more: Any) -> dict[str, Any]:
    """A link that takes copies of topics."""
    selector = more.pop("selector", None)
    target = more.pop("target", None)
    source = {"topic": filter_} | ({"selector": selector} if selector else {})
    return {"source": source, **({"target": {"address": target}} if target else {}), **more}


def queue(**more: Any) -> dict[str, Any]:
    """A link that takes from the queue `q`."""
    link = topic("", **more)
    link["source"] = {**link["source"], "queue": "q"}
    del link["source"]["topic"]
    return link


TAKEN = [
    (topic("a/>", **ONCE), None, "direct", ["connector there/out direct a/b"], "a/b, QoS 0"),
    (topic("a/>", **ONCE), None, "persistent", ["connector there/out direct a/b"], "a/b, QoS 0"),
    (topic("a/>"), None, "persistent", ["connector there/out persistent a/b"], "a/b, QoS 1"),
    (topic("a/>"), None, "direct", ["connector there/out persistent a/b"], "a/b, QoS 1"),
    (topic("a/>", **EXACT), None, "direct", ["connector there/out persistent a/b"], "a/b, QoS 2"),
    (
        topic("*/b", target="far/{1}"),
        None,
        "persistent",
        ["connector there/out persistent far/a"],
        "far/a, QoS 1",
    ),
    (
        topic("a/>", selector="x = 'y'"),
        None,
        "persistent",
        ["connector there/out persistent a/b"],
        "a/b, QoS 1",
    ),
    (
        queue(target="erp/{1}"),
        ALL,
        "persistent",
        ["connector there/out persistent erp/a/b", "endpoint q persistent a/b"],
        "erp/a/b, QoS 1",
    ),
    (
        queue(**ONCE),
        ALL,
        "direct",
        ["connector there/out direct a/b", "endpoint q non_persistent a/b"],
        "a/b, QoS 0",
    ),
]


@pytest.mark.parametrize(("link", "queues", "mode", "expected", "text_"), TAKEN)
def test_a_link_takes_it(
    configured: Configured, link: Any, queues: Any, mode: str, expected: list[str], text_: str
) -> None:
    """From a topic or from a queue, as the link is configured; the answer is that of a message that is not traced."""
    told = ask(
        [configured(text({"blue": vpn({"out": link}, queues)}), "edge")],
        "a/b",
        mode,
        properties=(("x", "y"),),
    )
    assert arrivals(told) == [f"edge {one}" for one in expected]
    found = step(told, CONNECTOR, "yes")
    assert found.text == f"connector there link out takes it to {URL} as topic {text_}"
    assert found.rules[0].text.startswith("source ")
    assert found.rules[0].line > 1
    assert told.losses == []
    assert not [note for note in told.notes if "traced" in note]
    assert not [one for one in steps(told) if "acknowledged" in one.text]
    assert told.as_dict()["arrivals"][0]["kind"] == CONNECTOR


MISSED = [
    (topic("c/>"), None, "its topic filter does not match", "source topic: c/>"),
    (
        topic("a/>", selector="x = 'z'"),
        None,
        "its selector is not true of it: x = 'z'",
        "selector: x = 'z'",
    ),
    (queue(), {"q": {"subscriptions": ["c/>"]}}, "queue q did not get it", "source queue: q"),
    (
        queue(selector="x = 'z'"),
        ALL,
        "it waits in queue q: its selector is not true of it: x = 'z'",
        "source queue: q",
    ),
    (
        topic("a/>", enabled=False, **ONCE),
        None,
        "it is discarded: the link is disabled",
        "enabled: false",
    ),
    (
        topic("a/>", enabled=False),
        None,
        "it waits in its queue: the link is disabled",
        "enabled: false",
    ),
]


@pytest.mark.parametrize(("link", "queues", "why", "rule"), MISSED)
def test_a_link_does_not_take_it(
    configured: Configured, link: Any, queues: Any, why: str, rule: str
) -> None:
    """The first reason that applies, and where it stands."""
    told = ask(
        [configured(text({"blue": vpn({"out": link}, queues)}), "edge")],
        "a/b",
        properties=(("x", "y"),),
    )
    found = step(told, CONNECTOR, "no")
    assert found.text == f"connector there link out does not take it: {why}"
    assert rule in [one.text for one in found.rules]
    assert not [one for one in told.arrivals if one.kind == CONNECTOR]


DOWN = "the connector is down: "


@pytest.mark.parametrize("off", ["connector", "vpn"])
def test_a_connector_that_is_off(configured: Configured, off: str) -> None:
    """It is down, and says why."""
    links = {"kept": topic("a/>"), "once": topic("a/>", **ONCE)}
    document = vpn(links, enabled=off != "connector") | {"enabled": off != "vpn"}
    told = ask([configured(text({"blue": document}), "edge")], "a/b")
    why = "the connector is disabled" if off == "connector" else "message VPN blue is disabled"
    (state,) = told.connectors
    assert (state.up, state.why, state.rule.text) == (False, why, "enabled: false")
    assert f"there of edge/blue: {why}" in str(
        [one.label for one in tree(told).children[1].children]
    )
    if off == "vpn":
        return
    waits, discarded = (step(told, CONNECTOR, "no", f"link {name} ").text for name in links)
    assert waits.endswith(f"it waits in its queue: {DOWN}{why}")
    assert discarded.endswith(f"it is discarded: {DOWN}{why}")
    assert arrivals(told) == ["edge endpoint there/kept persistent a/b"]


# -- over providers ----------------------------------------------------------------------------------


def inward(address: str, **more: Any) -> dict[str, Any]:
    """A link that brings in."""
    target = more.pop("target", None)
    return {"source": {"address": address}, **({"target": target} if target else {}), **more}


V3 = {"provider": {"mqtt_version": "3.1.1"}}
BEHIND: list[tuple[str, dict[str, Any], dict[str, Any], list[str], list[str]]] = [
    (
        "comes in",
        vpn({"out": topic("a/>")}),
        vpn({"in": inward("a/#")}, ALL),
        ["core endpoint q persistent a/b"],
        [],
    ),
    (
        "the lesser quality of service counts",
        vpn({"out": topic("a/>", **EXACT)}),
        vpn({"in": inward("#", **ONCE)}, ALL),
        ["core endpoint q non_persistent a/b"],
        [],
    ),
    (
        "renamed on both sides",
        vpn({"out": topic("*/b", target="far/{1}")}),
        vpn({"in": inward("far/#", target={"topic": "near/{1}"})}, ALL),
        ["core endpoint q persistent near/a"],
        [],
    ),
    (
        "into one queue",
        vpn({"out": topic("a/>")}),
        vpn({"in": inward("a/#", target={"queue": "q"})}, {"q": {}}),
        ["core endpoint q persistent $queue/q"],
        [],
    ),
    (
        "another filter",
        vpn({"out": topic("a/>")}),
        vpn({"in": inward("c/#")}, ALL),
        [],
        [],
    ),
    (
        "another provider",
        vpn({"out": topic("a/>")}),
        vpn({"in": inward("a/#")}, ALL, url="mqtt://other:1883"),
        [],
        [],
    ),
    (
        "nobody there wants it",
        vpn({"out": topic("a/>")}),
        vpn({"in": inward("a/#")}),
        [],
        ["core discard no-subscription-match"],
    ),
    (
        "a message that has visited too many places",
        vpn({"out": topic("a/>")}),
        vpn({"in": inward("a/#")}, ALL, max_ttl=1),
        [],
        ["core discard ttl-exceeded"],
    ),
    (
        "a link that is off",
        vpn({"out": topic("a/>")}),
        vpn({"in": inward("a/#", enabled=False)}, ALL),
        [],
        [],
    ),
    (
        "it does not go back",
        vpn({"out": topic("a/>"), "in": inward("a/#")}, ALL),
        vpn({"in": inward("a/#"), "out": topic(">")}, ALL),
        ["core endpoint q persistent a/b", "edge endpoint q persistent a/b"],
        [],
    ),
    (
        "in MQTT 3.1.1 neither",
        vpn({"out": topic("a/>"), "in": inward("a/#")}, ALL, **V3),
        vpn({"in": inward("a/#"), "out": topic(">")}, ALL, **V3),
        ["core endpoint q persistent a/b", "edge endpoint q persistent a/b"],
        [],
    ),
    (
        "one of a share group",
        {
            "connectors": {
                "there": connector({"out": topic("a/>")}),
            }
        },
        {
            "connectors": {
                "one": connector({"in": inward("$share/g/a/#")}),
                "two": connector({"in": inward("$share/g/a/#")}),
            },
            "queues": ALL,
        },
        ["core endpoint q persistent a/b"],
        [],
    ),
]


@pytest.mark.parametrize(
    ("edge", "core", "expected", "lost"),
    [case[1:] for case in BEHIND],
    ids=[case[0] for case in BEHIND],
)
def test_behind_a_provider(
    configured: Configured, edge: Any, core: Any, expected: list[str], lost: list[str]
) -> None:
    """What leaves comes in where another connector of the mesh is linked to the same provider."""
    mesh = [configured(text({"blue": edge}), "edge"), configured(text({"red": core}), "core")]
    told = ask(mesh, "a/b")
    sent = [one for one in arrivals(told) if "connector" in one]
    assert len(sent) == 1
    assert [one for one in arrivals(told) if one not in sent] == expected
    losses = [f"{one.router} {one.event} {one.reason}" for one in told.losses]
    assert losses == lost
    came = [one for one in steps(told) if one.text.startswith("comes from")]
    assert bool(came) is ("core" in str(expected) or "no-subscription-match" in str(lost))
    for one in came:
        assert one.text.startswith(f"comes from {URL} by connector ")
        assert " into core/red" in one.text
    assert not [note for note in told.notes if "traced" in note]


def around(**more: Any) -> str:
    """Two message VPNs, with two providers between them: p takes from blue to red, q from red to blue."""
    p, q = "mqtt://p:1883", "mqtt://q:1883"
    both = {"there": connector({"in": inward("#", **ONCE)}, p, **more)}
    both["back"] = connector({"out": topic(">", **ONCE)}, q, **more)
    blue = {"there": connector({"out": topic(">", **ONCE)}, p, **more)}
    blue["back"] = connector({"in": inward("#", **ONCE)}, q, **more)
    return text({"blue": {"connectors": blue}, "red": {"connectors": both}})


def test_a_circle_of_two_providers(configured: Configured) -> None:
    """In MQTT 5 the path ends it."""
    told = ask([configured(around(), "edge")], "a/b", "direct")
    assert arrivals(told) == [
        "edge connector there/out direct a/b",
        "edge connector back/out direct a/b",
    ]
    assert [(one.msg_vpn, one.reason, one.name) for one in told.losses] == [
        ("blue", "loop-detected", "#connector/back")
    ]
    assert step(told, CONNECTOR, "no", "does not come from mqtt://q:1883").reason == "loop-detected"


def test_a_circle_without_a_path(configured: Configured) -> None:
    """In MQTT 3.1.1 nothing ends it; the answer does."""
    told = ask([configured(around(**V3), "edge")], "a/b", "direct")
    assert GOES_ROUND in told.notes
    assert len(told.as_dict()["arrivals"]) < 100


def test_from_a_provider_over_a_bridge(configured: Configured) -> None:
    """What came from a provider leaves to it nowhere in the mesh."""
    far = connector({"in": inward("a/#", **ONCE)})
    home = {
        "authentication": {"basic": {"enabled": False}},
        "max_msg_spool_usage": 100,
        "client_profiles": {"default": {"allow_bridge_connections_enabled": True}},
    }
    document = {
        "listeners": [{"protocol": "link", "bind": "127.0.0.1:5000"}],
        "msg_vpns": {
            "blue": {**home, "connectors": {"there": connector({"out": topic("a/>", **ONCE)})}},
            "red": {**home, "connectors": {"far": far}},
            "green": {
                **home,
                "connectors": {"last": connector({"out": topic("a/>", **ONCE)})},
                "bridges": {
                    "over": {
                        "remote_authentication": {"basic": {"client_username": "any"}},
                        "remote_msg_vpns": [
                            {"name": "red", "router": "edge", "location": "127.0.0.1:5000"}
                        ],
                        "remote_subscriptions": [">"],
                    }
                },
            },
        },
    }
    told = ask([configured(yaml.safe_dump(document), "edge")], "a/b", "direct")
    assert arrivals(told) == ["edge connector there/out direct a/b"]
    assert step(told, CONNECTOR, "no", "connector last").text.endswith(
        "it does not go back to a provider from which it came"
    )
    assert ("green", "loop-detected") in [(one.msg_vpn, one.reason) for one in told.losses]


# -- live --------------------------------------------------------------------------------------------


class Router:
    """The management API of a router with one connector in one of its states."""

    def __init__(self, loaded: Loaded, connectors: list[dict[str, Any]], **rows: Any) -> None:
        self._loaded = loaded
        self._connectors = connectors
        self._rows = rows

    def config(self) -> dict[str, Any]:
        name = self._loaded.config.router.name
        return {"document": self._loaded.positions.data, "routerName": name, "file": name}

    def connectors(self) -> list[dict[str, Any]]:
        return self._connectors

    def queues(self) -> list[dict[str, Any]]:
        return list(self._rows.get("queues", ()))

    def bridges(self) -> list[dict[str, Any]]:
        return []

    def subscriptions(self, **_: Any) -> list[dict[str, Any]]:
        return []


def row(state: str, failure: str = "", vpn_: str = "blue", **links: tuple[str, str]) -> Any:
    """A connector as the API shows it."""
    return {
        "msgVpnName": vpn_,
        "connectorName": "there",
        "state": state,
        "failure": failure,
        "provider": "mqtt://second:1884",
        "protocol": "MQTT 5",
        "links": [
            {"linkName": name, "state": stands, "stateReason": reason}
            for name, (stands, reason) in links.items()
        ],
    }


WAITS = "it waits in its queue: "
STATES = [
    (row("up"), "direct", True, "to mqtt://second:1884 as topic a/b"),
    (row("waiting", "no route"), "direct", False, f"it is discarded: {DOWN}no route"),
    (row("waiting", "no route"), "persistent", False, f"{WAITS}{DOWN}no route"),
    (row("stopped", "refused"), "persistent", False, f"{WAITS}{DOWN}refused"),
    (row("connecting"), "direct", False, f"it is discarded: {DOWN}connecting"),
    (row("up", out=("up", "")), "direct", True, "as topic a/b"),
    (
        row("up", out=("refused", "QoS 1 at most")),
        "persistent",
        False,
        f"{WAITS}the link is refused: QoS 1 at most",
    ),
    (
        row("up", out=("refused", "no")),
        "direct",
        False,
        "it is discarded: the link is refused: no",
    ),
    (
        row("up", out=("stopped", "a/b, id 7: too large")),
        "persistent",
        False,
        f"{WAITS}the link is stopped: a/b, id 7: too large",
    ),
    (
        row("up", out=("opening", "")),
        "persistent",
        False,
        f"{WAITS}the link is refused: the provider has not answered for it",
    ),
]


@pytest.mark.parametrize(("connectors", "mode", "up", "text_"), STATES)
def test_the_state_of_the_moment(
    configured: Configured, connectors: Any, mode: str, up: bool, text_: str
) -> None:
    """What a running router reports of its connector decides whether a message leaves, waits or is discarded."""
    link = topic("a/>", **(ONCE if mode == "direct" else {}))
    loaded = configured(text({"blue": vpn({"out": link})}), "edge")
    live = live_mesh([Router(loaded, [connectors])])  # type: ignore[list-item]
    told = ask(live.mesh, "a/b", mode, live=live)
    found = step(told, CONNECTOR, "yes" if up else "no")
    assert text_ in found.text
    kinds = [one.kind for one in told.arrivals]
    assert kinds == (["connector"] if up else [] if mode == "direct" else ["endpoint"])
    troubled = [one for one in connectors["links"] if one["state"] in ("refused", "stopped")]
    assert len([note for note in told.notes if note.startswith("link out of")]) == len(troubled)


@pytest.mark.parametrize("held", [False, True])
def test_a_link_that_is_held(configured: Configured, held: bool) -> None:
    """What it brings in waits behind what was refused."""
    why = "503 Spool Over Quota"
    near = configured(text({"blue": vpn({"out": topic("a/>")})}), "edge")
    far = configured(text({"red": vpn({"in": inward("a/#")}, ALL)}), "core")
    states = {"in": ("held", why)} if held else {}
    clients = [Router(near, [row("up")]), Router(far, [row("up", vpn_="red", **states)])]
    live = live_mesh(clients)  # type: ignore[arg-type]
    told = ask(live.mesh, "a/b", live=live)
    assert ("core endpoint q persistent a/b" in arrivals(told)) is not held
    text_ = f"waits before core/red: the link is held now: {why}" if held else "into core/red"
    assert step(told, CONNECTOR, "no" if held else "yes", "by connector there").text.endswith(text_)


PAUSED: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({"paused": True}, {}, "persistent", f"{WAITS}the link is paused"),
    ({}, {"paused": True}, "persistent", f"{WAITS}the connector is paused"),
    ({"paused": True, **ONCE}, {}, "direct", "it is discarded: the link is paused"),
    ({**ONCE}, {"paused": True}, "direct", "it is discarded: the connector is paused"),
]


@pytest.mark.parametrize(("link", "whole", "mode", "text_"), PAUSED)
@pytest.mark.parametrize("runs", [False, True])
def test_a_link_that_is_paused(
    configured: Configured,
    link: dict[str, Any],
    whole: dict[str, Any],
    mode: str,
    text_: str,
    runs: bool,
) -> None:
    """A guaranteed message waits for it, by whichever switch; that is the same of a running router."""
    loaded = configured(text({"blue": vpn({"out": topic("a/>", **link)}, **whole)}), "edge")
    state = row("paused" if whole else "up", out=("paused", ""))
    live = live_mesh([Router(loaded, [state])]) if runs else None  # type: ignore[list-item]
    told = ask([loaded] if live is None else live.mesh, "a/b", mode, live=live)
    found = step(told, CONNECTOR, "no")
    assert text_ in found.text
    assert "paused: true" in [rule.text for rule in found.rules]
    assert [one.kind for one in told.arrivals] == (["endpoint"] if mode == "persistent" else [])
    note = "link out of connector there of edge/blue is paused now"
    assert told.notes.count(note) == (1 if runs else 0)


@pytest.mark.parametrize("mode", ["persistent", "direct"])
def test_what_comes_in_by_a_link_that_is_paused(configured: Configured, mode: str) -> None:
    """It is set aside, or discarded where it comes at most once."""
    more = ONCE if mode == "direct" else {}
    near = configured(text({"blue": vpn({"out": topic("a/>", **more)})}), "edge")
    paused = {**inward("a/#"), **more, "paused": True}
    far = configured(text({"red": vpn({"in": paused}, ALL)}), "core")
    told = ask([near, far], "a/b", mode)
    assert not [one for one in told.arrivals if one.router == "core"]
    found = step(told, CONNECTOR, "no", "by connector there").text
    if mode == "persistent":
        assert found.endswith("waits before core/red: the link is paused")
    else:
        assert "does not come" in found
        assert found.endswith("(paused)")


def test_a_queue_of_a_link_that_is_full(configured: Configured) -> None:
    """What waits for the link counts for its bounds."""
    loaded = configured(text({"blue": vpn({"out": topic("a/>")})}), "edge")
    full = {"msgVpnName": "blue", "queueName": "#connector/there/out", "msgCount": 5}
    router = Router(loaded, [row("waiting", "gone")], queues=[{**full, "msgSpoolUsage": 1 << 33}])
    live = live_mesh([router])  # type: ignore[list-item]
    told = ask(live.mesh, "a/b", live=live)
    assert told.arrivals == []
    assert [one.event for one in told.losses] != []


# -- traces ------------------------------------------------------------------------------------------


def event(name: str, **more: Any) -> Event:
    """A row of a trace."""
    place = {"router": "edge", "vpn": "blue", "topic": "a/b", "mode": "persistent"}
    return Event(event=name, **{**place, "message_id": 7, **more})


FAR = {"router": "core", "vpn": "red", "message_id": 8}
WAY = ("edge/blue", URL)
ROWS = {
    "once": [event("deliver", client="#connector/there/once", mode="direct")],
    "kept": [
        event("enqueue", endpoint="there/kept"),
        event("deliver", endpoint="there/kept", client="#connector/there/kept"),
        event("acknowledge", endpoint="there/kept", client="#connector/there/kept"),
    ],
    "work": [
        event("enqueue", endpoint="q"),
        event("deliver", endpoint="q", client="#connector/there/work"),
        event("acknowledge", endpoint="q", client="#connector/there/work"),
    ],
}


@pytest.mark.parametrize("link", ROWS)
def test_a_trace(configured: Configured, link: str) -> None:
    """The rows of a message that left by a link, and of its entry into another router, which has no path."""
    links = {"once": topic("a/>", **ONCE), "kept": topic("a/>"), "work": queue()}
    near = configured(text({"blue": vpn(links, ALL)}), "edge")
    far = configured(text({"red": vpn({"in": inward("a/#")}, ALL)}), "core")
    rows = [
        event("ingress", client="c"),
        *ROWS[link],
        event("ingress", client="#connector/there", **FAR),
        event("enqueue", endpoint="q", path=WAY, **FAR),
    ]
    told = explain_trace("0" * 32, rows, [near, far])
    (sent,) = [one for one in told.arrivals if one.kind == CONNECTOR]
    assert (sent.name, sent.router) == (f"there/{link}", "edge")
    assert step(told, CONNECTOR, "yes").text == f"connector there link {link} takes it to {URL}"
    assert not [one for one in steps(told) if "acknowledged" in one.text]
    (root,) = told.steps
    assert [one.text for one in root.steps if "came to core/red" in one.text]
    assert ("core", "endpoint", "q") in [(one.router, one.kind, one.name) for one in told.arrivals]


AMQP = "amqp://broker:5672"


@pytest.mark.parametrize(
    ("target", "sources", "addressed", "came"),
    [
        ("queue://far", ["queue://far", "queue://other"], "queue://far", ["far"]),
        ("queue://far", ["topic://far"], "queue://far", []),
        ("topic://{1}", ["topic://a", "topic://b"], "topic://a", ["a"]),
        ("AS_SOURCE", ["out/a"], "out/a", ["out/a"]),
    ],
)
def test_at_a_broker_of_amqp(
    configured: Configured, target: str, sources: list[str], addressed: str, came: list[str]
) -> None:
    """An address is no filter: what is sent to one comes by the links that take from the same."""
    out = {"l": {"source": {"topic": "out/*"}, "target": {"address": target}}}
    back = {
        str(number): {"source": {"address": source}, "target": {"topic": "back/{1}"}}
        for number, source in enumerate(sources)
    }
    mesh = [
        configured(
            text(
                {
                    "blue": vpn(out, url=AMQP),
                    "green": vpn(back, url=AMQP, queues={"q": {"subscriptions": ["back/>"]}}),
                }
            ),
            "edge",
        )
    ]
    told = ask(mesh, "out/a")
    text_of_it = f"takes it to {AMQP} for {addressed}, duplicates-ok"
    assert [one for one in steps(told) if text_of_it in one.text]
    assert [one.topic for one in told.arrivals if one.name == "q"] == [
        f"back/{name}" for name in came
    ]


CHANGING = [
    {"when": "site IS NULL", "set_property": {"site": "oslo"}},
    {"topic": "{topic}/{payload:/kind}"},
    {"when": "site = 'rome'", "priority": 9},
    {"payload_at": "/data"},
]


@pytest.mark.parametrize("mode", ["direct", "persistent"])
def test_what_steps_do(configured: Configured, mode: str) -> None:
    """Each step of a link outward, and of one behind the provider, is told with what it changes."""
    links = {"out": topic("out/>", transform=CHANGING)}
    back = {"in": {"source": {"address": "out/#"}, "transform": [{"priority": 7}, {"priority": 7}]}}
    mesh = [
        configured(text({"blue": vpn(links), "red": vpn(back, ALL)}), "edge"),
    ]
    told = ask(mesh, "out/a", mode, payload='{"kind":"k","data":"text"}')
    shown = "\n".join(one.text for one in steps(told))
    for line in (
        "takes it to mqtt://broker:1883 as topic out/a/k",
        "step 1 (set_property site): property site nothing becomes oslo",
        "step 2 (topic {topic}/{payload:/kind}): topic out/a becomes out/a/k",
        "step 3 (priority 9) leaves it as it is: site = 'rome' is not true of it",
        'step 4 (payload_at /data): payload {"kind":"k","data":"text"} becomes text',
        "step 1 (priority 7): priority 4 becomes 7",
        "step 2 (priority 7): it is so already",
    ):
        assert line in shown, shown


@pytest.mark.parametrize("mode", ["direct", "persistent"])
def test_what_a_step_cannot_change(configured: Configured, mode: str) -> None:
    """It is told which step, and why."""
    mesh = [configured(text({"blue": vpn({"out": topic("out/>", transform=CHANGING)})}), "edge")]
    shown = "\n".join(one.text for one in steps(ask(mesh, "out/a", mode, size=3)))
    assert (
        "step 2 (topic {topic}/{payload:/kind}) cannot change it: its payload is no JSON" in shown
    )
    if mode == "persistent":
        assert (
            "does not take it: a step of its transform cannot change it (not-transformed)" in shown
        )
