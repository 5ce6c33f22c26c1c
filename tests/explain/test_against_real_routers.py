"""What explain says of a random mesh is what real routers do: sockets, links, spools on disk, MQTT clients."""

from __future__ import annotations

import gc
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import trio
import yaml
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from vpnrouter.core.guaranteed.dead_letters import CONSUMER
from vpnrouter.explain.explain import explain
from vpnrouter.explain.request import CLIENT, ENDPOINT, ExplainRequest, Explanation, Subscriber

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

TOPICS = ("a/b", "a/c", "b/b", "a/b/c")
FILTERS = ("a/>", "a/*", "a/b", ">", "b/>", "*/b")
MQTT_FILTERS = ("a/#", "a/+", "a/b", "#", "b/#", "x/#", "x/a/#")
MAPPINGS: tuple[dict[str, str], ...] = (
    {"add_prefix": "x/"},
    {"from": "a/>", "to": "b/{1}"},
    {"strip_prefix": "a/", "direction": "in"},
    {"add_prefix": "x/", "direction": "out"},
    {"from": "a/*", "to": "c/{1}", "direction": "both"},
)
CI_EXAMPLES = 15


class Mesh(NamedTuple):
    """A mesh as plain documents by router, and the question; `one_way` says that no two ways meet."""

    routers: dict[str, dict[str, Any]]
    request: ExplainRequest
    one_way: bool


def _queue(draw: st.DrawFn) -> dict[str, Any]:
    written: dict[str, Any] = {"subscriptions": draw(_some(FILTERS, most=2))}
    if draw(st.integers(0, 4)) == 0:
        written["subscriptions"] = [*written["subscriptions"], "!a/c"]
    trouble = draw(st.sampled_from(["", "", "", "ingress", "size", "count", "quota"]))
    if trouble == "ingress":
        written["ingress_enabled"] = False
    elif trouble == "size":
        written["max_msg_size"] = 100
    elif trouble == "quota":
        written["max_msg_spool_usage"] = 1
    if trouble:
        written["reject_msg_to_sender_on_discard_behavior"] = draw(
            st.sampled_from(["never", "when-queue-enabled", "always"])
        )
    return written


def _some(values: tuple[str, ...], most: int, least: int = 1) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), unique=True, min_size=least, max_size=most)


def _vpn(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "authentication": {"basic": {"enabled": False}},
        "client_profiles": {
            "default": {"allow_bridge_connections_enabled": True},
            "mute": {"allow_guaranteed_msg_send_enabled": False},
        },
        "client_usernames": {
            "strict": {"acl_profile": "strict"},
            "mute": {"client_profile": "mute"},
            "narrow": {"acl_profile": "narrow", "client_profile": "default"},
        },
        "acl_profiles": {
            "strict": {
                "client_connect": {"default_action": "allow"},
                "publish_topic": {"default_action": "disallow", "exceptions": ["a/b", "b/>"]},
            },
            "narrow": {
                "client_connect": {"default_action": "allow"},
                "subscribe_topic": {"default_action": "disallow", "exceptions": ["a/>", "x/>"]},
            },
        },
        "max_msg_size": draw(st.sampled_from([10_000_000, 10_000_000, 1_500])),
        "queues": {"q": _queue(draw), "p": _queue(draw)},
        "bridges": {},
    }


def _bridge(draw: st.DrawFn, router: str, vpn: str, *, mapped: bool) -> dict[str, Any]:
    subscriptions: list[Any] = list(draw(_some(FILTERS, most=2, least=0)))
    if subscriptions and draw(st.integers(0, 3)) == 0:
        subscriptions[0] = {"topic": subscriptions[0], "selector": "color = 'red'"}
    if len(subscriptions) > 1 and draw(st.integers(0, 3)) == 0:
        subscriptions.append("!a/b")
    remote: dict[str, Any] = {
        "name": vpn,
        "router": router,
        "location": f"127.0.0.1:PORT-{router};",
    }
    if draw(st.booleans()):
        remote["queue_binding"] = draw(st.sampled_from(["q", "p"]))
    if draw(st.integers(0, 3)) == 0:
        remote["client_username"] = "narrow"
    written: dict[str, Any] = {
        "max_ttl": draw(st.sampled_from([8, 8, 1, 2])),
        "remote_authentication": {"basic": {"client_username": "anybody"}},
        "remote_msg_vpns": [remote],
        "remote_subscriptions": subscriptions,
    }
    if draw(st.integers(0, 7)) == 0:
        written["enabled"] = False
    if mapped and draw(st.booleans()):
        written["topic_mapping"] = [draw(st.sampled_from(MAPPINGS))]
    return written


@st.composite
def meshes(draw: st.DrawFn) -> Mesh:
    """Two to four routers with up to six message VPNs; a forest, or anything."""
    names = [f"r{number}" for number in range(draw(st.integers(2, 4)))]
    places = [(name, f"v{number}") for name in names for number in range(draw(st.integers(1, 2)))]
    routers: dict[str, dict[str, Any]] = {
        name: {
            "listeners": [
                {"protocol": "link", "bind": "127.0.0.1:0"},
                *(
                    {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": vpn}
                    for owner, vpn in places
                    if owner == name
                ),
            ],
            "msg_vpns": {vpn: _vpn(draw) for owner, vpn in places if owner == name},
        }
        for name in names
    }
    one_way = draw(st.booleans())
    bound: set[tuple[str, str, str]] = set()
    into: set[tuple[str, str]] = set()
    for there, back in _edges(draw, places, one_way=one_way):
        for source, target in ((there, back), (back, there)):
            if source != there and not draw(st.booleans()):
                continue
            into.add(target)
            written = _bridge(draw, *source, mapped=one_way)
            remote = written["remote_msg_vpns"][0]
            queue = (*source, remote.get("queue_binding", ""))
            if queue in bound:
                # Who of two gets an exclusive queue is chance.
                remote.pop("queue_binding", None)
            bound.add(queue)
            routers[target[0]]["msg_vpns"][target[1]]["bridges"][
                f"from-{source[0]}-{source[1]}"
            ] = written
    router, vpn = draw(st.sampled_from(places))
    topic = draw(st.sampled_from(TOPICS))
    properties = [("color", draw(st.sampled_from(["red", "blue"])))]
    if one_way and draw(st.integers(0, 3)) == 0:
        properties.append(("deliver-to-one", "true"))
    subscribers = tuple(
        Subscriber(
            owner,
            name,
            ((draw(st.sampled_from(MQTT_FILTERS)), draw(st.sampled_from([0, 1]))),),
            f"c{at}",
        )
        for at, (owner, name) in enumerate(places)
        if draw(st.integers(0, 2))
    )
    request = ExplainRequest(
        router,
        vpn,
        topic,
        draw(st.sampled_from(["direct", "persistent"])),
        draw(st.sampled_from(["", "", "strict"])),
        size=draw(st.sampled_from([0, 200, 2_000])),
        properties=tuple(properties),
        subscribers=subscribers,
    )
    return Mesh(routers, request, one_way)


def _edges(
    draw: st.DrawFn, places: list[tuple[str, str]], *, one_way: bool
) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    if one_way:
        # Each is joined to one before it: a tree.
        return [
            (draw(st.sampled_from(places[:at])), place)
            for at, place in enumerate(places)
            if at and draw(st.integers(0, 5))
        ]
    pairs = [(one, two) for at, one in enumerate(places) for two in places[at + 1 :]]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1, max_size=6))
    return [pair if draw(st.booleans()) else (pair[1], pair[0]) for pair in chosen]


@pytest.fixture
def quiet() -> Iterator[None]:
    """Puts back what a running router changes in its interpreter."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def _examples() -> int:
    usual = settings.get_profile("ci").max_examples
    most = settings.default.max_examples if settings.default is not None else usual
    return CI_EXAMPLES if most <= usual else most // 5


def _phases() -> tuple[Phase, ...]:
    """A run of real routers takes a while: only the long profile looks for the smallest one that fails."""
    brief = (Phase.explicit, Phase.generate)
    return brief if _examples() == CI_EXAMPLES else (*brief, Phase.shrink)


@settings(
    max_examples=_examples(),
    phases=_phases(),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(mesh=meshes())
@pytest.mark.usefixtures("quiet")
def test_what_explain_says_is_what_happens(real_mesh: ModuleType, mesh: Mesh) -> None:
    """Everybody gets what explain says, as often as it says; and it is lost where explain says."""
    folder = Path(tempfile.mkdtemp(prefix="explain-"))
    try:
        trio.run(_compare, real_mesh, folder, mesh)
    finally:
        shutil.rmtree(folder)


async def _compare(real_mesh: ModuleType, folder: Path, mesh: Mesh) -> None:
    texts = {name: yaml.safe_dump(written) for name, written in mesh.routers.items()}
    for name, text in texts.items():
        note(f"# {name}\n{text}")
    note(str(mesh.request))
    real = real_mesh.RealMesh(folder, texts)
    async with trio.open_nursery() as nursery:
        configs = await real.start(nursery)
        told = explain(configs, mesh.request)
        note(str(told.as_dict()))
        await _ask(real_mesh, real, mesh, told)
        nursery.cancel_scope.cancel()


async def _ask(real_mesh: ModuleType, real: Any, mesh: Mesh, told: Explanation) -> None:
    request = mesh.request
    down = {(one.router, one.msg_vpn, one.name) for one in told.bridges if not one.up}
    await real.settled(down, set())
    expected = real_mesh.Outcome()
    for arrival in told.arrivals:
        if arrival.kind == ENDPOINT:
            expected.queues[arrival.router, arrival.msg_vpn, arrival.name] += arrival.count
        elif arrival.kind == CLIENT:
            place = (arrival.router, arrival.msg_vpn, arrival.name, arrival.topic)
            expected.clients[place] += arrival.count
    for loss in told.losses:
        if loss.reason == CONSUMER:
            # The bridge at a queue gave it back: that is told where it was not taken.
            continue
        if loss.event == "reject":
            expected.rejected[loss.router, loss.msg_vpn] += loss.count
        elif loss.endpoint:
            expected.refused[loss.router, loss.msg_vpn, loss.name, loss.reason] += loss.count
        elif loss.event == "discard":
            expected.discards[loss.router, loss.msg_vpn, loss.reason] += loss.count
    numbers = {
        (name, vpn): at
        for name, written in mesh.routers.items()
        for at, vpn in enumerate(written["msg_vpns"])
    }
    clients = {}
    for one in request.subscribers:
        client = await real.client(one.router, numbers[one.router, one.msg_vpn], one.name)
        await real_mesh.subscribe(client, *one.filters[0])
        clients[one.router, one.msg_vpn, one.name] = client
    publisher = await real.client(
        request.router,
        numbers[request.router, request.msg_vpn],
        "explain",
        request.client_username or None,
    )
    before = real.counts()
    packet = real_mesh.message(
        request.topic,
        request.size,
        0 if request.mode == "direct" else 1,
        list(request.properties),
    )
    came = await real_mesh.publish_once(real, publisher, clients, packet, expected)
    for client in (publisher, *clients.values()):
        await client.close()
    assert came.clients == expected.clients
    assert came.queues - before.queues == expected.queues
    if mesh.one_way and not any("not traced" in said for said in told.notes):
        # Of copies that meet it is chance which one is the later.
        assert set(came.rejected) == set(expected.rejected)
        if not expected.rejected:
            assert came.refused - before.refused == expected.refused
        assert came.discards - before.discards == expected.discards
