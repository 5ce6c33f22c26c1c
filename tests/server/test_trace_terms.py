"""What the `trace` block says arrives in the core."""

from typing import Any

import pytest

from vpnrouter.config.trace import Trace
from vpnrouter.server.traces import terms_of
from vpnrouter.topics.grammar import MQTT, SMF


def written(**given: Any) -> Trace:
    """A block with a directory."""
    return Trace.model_validate({"directory": "t", **given})


def test_without_tracing() -> None:
    """No block, or one that is switched off."""
    assert terms_of(None, 1) is None
    assert terms_of(written(enabled=False), 1) is None


def test_by_default() -> None:
    """Discards and rejects are told, a traceparent counts, none is added."""
    terms = terms_of(written(), 1)
    assert terms is not None
    assert (terms.discards, terms.rejects) == (True, True)
    assert (terms.honours, terms.emits, terms.filters) == (True, False, [])


@pytest.mark.parametrize(
    ("always", "wanted"),
    [([], (False, False)), (["discard"], (True, False)), (["reject"], (False, True))],
)
def test_always(always: list[str], wanted: tuple[bool, bool]) -> None:
    """What is told of messages that are not traced."""
    terms = terms_of(written(always=always), 1)
    assert terms is not None
    assert (terms.discards, terms.rejects) == wanted


def test_the_rest() -> None:
    """Filters in order, those that are off left out, each with draws of its own; traceparent both ways."""
    terms = terms_of(
        written(
            traceparent="ignore",
            emit_traceparent=True,
            filters=[
                {"trace_filter_name": "a", "subscriptions": ["a/*"], "sample": 0.25},
                {"trace_filter_name": "off", "enabled": False},
                {
                    "trace_filter_name": "b",
                    "subscriptions": ["a/*", "b/+"],
                    "topic_syntax": "mqtt",
                    "msg_vpns": ["blue"],
                    "client_usernames": ["ann"],
                    "client_names": ["s*"],
                },
            ],
        ),
        1,
    )
    assert terms is not None
    assert (terms.honours, terms.emits) == (False, True)
    a, b = terms.filters
    assert (a.sampler.rate, b.sampler.rate) == (0.25, 1.0)
    assert [one.dialect for one in a.subscriptions + b.subscriptions] == [SMF, MQTT, MQTT]
    assert (b.vpns, b.usernames, b.names) == (["blue"], ["ann"], ["s*"])
    assert b.fits_topic("b/x")
    assert not b.fits_topic("a/x")
