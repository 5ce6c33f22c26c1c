"""Each reason why a queue does not take a message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from explain_asking import ask, lines, step, steps

from vpnrouter.config.router import Loaded
from vpnrouter.explain.request import ENDPOINT, NO

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
