"""The steps of the answer: what happens on the way, and why a bridge or a queue does not take a message."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from explain_asking import ask, lines, step, steps

from vpnrouter.config.load import load
from vpnrouter.config.router import Loaded
from vpnrouter.explain.mesh import MemoryMesh
from vpnrouter.explain.probe import Probe
from vpnrouter.explain.request import (
    BRIDGE,
    ENDPOINT,
    NO,
    Arrival,
    Event,
    ExplainRequest,
    Explanation,
    Subscriber,
)
from vpnrouter.explain.steps import compare
from vpnrouter.explain.visits import visits_of

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_topic_that_is_renamed(pair: Callable[..., list[Loaded]]) -> None:
    """The new name, and the rule that gave it."""
    core = """\
        remote_subscriptions: [a/>]
        topic_mapping: [{add_prefix: far/}]
    queues: {q: {subscriptions: [far/a/>]}}
"""
    told = ask(pair(core=core))
    crossed = step(told, BRIDGE, "yes")
    assert crossed.text.endswith("where it is far/a/b")
    assert lines(crossed)[2] == ("topic mapping: a/b becomes far/a/b", "core.yaml", 12)
    assert told.arrivals[0].topic == "far/a/b"


def test_hop_limit_and_the_way_back(configured: Callable[..., Loaded]) -> None:
    """A chain of three with a bridge each way: too far, and never back over the link that brought it."""
    texts = {}
    for at, name in enumerate("abc"):
        bridges = "".join(
            f"      from-{other}: {{max_ttl: 1, remote_subscriptions: ['>'],"
            " remote_authentication: {basic: {client_username: any, password: p}},"
            f" remote_msg_vpns: [{{name: v, router: {other}, location: '127.0.0.1:{5000 + far}'}}]}}\n"
            for far, other in enumerate("abc")
            if abs(far - at) == 1
        )
        texts[name] = (
            f"listeners: [{{protocol: link, bind: '127.0.0.1:{5000 + at}'}}]\n"
            "msg_vpns:\n  v:\n    authentication: {basic: {enabled: false}}\n"
            "    client_profiles: {default: {allow_bridge_connections_enabled: true}}\n"
            "    client_usernames: {any: {password: p}}\n"
            f"    bridges:\n{bridges}"
        )
    mesh = [configured(text, name) for name, text in texts.items()]
    told = ask(mesh, at=("a", "v"))
    assert [(one.router, one.reason) for one in told.losses] == [("c", "ttl-exceeded")]
    lost = next(one for one in steps(told) if one.reason == "ttl-exceeded")
    assert lost.rules[0].text == "max_ttl: 1, this is bridge 2 on its way"
    back = step(told, BRIDGE, NO)
    assert back.text.endswith("it came over this link, and never goes back over it")


def test_a_message_for_the_queue_of_a_bridge(pair: Callable[..., list[Loaded]]) -> None:
    """Over the bridge it names a queue that is not there: discarded, and the bridge is not held up."""
    edge = "    queues: {out: {subscriptions: [a/>]}}\n"
    core = """\
      bound:
        on_reject: block
        remote_authentication: {basic: {client_username: any}}
        remote_msg_vpns: [{name: blue, location: "127.0.0.1:55555", queue_binding: out}]
    queues: {all: {subscriptions: ['>']}}
"""
    told = ask(pair(edge, core), "$queue/out", mode="persistent")
    assert [(one.router, one.event, one.reason) for one in told.losses] == [
        ("core", "discard", "no-subscription-match")
    ]
    lost = next(one for one in steps(told) if one.reason == "no-subscription-match")
    assert lost.rules[0].text == "the topic names a queue that is not there: $queue/out"


if TYPE_CHECKING:
    from collections.abc import Callable


def test_many_misses_are_counted(pair: Callable[..., list[Loaded]]) -> None:
    """Twenty of a kind; `all_misses` tells all."""
    queues = "    queues: {" + ", ".join(f"q{at}: {{}}" for at in range(50)) + "}\n"
    mesh = pair(queues)
    few = [one for one in steps(ask(mesh)) if one.kind == ENDPOINT]
    assert len(few) == 20
    assert [one for one in steps(ask(mesh)) if "30 queue or topic endpoints more" in one.text]
    assert len([one for one in steps(ask(mesh, all_misses=True)) if one.kind == ENDPOINT]) == 50


CONFIGS = Path(__file__).parents[2] / "configs"
QUESTION = ExplainRequest("edge", "blue", "orders/1", "persistent")
WALL_NS = 1_700_000_000_000_000_000


def arrivals(*told: tuple[str, str, int]) -> tuple[list[tuple[str, int]], list[str]]:
    """What is left of these arrivals (router, queue, count), and the notes."""
    mesh = [load(CONFIGS / "core.yaml"), load(CONFIGS / "edge.yaml")]
    answer = Explanation("orders/1", "persistent", "edge", "blue")
    answer.arrivals = [
        Arrival(
            router,
            "blue" if router == "edge" else "yellow",
            ENDPOINT,
            name,
            "persistent",
            "orders/1",
            count,
        )
        for router, name, count in told
    ]
    memory_mesh = MemoryMesh(mesh, WALL_NS, traced=False)
    compare(answer, memory_mesh, Probe(memory_mesh, QUESTION), b"orders/1")
    return [(one.name, one.count) for one in answer.arrivals], answer.notes


def test_what_is_right_stays() -> None:
    """No note where there is no difference."""
    told = (("edge", "to-core", 1), ("core", "orders", 1))
    assert arrivals(*told) == ([("orders", 1), ("to-core", 1)], [])


def test_what_differs_is_corrected_and_said() -> None:
    """Once and not twice, there and not somewhere else."""
    found, notes = arrivals(("edge", "to-core", 2))
    assert found == [("orders", 1), ("to-core", 1)]
    assert [note.split(" times")[0] for note in notes] == [
        "core/yellow: a message that is not traced comes to endpoint orders 1",
        "edge/blue: a message that is not traced comes to endpoint to-core 1",
    ]


WAY = ("a/v",)


def test_a_direct_and_a_guaranteed_copy_over_one_way() -> None:
    """Each send has its own visit, and what each copy came to stays with it."""
    over = {"bridge": "x", "peer_router": "b", "peer_vpn": "v"}
    back = {"bridge": "x", "peer_router": "a", "peer_vpn": "v", "path": WAY, "hops": 1}
    events = [
        Event("a", "ingress", "v", "t", "persistent"),
        Event("a", "enqueue", "v", "t", "persistent", endpoint="q"),
        Event("a", "bridge_send", "v", "t", "direct", **over),
        Event("a", "bridge_send", "v", "t", "persistent", **over),
        Event("b", "bridge_receive", "v", "t", "direct", **back),
        Event("b", "deliver", "v", "t", "direct", client="c", path=WAY),
        Event("b", "bridge_receive", "v", "t", "persistent", **back),
        Event("b", "enqueue", "v", "t", "persistent", endpoint="end", path=WAY),
    ]
    (root,) = visits_of(events)
    assert [one.event for one in root.events] == ["enqueue"]
    first, second = (came for _, came in root.sends)
    assert first is not None
    assert second is not None
    assert [one.client for one in first.events] == ["c"]
    assert [one.endpoint for one in second.events] == ["end"]
    assert second.keeps("end")
    assert not first.keeps("")


def test_what_nobody_sent_is_not_lost() -> None:
    """A visit without the row of its send hangs below the message VPN that its path names."""
    events = [
        Event("a", "ingress", "v", "t", "direct"),
        Event("b", "bridge_receive", "v", "t", "direct", path=WAY),
    ]
    (root,) = visits_of(events)
    assert [one.place for one in root.unsent] == ["b/v"]


if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("core", "said", "rule"),
    [
        ("        enabled: false\n", "it is down: the bridge is disabled", ("enabled: false", 10)),
        (
            "        paused: true\n        remote_subscriptions: [a/>]\n",
            "the bridge is paused, and asks for no messages",
            ("paused: true", 10),
        ),
        (
            "        remote_subscriptions: [x/>, y/>]\n",
            "no remote subscription of it matches",
            ("remote subscriptions x/>, y/>", 10),
        ),
        (
            "        remote_subscriptions: [a/>, '!a/b']\n",
            "an exception takes this topic away",
            ("remote subscription !a/b", 10),
        ),
        (
            "        remote_subscriptions: [{topic: a/>, selector: \"color = 'red'\"}]\n",
            "the selector is not true of it: color = 'red'",
            ("remote subscription a/>", 10),
        ),
        (
            "        remote_subscriptions: ['#share/g/a/>']\n",
            "another member of its share group got it",
            ("remote subscription #share/g/a/>", 10),
        ),
    ],
)
def test_a_bridge_that_does_not_take_it(
    pair: Callable[..., list[Loaded]], core: str, said: str, rule: tuple[str, int]
) -> None:
    """Each reason, with the line of the bridge's own configuration."""
    other = Subscriber("edge", "blue", (("$share/g/a/#", 0),)) if "#share" in core else None
    subscribers = (other, other) if other is not None else ()
    told = ask(pair(core=core), subscribers=subscribers)
    if other is not None:
        # Members take turns, and the bridge was there first.
        assert step(told, BRIDGE, "yes").rules[0].text == rule[0]
        return
    missed = step(told, BRIDGE, NO)
    assert missed.text.endswith(said)
    assert (missed.rules[0].text, missed.rules[0].line - 1) == rule
    assert Path(missed.rules[0].file).name == "core.yaml"


def test_where_a_message_waits_for_a_paused_bridge(pair: Callable[..., list[Loaded]]) -> None:
    """In the queue to which the bridge is bound; it is not lost."""
    edge = "    queues: {out: {subscriptions: [a/>]}}\n"
    core = """\
      bound:
        paused: true
        remote_authentication: {basic: {client_username: any}}
        remote_msg_vpns: [{name: blue, location: "127.0.0.1:55555", queue_binding: out}]
    queues: {all: {subscriptions: ['>']}}
"""
    told = ask(pair(edge, core), mode="persistent")
    missed = step(told, BRIDGE, NO, "the bridge is paused")
    assert missed.text.endswith("it waits in its queue out: the bridge is paused")
    assert [rule.text for rule in missed.rules] == ["paused: true", "queue_binding: out"]
    assert [(one.router, one.kind, one.name) for one in told.arrivals] == [
        ("edge", "endpoint", "out")
    ]
    assert told.losses == []


def test_a_subscription_that_the_other_side_refuses(pair: Callable[..., list[Loaded]]) -> None:
    """The rule stands in the configuration of the remote, the subscription in one's own."""
    edge = """\
    client_usernames: {any: {acl_profile: closed}}
    acl_profiles:
      closed:
        client_connect: {default_action: allow}
        subscribe_topic: {default_action: disallow, exceptions: [z/>]}
"""
    missed = step(ask(pair(edge, "        remote_subscriptions: [a/>]\n")), BRIDGE, NO)
    assert "was refused there: 403 Subscription ACL Denied" in missed.text
    assert lines(missed) == [
        ("remote subscription a/>", "core.yaml", 11),
        (
            "default_action: disallow of subscribe_topic of ACL profile closed",
            "edge.yaml",
            11,
        ),
        ("client username any", "edge.yaml", 7),
    ]


def test_deliver_to_one_that_somebody_else_got(pair: Callable[..., list[Loaded]]) -> None:
    """A client of the message VPN comes before bridges."""
    told = ask(
        pair(core="        remote_subscriptions: [a/>]\n"),
        properties=(("deliver-to-one", "true"),),
        subscribers=(Subscriber("edge", "blue", (("a/#", 0),), "near"),),
    )
    assert [one.name for one in told.arrivals] == ["near"]
    assert "somebody else got it" in step(told, BRIDGE, NO).text


def test_a_topic_that_the_remote_leaves_out(pair: Callable[..., list[Loaded]]) -> None:
    """The filter was granted, and the ACL profile of the bridge's client username keeps this topic back."""
    edge = """\
    client_usernames: {any: {acl_profile: most}}
    acl_profiles:
      most:
        client_connect: {default_action: allow}
        subscribe_topic: {default_action: allow, exceptions: [z, a/b]}
"""
    missed = step(ask(pair(edge, "        remote_subscriptions: [a/>]\n")), BRIDGE, NO)
    assert missed.text.endswith("its ACL profile leaves this topic out")
    assert lines(missed) == [
        ("remote subscription a/>", "core.yaml", 11),
        ("exception a/b of subscribe_topic of ACL profile most", "edge.yaml", 11),
        ("client username any", "edge.yaml", 7),
    ]


if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("attribute", "size", "reason", "rule"),
    [
        ("ingress_enabled: false", 0, "503 Queue Shutdown", "ingress_enabled: false"),
        ("max_msg_size: 10", 20, "400 Document Is Too Large", "max_msg_size: 10"),
        (
            "max_msg_spool_usage: 1",
            1_000_001,
            "503 Spool Over Quota",
            "max_msg_spool_usage: 1",
        ),
    ],
)
def test_a_queue_that_refuses(
    pair: Callable[..., list[Loaded]], attribute: str, size: int, reason: str, rule: str
) -> None:
    """All or none: who rejects decides for the others, and the publisher is told."""
    edge = f"""\
    queues:
      bad: {{subscriptions: [a/>], {attribute}, reject_msg_to_sender_on_discard_behavior: always}}
      good: {{subscriptions: [a/b]}}
"""
    told = ask(pair(edge), mode="persistent", size=size)
    assert told.arrivals == []
    assert [(one.event, one.reason, one.name) for one in told.losses] == [("reject", reason, "bad")]
    assert told.answer == reason
    refused = next(one for one in steps(told) if one.reason == reason)
    assert [text for text, _, _ in lines(refused)] == [
        rule,
        "reject_msg_to_sender_on_discard_behavior: always",
    ]
    assert "it was refused by bad" in step(told, ENDPOINT, NO, "queue good").text


@pytest.mark.parametrize("behavior", ["never", "when-queue-enabled", "always"])
def test_a_named_queue_that_is_shut_down(pair: Callable[..., list[Loaded]], behavior: str) -> None:
    """Its publisher is told, whatever the queue says of others' messages."""
    edge = f"""\
    queues:
      bad: {{ingress_enabled: false, reject_msg_to_sender_on_discard_behavior: {behavior}}}
"""
    told = ask(pair(edge), mode="persistent", topic="$queue/bad")
    assert told.answer == "503 Queue Shutdown"
    refused = next(one for one in steps(told) if one.reason == told.answer)
    assert "rejects in any case" in lines(refused)[-1][0]
