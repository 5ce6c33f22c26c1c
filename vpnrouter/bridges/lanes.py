"""What goes on and what waits when a message VPN refuses a guaranteed message of a bridge (`on_reject`).

A message of the bridge is known by its position, its lane by a number. Messages of one lane always enter the
message VPN in the order in which they came; what the policy says is who has to wait:

| policy | a message that is refused | what comes behind it |
|---|---|---|
| block | is held | all of it is held, whatever its lane |
| park | is set aside | that of its lane is set aside, the rest goes on; no room there: as block |
| skip | goes back for good | goes on |
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from mypy_extensions import mypyc_attr

BLOCK: Final = 0
PARK: Final = 1
SKIP: Final = 2

POLICIES: Final[dict[str, int]] = {"block": BLOCK, "park": PARK, "skip": SKIP}
"""The values of `on_reject`, with the numbers of LINK-40."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Steps:
    """What the lanes let happen. Each answers at once whether it was possible, and changes nothing if not."""

    __slots__ = ()

    def enter(self, position: int) -> bool:
        """Let the message enter the message VPN."""
        raise AssertionError(position)

    def park(self, position: int, number: int) -> bool:
        """Set the message aside under a `number` of its own."""
        raise AssertionError(position)

    def skip(self, position: int) -> bool:
        """Give the message back for good."""
        raise AssertionError(position)

    def leave(self, number: int) -> bool:
        """Let what is set aside under `number` enter the message VPN."""
        raise AssertionError(number)


@final
class Lanes:
    """The order of one bridge's guaranteed messages. `held` are positions that wait in memory, in order,
    each with its lane; `parked` are the numbers of what is set aside, in order, by lane.
    """

    __slots__ = ("_next", "_steps", "held", "parked", "policy")

    def __init__(self, steps: Steps, policy: int) -> None:
        self._steps = steps
        self._next = 1
        self.policy = policy
        self.held: deque[tuple[int, int]] = deque()
        self.parked: dict[int, deque[int]] = {}

    @property
    def waiting(self) -> bool:
        """True when there is something to try again."""
        return bool(self.held or self.parked)

    def arrive(self, position: int, lane: int) -> None:
        """A message came over the link."""
        if self.held or not self._pass(position, lane):
            self.held.append((position, lane))

    def found(self, lane: int) -> int:
        """A message was set aside before a restart; oldest first. Returns the number it has now."""
        return self._aside(lane, self._number())

    def removed(self, lane: int, number: int) -> None:
        """An operator took away what was set aside."""
        numbers = self.parked.get(lane)
        if numbers is not None and number in numbers:
            numbers.remove(number)
            if not numbers:
                del self.parked[lane]

    def retry(self) -> None:
        """Something may be possible now. What was set aside is older than what is held, so it goes first."""
        steps = self._steps
        for lane in list(self.parked):
            numbers = self.parked[lane]
            while numbers and steps.leave(numbers[0]):
                numbers.popleft()
            if not numbers:
                del self.parked[lane]
        held = self.held
        while held:
            position, lane = held[0]
            if not self._pass(position, lane):
                return
            held.popleft()

    def drop(self) -> list[int]:
        """The link is lost: what is held will come again. Returns the positions."""
        dropped = [position for position, _ in self.held]
        self.held.clear()
        return dropped

    def _pass(self, position: int, lane: int) -> bool:
        """Do with the message what can be done; False when it has to wait, and all behind it."""
        if lane not in self.parked:
            if self._steps.enter(position):
                return True
            if self.policy == BLOCK:
                return False
            if self.policy == SKIP:
                return self._steps.skip(position)
        number = self._number()
        if not self._steps.park(position, number):
            return False
        self._aside(lane, number)
        return True

    def _number(self) -> int:
        number = self._next
        self._next += 1
        return number

    def _aside(self, lane: int, number: int) -> int:
        numbers = self.parked.get(lane)
        if numbers is None:
            numbers = deque()
            self.parked[lane] = numbers
        numbers.append(number)
        return number
