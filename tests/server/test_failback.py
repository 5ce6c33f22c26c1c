"""A bridge goes back to a better remote, and what was on the way arrives."""

from collections.abc import Callable
from typing import Any

import pytest
import trio

from vpnrouter.bridges.bridge import Inbound

FIRST = {"name": "blue", "location": "one", "connect_order": 1}
SECOND = {"name": "blue", "location": "two", "connect_order": 2}


class Crossing:
    """A bridge on core into yellow that takes its messages from blue, on one or on two."""

    def __init__(self, sea: Any) -> None:
        self.sea = sea
        self.core = sea.island("core", "yellow")
        self.one = sea.island("one", "blue")
        self.two = sea.island("two", "blue")
        self.next = 0

    def start(self, *remotes: dict[str, Any], **connection: Any) -> Any:
        """Run the bridge."""
        written = {"remote_msg_vpns": remotes or (SECOND, FIRST), "remote_connection": connection}
        return self.core.bridge(written)

    async def publish(self) -> None:
        """Publish the same numbers on both remotes."""
        while True:
            self.one.publish(self.next)
            self.two.publish(self.next)
            self.next += 1
            await trio.sleep(0.01)

    @property
    def uses(self) -> str:
        """The remote in use, "" while there is none."""
        runner = self.core.runner
        if runner.record.inbound_state is not Inbound.READY_IN_SYNC:
            return ""
        return str(runner.machine.use.remote.location)


@pytest.fixture
def cross(voyage: Any) -> Callable[..., None]:
    """Runs `async tell(crossing)`."""

    def run(tell: Callable[[Crossing], Any], seed: int = 1, most_s: float = 0.005) -> None:
        async def begin(sea: Any) -> None:
            await tell(Crossing(sea))

        voyage(begin, seed, most_s)

    return run


@pytest.mark.parametrize("seed", range(4))
def test_back_to_the_better_one(cross: Any, seed: int) -> None:
    """After the delay the bridge goes back; what was on the way arrives, nothing twice."""

    async def tell(crossing: Crossing) -> None:
        crossing.sea.down.add("one")
        crossing.start(failback_delay=5, retry_delay=1)
        await crossing.sea.until(lambda: crossing.uses == "two")
        await trio.sleep(3)
        crossing.sea.nursery.start_soon(crossing.publish)
        await trio.sleep(1)
        crossing.sea.down.clear()
        back_s = trio.current_time()
        await crossing.sea.until(lambda: crossing.uses == "one")
        assert 5 <= trio.current_time() - back_s <= 8
        last = crossing.next
        await trio.sleep(2)
        before, after = crossing.core.numbers("two"), crossing.core.numbers("one")
        assert before == list(range(len(before)))
        assert after == list(range(after[0], after[-1] + 1))
        assert after[-1] >= last
        assert before[-1] < after[0] <= before[-1] + 60, "the gap is no longer than two ways"
        assert [cable.acceptor for cable in crossing.sea.standing()] == ["one"]
        assert crossing.two.vpn.subscription_count == 1

    cross(tell, seed, 0.2)
