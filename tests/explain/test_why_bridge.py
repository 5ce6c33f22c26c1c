"""Each reason why a bridge does not take a message."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from explain_asking import ask, lines, step

from vpnrouter.config.router import Loaded
from vpnrouter.explain.request import BRIDGE, NO, Subscriber

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("core", "said", "rule"),
    [
        ("        enabled: false\n", "it is down: the bridge is disabled", ("enabled: false", 10)),
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
