from typing import Any

import pytest

from vpnrouter.bridges.flow_receiver import FlowAcks
from vpnrouter.bridges.flow_sender import FlowCallbacks
from vpnrouter.core.guaranteed import spool
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import frames
from vpnrouter.wire.link.decode import decode


class Ear(FlowCallbacks):
    """Hears what is said."""

    def __init__(self) -> None:
        self.said: list[Any] = []
        self.stalls: list[str] = []

    def say(self, data: bytes) -> None:
        self.said.append(decode(data, 0, len(data)))

    def stalled(self, reason: str) -> None:
        self.stalls.append(reason)

    def released(self) -> None:
        self.stalls.append("released")


def opened(window: int = 3) -> tuple[FlowAcks, Ear]:
    """The answers of a flow that stands."""
    answers, ear = FlowAcks(), Ear()
    answers.owner = ear
    answers.opened(7, window)
    return answers, ear


def test_outcomes_come_before_the_acknowledgement_and_refusals_behind() -> None:
    """SETTLED, ACK, REJECT, each about the right message (LINK-43)."""
    answers, ear = opened()
    for position in (1, 2, 3):
        answers.came(position)
    answers.refused(3, "503 Spool Over Quota", held=True)
    answers.stored(1, spool.DEMOTED)
    answers.stored(2, spool.SPOOLED)
    answers.acknowledge()
    settled, ack, reject = ear.said
    assert (settled.position, settled.outcome) == (1, frames.DEMOTED)
    assert (ack.ranges, ack.window) == ([(1, 2)], 3)
    assert (reject.position, reject.reason, reject.fate) == (3, "503 Spool Over Quota", 0)
    assert answers.out == {3}
    answers.acknowledge()
    assert len(ear.said) == 3


def test_a_stall_is_told_once() -> None:
    """However often the head is refused; again after it was released."""
    answers, ear = opened()
    for _ in range(3):
        answers.refused(1, "no", held=True)
    answers.released()
    answers.released()
    answers.refused(1, "why", held=True)
    answers.refused(2, "parked", held=False)
    assert ear.stalls == ["no", "released", "why"]


def test_what_is_given_up_makes_room_in_the_window() -> None:
    """It is out no more as soon as REJECT is on its way."""
    answers, ear = opened(window=1)
    answers.came(1)
    answers.give_up(1)
    with pytest.raises(ProtocolError, match="LINK-41"):
        answers.came(2)
    answers.refused(1, "no", held=False)
    answers.acknowledge()
    assert [frame.fate for frame in ear.said] == [frames.GIVEN_UP]
    answers.came(2)


def test_nothing_is_owed_to_a_flow_that_is_over() -> None:
    """What is stored afterwards is named by the next BIND."""
    answers, ear = opened()
    answers.came(1)
    answers.stored(1, spool.SPOOLED)
    answers.over()
    answers.stored(2, spool.SPOOLED)
    answers.refused(3, "no", held=True)
    answers.acknowledge()
    assert ear.said == []
    assert answers.out == set()
