from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from vpnrouter.topology.digests.suspects import SUSPECT, suspects

pytestmark = pytest.mark.spark


def test_who_got_as_many_as_entered_is_no_suspect(digest_of: Callable[..., DataFrame]) -> None:
    """More and fewer are both suspect, by topic; what entered came from clients and over bridges."""
    here = {"router": "r", "vpn": "v"}

    def row(event: str, topic: str, count: int, **more: Any) -> dict[str, Any]:
        return {**here, "event": event, "topic": topic, "count": count, **more}

    uses = digest_of(
        "uses",
        [
            row("ingress", "a", 5),
            row("bridge_receive", "a", 2, bridge="b"),
            row("deliver", "a", 7, client="all"),
            row("deliver", "a", 8, client="twice"),
            row("deliver", "a", 6, client="missed"),
            row("enqueue", "a", 7, endpoint="q"),
            row("enqueue", "a", 9, endpoint="double"),
            row("deliver", "unheard", 1, client="all"),
            row("bridge_send", "a", 7, client="#bridge/x/y/z", bridge="z"),
        ],
    )
    nowhere = uses.where("false")
    found = suspects(uses, nowhere)
    assert found.columns == SUSPECT
    assert {(one["topic"], one["event"], one["who"]) for one in found.collect()} == {
        ("a", "deliver", "twice"),
        ("a", "deliver", "missed"),
        ("a", "enqueue", "double"),
        ("unheard", "deliver", "all"),
    }
    assert suspects(uses, uses.select("router", "vpn")).count() == 6
