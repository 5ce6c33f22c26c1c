"""Questions about two routers, edge and core, and where to look in the answers; loaded by conftest.py."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vpnrouter.explain.explain import explain
from vpnrouter.explain.request import ExplainRequest

if TYPE_CHECKING:
    from vpnrouter.config.router import Loaded
    from vpnrouter.explain.request import Explanation, Step

EDGE = """\
listeners: [{protocol: link, bind: "127.0.0.1:55555"}]
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_profiles: {default: {allow_bridge_connections_enabled: true}}
"""

CORE = """\
listeners: [{protocol: link, bind: "127.0.0.1:55556"}]
msg_vpns:
  yellow:
    authentication: {basic: {enabled: false}}
    client_profiles: {default: {allow_bridge_connections_enabled: true}}
    bridges:
      in:
        remote_authentication: {basic: {client_username: any}}
        remote_msg_vpns: [{name: blue, router: edge, location: "127.0.0.1:55555"}]
"""


def steps(explanation: Explanation) -> list[Step]:
    """All steps, a parent before its children."""
    found = list(explanation.steps)
    for step in found:
        found += step.steps
    return found


def step(explanation: Explanation, kind: str, verdict: str, text: str = "") -> Step:
    """The one step of a kind and verdict whose text has `text` in it."""
    found = [
        one
        for one in steps(explanation)
        if one.kind == kind and one.verdict == verdict and text in one.text
    ]
    assert len(found) == 1, [one.text for one in steps(explanation)]
    return found[0]


def lines(found: Step) -> list[tuple[str, str, int]]:
    """Text, file and line of the rules of a step, in order."""
    return [(rule.text, Path(rule.file).name, rule.line) for rule in found.rules]


def ask(mesh: list[Loaded], topic: str = "a/b", **chosen: Any) -> Explanation:
    """What becomes of a message published into blue on edge."""
    place = chosen.pop("at", ("edge", "blue"))
    return explain(mesh, ExplainRequest(*place, topic, **chosen))
