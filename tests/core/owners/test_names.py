"""Names that clients of several client usernames and protocols give, and what was stored before names had owners."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from vpnrouter.core.guaranteed.endpoint_settings import CONSUME, SUBSCRIPTION
from vpnrouter.management.status.clients import matching, subscription_status
from vpnrouter.management.status.queues import Queues
from vpnrouter.spool import keys
from vpnrouter.wire.amqp.performatives import Attach, Close, Open, Source, Target
from vpnrouter.wire.amqp.types import Described, Symbol
from vpnrouter.wire.mqtt.packets import Connack

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

SOLE = "sole-connection-for-container"
NO_LOCAL: dict[object, object] = {Symbol("no-local"): Described(0x0000_468C_0000_0003, [])}


def opens(
    here: Any, forms: ModuleType, username: str, container: str, *capabilities: str
) -> tuple[Any, str]:
    """A connection of a container, and why it was refused."""
    peer = forms.amqp.Peer(here.world)
    peer.plain(username, "")
    answers = peer.open(container, desired_capabilities=forms.amqp.symbols(*capabilities))
    assert isinstance(answers[0], Open)
    why = [one.error.condition for one in answers if isinstance(one, Close)]
    if not why:
        peer.begin()
    return peer, why[0] if why else ""


def durable(peer: Any, name: str = "s", **more: Any) -> None:
    """Attach a durable subscription."""
    answers = peer.receiver("topic://secret/x", 1, name=name, durable=2, **more)
    assert isinstance(answers[0], Attach)
    assert answers[0].source is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a/b", "c", "d"), ("a", "b/c", "d")),
        (("a", "b/c", "d"), ("a", "b", "c/d")),
        (("a%2Fb", "c", "d"), ("a/b", "c", "d")),
        (("a", "a/b", "c"), ("a/a", "b", "c")),
    ],
)
@pytest.mark.parametrize("capabilities", [(), ("global",), ("shared",), ("shared", "global")])
def test_no_names_run_together(
    stage: Any, forms: ModuleType, one: Any, other: Any, capabilities: tuple[str, ...]
) -> None:
    """Slashes and percent signs in client usernames, containers and names make no two subscriptions one."""
    here = stage()
    peers = []
    for username, container, name in (one, other):
        peer, why = opens(here, forms, username, container)
        assert why == ""
        durable(peer, name, capabilities=forms.amqp.symbols("topic", *capabilities))
        peers.append(peer)
    here.publish(b"1")
    assert [peer.bodies() for peer in peers] == [[b"1"], [b"1"]]
    assert len(here.names()) == 2


@pytest.mark.parametrize("restart", [False, True])
def test_a_container_keeps_no_mqtt_client_out(stage: Any, forms: ModuleType, restart: bool) -> None:
    """An MQTT client takes its client id over from an AMQP connection, which goes on under another name."""
    here = stage()
    world = here.world
    peer, _ = opens(here, forms, "bob", "c", SOLE)
    peer.receiver("topic://secret/x", 1)
    peer.receiver("topic://secret/x", 2, mode=1)
    peer.sender("topic://secret/x", 3)
    mqtt = world.lasting("c", username="ann")
    assert mqtt.sub("secret/x") == 1
    vpn = world.vpn()
    assert peer.connection.client.client_name == "c:2"
    assert vpn.clients["c"] is mqtt.connection.session
    assert set(vpn.clients) >= {"c", "c:2"}
    assert vpn.publishers["c:2"] is peer.connection.publisher
    here.publish(b"1")
    assert mqtt.take() == [b"1"]
    assert peer.bodies() == [b"1", b"1"]
    # And back: its place is free for nobody by the name that it had.
    mqtt.send(forms.Disconnect())
    if restart:
        here.restart()
        again, why = opens(here, forms, "bob", "c", SOLE)
        assert why == ""
        assert again.connection.client.client_name == "c:2"
        return
    assert opens(here, forms, "bob", "c")[1] == "amqp:invalid-field"
    peer.connection.lost("gone")
    assert "c:2" not in vpn.clients
    assert "c:2" not in vpn.publishers
    assert vpn.containers == {}
    assert here.names() == []


def test_links_of_containers_of_one_name_are_apart(stage: Any, forms: ModuleType) -> None:
    """A client that gets a name which another one had before finds none of its links' subscriptions."""
    here = stage()
    ann, _ = opens(here, forms, "ann", "c")
    ann.receiver("topic://secret/x", 1)
    mqtt = here.world.join("c", username="ann")
    mqtt.send(forms.Disconnect())
    bob, _ = opens(here, forms, "bob", "c")
    assert bob.connection.client.client_name == "c"
    bob.receiver("topic://secret/x", 1)
    here.publish(b"1")
    assert ann.bodies() == bob.bodies() == [b"1"]


def test_sole_connections_are_of_a_client_username(stage: Any, forms: ModuleType) -> None:
    """A container that wants to be alone is, among those of its client username; others come and go."""
    here = stage()
    first, why = opens(here, forms, "ann", "c", SOLE)
    assert why == ""
    assert opens(here, forms, "bob", "c", SOLE)[1] == ""
    assert opens(here, forms, "ann", "c")[1] == "amqp:invalid-field"
    assert opens(here, forms, "ann", "c", SOLE)[1] == "amqp:invalid-field"
    first.connection.lost("gone")
    # Two that do not mind: as long as one of them is there, nobody is alone.
    one, two = (opens(here, forms, "ann", "c")[0] for _ in range(2))
    one.connection.lost("gone")
    assert opens(here, forms, "ann", "c", SOLE)[1] == "amqp:invalid-field"
    two.connection.lost("gone")
    assert opens(here, forms, "ann", "c", SOLE)[1] == ""


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("lasts", [False, True])
def test_no_local_means_the_own_container(
    stage: Any, forms: ModuleType, mode: int, lasts: bool
) -> None:
    """What a container of the same name publishes under another client username, or an MQTT client, is not local."""
    here = stage()
    ann, _ = opens(here, forms, "ann", "c")
    bob, _ = opens(here, forms, "bob", "c")
    more = {"durable": 2} if lasts else {}
    ann.receiver("topic://secret/x", 1, name="s", mode=mode, filter=NO_LOCAL, **more)
    for number, peer in enumerate((ann, bob)):
        peer.sender("topic://secret/x", 2)
        peer.send(forms.amqp.message(b"%d" % number), 2)
    here.world.join("c", username="ann").pub("secret/x", b"mqtt")
    here.world.settle()
    found = [one for one in ann.got() if isinstance(one.performative, forms.Transfer)]
    ann.kept = found
    assert ann.bodies() == [b"1", b"mqtt"]


def test_a_subscription_that_lasts_has_a_name(stage: Any, forms: ModuleType) -> None:
    """A durable or shared one without a name, which nobody could find again, is refused."""
    here = stage()
    peer, _ = opens(here, forms, "ann", "c")
    for handle, (name, more) in enumerate(
        [("|1", {"durable": 2}), ("|global", {"capabilities": forms.amqp.symbols("shared")})], 1
    ):
        packet = Attach(
            name, handle, True, source=Source("topic://a", **more), target=Target("here")
        )
        assert forms.refusal(peer.attach(packet)) == "amqp:invalid-field"
    assert here.names() == []


@pytest.mark.parametrize(
    ("form", "stored"),
    [
        ("durable", "#amqp/c/s"),
        ("durable, global", "#amqp//s"),
        ("shared, durable", "#amqp/c/s"),
        ("shared, durable, global", "#amqp//s"),
    ],
)
def test_what_an_earlier_version_stored(
    stage: Any, user: Any, tmp_path: Path, form: str, stored: str
) -> None:
    """A durable subscription stored without an owner in its name is that of who made it, with its messages."""
    here = stage(tmp_path)
    ann = user(here, "amqp", form, "ann")
    assert ann.make() == ""
    ann.leave()
    here.publish(b"1")
    (name,) = here.names()
    endpoint = here.world.vpn().endpoints[SUBSCRIPTION, name]
    key = keys.endpoint(endpoint.number)
    row = json.loads(here.world.store.get(key))
    assert (row["client_username"], row["client_id"]) == ("ann", "c")
    row["name"] = stored
    here.world.spool.ledger.put(key, json.dumps(row).encode())
    here.restart()
    assert here.names() == [name]
    bob = user(here, "amqp", form, "bob")
    assert bob.look_up() == "amqp:not-found"
    assert bob.make() == ""
    assert bob.took() == []
    here.restart()
    assert json.loads(here.world.store.get(key))["name"] == name
    back = user(here, "amqp", form, "ann")
    assert back.make() == ""
    assert back.took() == [b"1"]


def test_the_client_id_of_a_consumer_is_told(stage: Any, forms: ModuleType) -> None:
    """A consumer of a queue has the client's new name where an MQTT client took the old one."""
    here = stage()
    queue = here.world.queue("r", permission=CONSUME)
    peer, _ = opens(here, forms, "bob", "c")
    peer.receiver("queue://r", 1)
    answer = here.world.hello("c", username="ann").received()[0]
    assert isinstance(answer, Connack)
    assert [flow.client_name for flow in queue.flows] == ["c:2"]


@pytest.mark.parametrize(
    ("protocol", "form", "holder", "queue"),
    [
        ("mqtt", "session, QoS 1", "client", "#mqtt/c"),
        ("amqp", "durable", "subscription", "#amqp-durable/{0}/c/s"),
        ("amqp", "shared, durable, global", "subscription", "#amqp-durable/{0}//s"),
        ("amqp", "shared", "subscription", "#amqp-shared/{0}/c/s"),
        ("amqp", "Direct link", "client", ""),
    ],
)
def test_monitoring_tells_whose_it_is(
    stage: Any, user: Any, protocol: str, form: str, holder: str, queue: str
) -> None:
    """Rows of subscriptions and queues have the client username; the names of AMQP's queues have it too."""
    here = stage()
    usernames = ["ann", "bob"] if protocol == "amqp" else ["ann"]
    for username in usernames:
        assert user(here, protocol, form, username).make() == ""
    found = matching(here.world.vpn(), "secret/x")
    rows = [subscription_status("blue", one) for one in found]
    told = [row for row in rows if row.name not in ("watcher", "q")]
    assert sorted((row.holder, row.client_username) for row in told) == [
        (holder, username) for username in usernames
    ]
    queues = Queues(here.world.router, here.world.spool)
    for username in usernames if queue else ():
        status = queues.queue("blue", queue.format(username))
        assert status is not None
        assert status.owner == username
