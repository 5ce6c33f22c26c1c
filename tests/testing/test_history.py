"""What a history holds and how it reads."""

from vpnrouter.testing.history import History, Kind


def test_events_stand_in_order() -> None:
    """Each call is one event, in the order of the calls."""
    history = History()
    history.published("a-1", producer="a", sequence=1, topic="t", targets=("q",))
    history.resent("a-1")
    history.repeated("a-1")
    history.acknowledged("a-1")
    history.delivered("a-1", endpoint="q", redelivered=True, qos=2)
    history.consumed("a-1", endpoint="q")
    history.settled("a-1", endpoint="q")
    history.noted("killed")
    history.published("a-2", producer="a", sequence=2, topic="t", targets=())
    history.rejected("a-2", "0x97")
    assert [event.kind for event in history.events] == [
        Kind.PUBLISHED,
        Kind.RESENT,
        Kind.REPEATED,
        Kind.ACKNOWLEDGED,
        Kind.DELIVERED,
        Kind.CONSUMED,
        Kind.SETTLED,
        Kind.NOTED,
        Kind.PUBLISHED,
        Kind.REJECTED,
    ]
    assert [str(event) for event in history.of("a-1")] == [
        "published a-1 by a to t for q",
        "resent a-1",
        "repeated a-1",
        "acknowledged a-1",
        "delivered a-1 at q QoS 2 redelivered",
        "consumed a-1 at q",
        "settled a-1 at q",
        "-- killed",
    ]
    assert [str(event) for event in history.of("a-2")] == [
        "-- killed",
        "published a-2 by a to t for nobody",
        "rejected a-2 (0x97)",
    ]
