"""Where a message goes and why: the answer, as data and as a tree, and wrong requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from explain_asking import ask, lines, step
from rich.console import Console

from vpnrouter.config.load import load
from vpnrouter.config.router import Loaded
from vpnrouter.errors import OperationError, TopicError
from vpnrouter.explain import explain as module
from vpnrouter.explain.explain import explain
from vpnrouter.explain.render import tree
from vpnrouter.explain.request import (
    BRIDGE,
    ENDPOINT,
    LOSS,
    NO,
    YES,
    BridgeState,
    ExplainRequest,
    Explanation,
    Rule,
    Step,
    Subscriber,
    UsageError,
    parse_place,
    parse_property,
    parse_subscriber,
)

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIGS = Path(__file__).parents[2] / "configs"


def test_the_example_over_its_queue() -> None:
    """The configurations that come with the router: a queue, the bridge bound to it, a queue there."""
    told = explain(
        [load(CONFIGS / "core.yaml"), load(CONFIGS / "edge.yaml")],
        ExplainRequest("edge", "blue", "orders/1", "persistent"),
    )
    assert [(one.router, one.name, one.mode) for one in told.arrivals] == [
        ("core", "orders", "persistent"),
        ("edge", "to-core", "persistent"),
    ]
    kept = step(told, ENDPOINT, "yes", "queue to-core")
    assert lines(kept) == [("subscription orders/>", "edge.yaml", 27)]
    crossed = step(told, BRIDGE, "yes")
    assert lines(crossed)[0] == ("queue_binding: to-core", "core.yaml", 29)
    assert crossed.rules[1].text == "max_ttl: 8, this is bridge 1 on its way"
    assert not crossed.rules[1].written
    assert lines(crossed.steps[0]) == [("subscription orders/>", "core.yaml", 22)]
    assert told.answer == "0x00 Success"
    assert module.CLIENTS_UNKNOWN in told.notes


def test_the_example_over_its_subscription_to_a_client() -> None:
    """Direct over a remote subscription, to a client that is only thought of."""
    told = explain(
        [load(CONFIGS / "core.yaml"), load(CONFIGS / "edge.yaml")],
        ExplainRequest(
            "edge",
            "blue",
            "weather/x",
            subscribers=(parse_subscriber("core/yellow=weather/#@1"),),
        ),
    )
    assert [(one.kind, one.name, one.mode) for one in told.arrivals] == [
        ("client", "subscriber-1", "direct")
    ]
    crossed = step(told, BRIDGE, "yes")
    assert lines(crossed)[0] == ("remote subscription weather/>", "core.yaml", 30)
    missed = step(told, ENDPOINT, NO, "queue to-core")
    assert missed.text.endswith("no subscription of it matches")


def test_nobody_subscribes(pair: Callable[..., list[Loaded]]) -> None:
    """A message that ends where it began."""
    told = ask(pair())
    assert [(one.event, one.reason) for one in told.losses] == [
        ("discard", "no-subscription-match")
    ]
    assert step(told, BRIDGE, NO).text.endswith("it has no remote subscription")


def test_a_bridge_to_a_router_that_nobody_describes(pair: Callable[..., list[Loaded]]) -> None:
    """The mesh that is known is told, and what is missing."""
    told = ask([pair()[1]], at=("core", "yellow"))
    assert [(one.name, one.up) for one in told.bridges] == [("in", False)]
    assert told.bridges[0].why == "no given file describes router edge"


if TYPE_CHECKING:
    from collections.abc import Callable


def test_as_plain_data(pair: Callable[..., list[Loaded]]) -> None:
    """What JSON shows is everything."""
    told = ask(pair(core="        remote_subscriptions: [a/>]\n"))
    data = told.as_dict()
    assert data["topic"] == "a/b"
    assert data["steps"][0]["steps"][0]["kind"] == BRIDGE
    assert data["steps"][0]["steps"][0]["rules"][0]["line"] == 11


def test_as_far_as_a_message_can_come(configured: Callable[..., Loaded]) -> None:
    """A chain as long as the hop limit allows."""
    link = "remote_authentication: {basic: {client_username: any}}, remote_subscriptions: ['>'], max_ttl: 255"
    vpns = "".join(
        f"  v{at}:\n    authentication: {{basic: {{enabled: false}}}}\n"
        "    client_profiles: {default: {allow_bridge_connections_enabled: true}}\n"
        + (
            f"    bridges: {{b: {{{link}, remote_msg_vpns: [{{name: v{at - 1}, router: r,"
            " location: '127.0.0.1:5000'}]}}\n"
            if at
            else ""
        )
        for at in range(256)
    )
    text = f"listeners: [{{protocol: link, bind: '127.0.0.1:5000'}}]\nmsg_vpns:\n{vpns}"
    told = ask(
        [configured(text, "r")],
        at=("r", "v0"),
        subscribers=(Subscriber("r", "v255", (("#", 0),), "far"),),
    )
    assert [(one.msg_vpn, one.name) for one in told.arrivals] == [("v255", "far")]
    deepest = told.as_dict()["steps"][0]
    depth = 0
    while deepest["steps"]:
        deepest = next(
            (one for one in deepest["steps"] if one["kind"] == BRIDGE), deepest["steps"][0]
        )
        depth += 1
    assert depth == 256
    assert len(json.dumps(told.as_dict(), indent=2)) > 10_000
    assert tree(told).children


def tree_lines(explanation: Explanation) -> list[str]:
    """The tree as text."""
    console = Console(width=200, record=True, file=None, quiet=False)
    with console.capture() as caught:
        console.print(tree(explanation))
    return caught.get().splitlines()


def test_steps_rules_and_bridges() -> None:
    """A mark for each step, a place for each rule, and the bridges that are down."""
    crossed = Step(BRIDGE, YES, "over it", link_ns=2_500_000, count=2)
    crossed.rules = [Rule("max_ttl: 8", "edge.yaml", 7, 3, False), Rule("subscription a/>")]
    crossed.steps = [Step(LOSS, NO, "discarded: [red]")]
    told = Explanation("a/b", "direct", "edge", "blue", steps=[crossed], answer="0x00")
    told.bridges = [
        BridgeState("core", "v", "up", True, "edge/blue", "", Rule("")),
        BridgeState("core", "v", "b", False, "", "the bridge is disabled", Rule("x", "c.yaml", 4)),
    ]
    told.notes = ["nobody knows"]
    assert tree_lines(told) == [
        "a/b direct",
        "├── ✓ over it (2 times) 2.50 ms over the link",
        "│   ├── max_ttl: 8 (the default) edge.yaml:7",
        "│   ├── subscription a/>",
        "│   └── ✗ discarded: [red]",
        "├── bridges that are down",
        "│   └── ✗ b into core/v: the bridge is disabled",
        "│       └── x c.yaml:4",
        "├── · the publisher is told: 0x00",
        "└── note: nobody knows",
    ]


def test_no_command_reaches_the_terminal() -> None:
    """A topic is what a stranger chose."""
    told = Explanation("a\x1b]0;x\x07", "direct", "e", "b", notes=["\x1b[31m"])
    assert "\x1b" not in "\n".join(tree_lines(told))


if TYPE_CHECKING:
    from collections.abc import Callable


def test_wrong_questions(pair: Callable[..., list[Loaded]]) -> None:
    """One clear error each."""
    mesh = pair()
    with pytest.raises(UsageError, match="no configuration describes router x; known: core, edge"):
        ask(mesh, at=("x", "blue"))
    with pytest.raises(UsageError, match="router edge has no message VPN red; it has: blue"):
        ask(mesh, at=("edge", "red"))
    with pytest.raises(TopicError):
        ask(mesh, "a/#")
    with pytest.raises(UsageError, match="the mesh has no message VPN edge/red"):
        ask(mesh, subscribers=(Subscriber("edge", "red", (("#", 0),)),))
    with pytest.raises(UsageError, match="size"):
        ask(mesh, size=-1)
    for text in ("\udcff", "x" * 65_536, "\0"):
        with pytest.raises(UsageError, match="a name or property"):
            ask(mesh, properties=(("name", text),))
    with pytest.raises(UsageError, match="mode"):
        ask(mesh, mode="fast")
    with pytest.raises(OperationError, match="both describe router edge"):
        ask([mesh[0], mesh[0]])
    with pytest.raises(TopicError):
        parse_subscriber("edge/blue=a/#/b")
    for text in ("edge", "/blue", "edge/"):
        with pytest.raises(UsageError):
            parse_place(text)
    with pytest.raises(UsageError):
        parse_property("=x")
