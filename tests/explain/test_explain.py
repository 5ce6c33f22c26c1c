"""Where a message goes, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from explain_asking import ask, lines, step

from vpnrouter.config.load import load
from vpnrouter.config.router import Loaded
from vpnrouter.explain import explain as module
from vpnrouter.explain.explain import explain
from vpnrouter.explain.request import BRIDGE, ENDPOINT, NO, ExplainRequest, parse_subscriber

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
