"""What was asked of the sender of a flow, and which answers are wanted."""

import pytest

from vpnrouter.bridges.flow_receiver import FlowBinding
from vpnrouter.bridges.received_positions import ReceivedPositions
from vpnrouter.bridges.remote_settings import FlowSettings
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link.decode import decode
from vpnrouter.wire.link.frames import Bind, Bound

STORE = b"s" * 16


def asked(binding: FlowBinding) -> Bind:
    """The BIND that is due now."""
    data = binding.ask(ReceivedPositions(), FlowSettings())
    frame = decode(data, 0, len(data))
    assert isinstance(frame, Bind)
    return frame


def test_only_the_last_wish_is_asked_for() -> None:
    """Two wishes within one sync are one BIND, for the second."""
    binding = FlowBinding()
    first, second = binding.want("a", 1), binding.want("b", 2)
    assert not binding.due(first)
    assert binding.due(second)
    assert (asked(binding).queue, binding.window) == ("b", 2)


def test_a_sync_that_nobody_was_told_of() -> None:
    """The wish behind it is asked for all the same."""
    binding = FlowBinding()
    binding.want("a", 1)
    binding.give_up()
    binding.over()
    again = binding.want("a", 1)
    assert binding.due(again)
    assert asked(binding).queue == "a"


def test_what_is_not_wanted_any_more_is_not_asked_for() -> None:
    """A wish that was given up before the sync leaves nothing behind."""
    binding = FlowBinding()
    number = binding.want("a", 1)
    binding.give_up()
    binding.over()
    assert not binding.due(number)
    assert not binding.unwanted(Bound(1, 0, 2, 1, STORE))


def test_an_answer_that_comes_too_late() -> None:
    """It is known, once, as the answer to what was given up."""
    binding = FlowBinding()
    assert binding.due(binding.want("a", 1))
    late = Bound(asked(binding).request_id, 0, 2, 1, STORE)
    binding.give_up()
    binding.over()
    assert binding.unwanted(late)
    assert not binding.unwanted(late)


def test_answers() -> None:
    """Yes, no, and to nothing."""
    binding = FlowBinding()
    binding.want("a", 1)
    number = asked(binding).request_id
    with pytest.raises(ProtocolError, match="LINK-40"):
        binding.answered(Bound(number + 1, 0, 2, 1, STORE))
    assert binding.answered(Bound(number, 0, 2, 1, STORE))
    assert not binding.answered(Bound(number, 0xC8, 0, 0, bytes(16)))
    assert binding.queue == ""


def test_flows_that_were_left() -> None:
    """Known until UNBOUND comes, or the link is lost."""
    binding = FlowBinding()
    for flow_id in (2, 4):
        binding.leave(flow_id, 0, "")
    binding.heard(2)
    assert not binding.has_left(2)
    assert binding.has_left(4)
    binding.cut()
    assert not binding.has_left(4)


def test_what_bind_named_is_settled_once() -> None:
    """Of the store that answers, the others stay."""
    binding = FlowBinding()
    accepted = ReceivedPositions()
    accepted.of(STORE, "a").add(7)
    binding.want("a", 1)
    binding.ask(accepted, FlowSettings())
    assert binding.settled(Bound(1, 0, 2, 1, b"t" * 16)) == []
    assert binding.settled(Bound(1, 0, 2, 1, STORE)) == [(7, 1)]
    assert binding.settled(Bound(1, 0, 2, 1, STORE)) == []


def test_what_bound_keeps_is_not_settled() -> None:
    """Ranges that the sender still has are remembered: they come again, and must be known then."""
    binding = FlowBinding()
    accepted = ReceivedPositions()
    for position in (*range(10, 20), 30):
        accepted.of(STORE, "a").add(position)
    binding.want("a", 1)
    binding.ask(accepted, FlowSettings())
    kept = [(12, 3), (30, 1), (99, 5)]
    assert binding.settled(Bound(1, 0, 2, 1, STORE, kept=kept)) == [(10, 2), (15, 5)]
