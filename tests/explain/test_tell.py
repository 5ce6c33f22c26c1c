"""What happens on the way: renamed, too far, never back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explain_asking import ask, lines, step, steps

from vpnrouter.config.router import Loaded
from vpnrouter.explain.request import BRIDGE, NO

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
