"""Rule: bridges that get more than they can carry."""

from typing import Any, Final

from vpnrouter.topology.findings import ERROR, Finding
from vpnrouter.topology.tables import Rows
from vpnrouter.topology.trouble.bridges import Bridges, Edge, ends, named
from vpnrouter.topology.trouble.losses import TRANSMIT_CONGESTION
from vpnrouter.topology.trouble.words import counted, percent

_SHARE: Final = 0.01
"""Share of a bridge's messages that has to be lost: below, a burst now and then met a full buffer."""

_LEAST: Final = 10
"""Messages that have to be lost: of fewer a share says nothing."""


def hot_bridges(losses: Rows, bridges: Bridges) -> list[Finding]:
    """`losses` of `losses_by_place` in, a `hot_bridge` for each bridge out; `value` is the share lost."""
    lost: dict[Edge, Rows] = {}
    for row in losses:
        if row["event"] == "discard" and row["reason"] == TRANSMIT_CONGESTION:
            edge = bridges.sending(row["router"], row["vpn"], row["client"], row["bridge"])
            if edge is not None:
                lost.setdefault(edge, []).append(row)
    found = []
    for edge, rows in lost.items():
        messages = sum(row["count"] for row in rows)
        share = _share(messages, rows, bridges.rows.get(edge))
        if messages >= _LEAST and share >= _SHARE:
            found.append(
                Finding(
                    kind="hot_bridge",
                    severity=ERROR,
                    **ends(edge),
                    reason=TRANSMIT_CONGESTION,
                    messages=messages,
                    bytes=sum(row["bytes"] or 0 for row in rows),
                    value=share,
                    first_ns=min(row["first_ns"] for row in rows),
                    last_ns=max(row["last_ns"] for row in rows),
                    detail=f"{counted(messages, 'message')}, {percent(share)} of all, found no room on"
                    f" {named(edge)} and were discarded at {edge[0]}/{edge[1]}.",
                )
            )
    return found


def _share(messages: int, rows: Rows, edge: dict[str, Any] | None) -> float:
    """The share lost. Discards may be written of every message and sends of a sample only, so that where
    it is known, what the rows stand for counts.
    """
    if edge is None:
        return 1.0
    weights = [row["weight"] for row in rows]
    sent_estimated = edge["messages_estimated"]
    if sent_estimated is not None and None not in weights:
        lost = float(sum(weights))
        return lost / (lost + sent_estimated) if lost else 0.0
    return messages / (messages + (edge["sent"] or edge["messages"] or 0))
