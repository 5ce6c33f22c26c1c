"""A bridge with several remotes: which one it takes, when it leaves one, and when it goes back."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import trio

from vpnrouter.bridges.bridge import Inbound
from vpnrouter.config.bridge import Bridge
from vpnrouter.core.credentials import ClientUsername

FIRST = {"name": "blue", "location": "one", "connect_order": 1}
SECOND = {"name": "blue", "location": "two", "connect_order": 2}


def stands_by(runner: Any) -> bool:
    """Whether a bridge is logged in at a better remote as well."""
    standby = runner.machine.standby
    return standby is not None and standby.welcomed


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

    def cut(self, *names: str) -> None:
        """Cut the connections to these hosts."""
        for cable in self.sea.standing():
            if cable.acceptor in names:
                cable.cut()

    def dials(self, since_s: float = 0.0) -> list[str]:
        """The hosts dialled since then."""
        return [host for at_s, _, host, _ in self.sea.dialed if at_s >= since_s]


@pytest.fixture
def cross(voyage: Any) -> Callable[..., None]:
    """Runs `async tell(crossing)`."""

    def run(tell: Callable[[Crossing], Any], seed: int = 1, most_s: float = 0.005) -> None:
        async def begin(sea: Any) -> None:
            await tell(Crossing(sea))

        voyage(begin, seed, most_s)

    return run


def test_the_best_is_tried_first(cross: Any) -> None:
    """The remote of the lowest connect order is dialled, wherever it stands in the list."""

    async def tell(crossing: Crossing) -> None:
        crossing.start()
        await crossing.sea.until(lambda: bool(crossing.uses))
        assert crossing.uses == "one"
        await trio.sleep(60)
        assert crossing.dials() == ["one"]

    cross(tell)


@pytest.mark.parametrize("retries", [0, 2])
def test_each_has_its_tries(cross: Any, retries: int) -> None:
    """A remote is tried once and `retry_count` times more before the next one has its turn."""

    async def tell(crossing: Crossing) -> None:
        crossing.sea.down |= {"one", "two"}
        crossing.start(retry_count=retries, failback_delay=0)
        tries = ["one"] * (retries + 1) + ["two"] * (retries + 1)
        await crossing.sea.until(lambda: len(crossing.sea.dialed) > 2 * len(tries))
        assert crossing.dials()[: 2 * len(tries)] == tries * 2

    cross(tell)


def test_the_next_best_after_a_loss(cross: Any) -> None:
    """Whoever loses its link goes to the next best remote at once, and the lost one comes last."""

    async def tell(crossing: Crossing) -> None:
        crossing.start(failback_delay=0)
        await crossing.sea.until(lambda: crossing.uses == "one")
        lost_s = trio.current_time()
        crossing.cut("one")
        await crossing.sea.until(lambda: crossing.uses == "two", within_s=0.2)
        assert crossing.dials(lost_s) == ["two"]
        crossing.sea.down.add("one")
        crossing.cut("two")
        await trio.sleep(0.02)
        await crossing.sea.until(lambda: crossing.uses == "two", within_s=1)
        assert crossing.dials(lost_s)[:3] == ["two", "one", "two"]

    cross(tell)


def test_tries_become_rare(cross: Any) -> None:
    """Some twenty tries a second for five seconds, then between `retry_delay` and half a minute."""

    async def tell(crossing: Crossing) -> None:
        crossing.sea.down.add("one")
        crossing.start(FIRST, retry_delay=3)
        await trio.sleep(600)
        times = [at_s for at_s, *_ in crossing.sea.dialed]
        gaps = [after - before for before, after in pairwise(times)]
        quick = [gap for at_s, gap in zip(times, gaps, strict=False) if at_s < 4.9]
        slow = [gap for at_s, gap in zip(times, gaps, strict=False) if at_s > 5.2]
        # Beside the delay a try takes a moment of its own.
        assert 0.02 <= min(quick) <= max(quick) <= 0.1
        assert 3 <= min(slow) <= max(slow) <= 30.1
        assert len({round(gap) for gap in slow}) > 3, "many would come in step"

    cross(tell)


@pytest.mark.parametrize("retry_delay", [0, 3, 10, 30, 255])
def test_many_bridges_do_not_come_in_step(voyage: Any, retry_delay: int) -> None:
    """Of 200 bridges that lost one remote at once, no more than a third dial it within a second, ever."""

    async def run(sea: Any) -> None:
        sea.down.add("one")
        here = sea.island("here", "v")
        for number in range(200):
            here.bridge(
                {
                    "remote_msg_vpns": [{"name": "v", "location": "one"}],
                    "remote_connection": {"retry_delay": retry_delay},
                },
                name=f"b{number}",
            )
        await trio.sleep(60 + 5 * max(30, 3 * retry_delay))
        seconds = Counter(int(at_s) for at_s, *_ in sea.dialed if at_s > 60)
        tries = sum(seconds.values()) / 200
        assert tries >= 5
        assert max(seconds.values()) <= 67, seconds.most_common(3)

    voyage(run, 1, 0.0)


def test_only_a_link_that_stayed_up_starts_anew(cross: Any) -> None:
    """A link that comes and goes is dialled less and less often; one that stood comes back at once."""

    async def tell(crossing: Crossing) -> None:
        crossing.start(FIRST, retry_delay=3)
        waits = []
        for up_s in [1.0] * 12 + [11.0]:
            await crossing.sea.until(lambda: bool(crossing.uses))
            await trio.sleep(up_s)
            lost_s = trio.current_time()
            crossing.cut("one")
            await crossing.sea.until(lambda at_s=lost_s: bool(crossing.dials(at_s)))
            waits.append(next(at_s for at_s, *_ in crossing.sea.dialed if at_s >= lost_s) - lost_s)
        assert max(waits[:3]) < 0.1
        assert min(waits[6:-1]) >= 3
        assert waits[-1] < 0.1

    cross(tell)


@pytest.mark.parametrize("seed", range(10))
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


def test_it_stays_where_fail_back_is_off(cross: Any) -> None:
    """With a delay of 0 the better remote is not even looked at."""

    async def tell(crossing: Crossing) -> None:
        crossing.sea.down.add("one")
        crossing.start(failback_delay=0)
        await crossing.sea.until(lambda: crossing.uses == "two")
        crossing.sea.down.clear()
        since_s = trio.current_time()
        await trio.sleep(300)
        assert crossing.uses == "two"
        assert crossing.dials(since_s) == []

    cross(tell)


def test_a_better_one_that_flaps(cross: Any) -> None:
    """A better remote that never stands for the delay moves nobody, and costs no message."""

    async def tell(crossing: Crossing) -> None:
        crossing.sea.down.add("one")
        crossing.start(failback_delay=5, retry_delay=1)
        await crossing.sea.until(lambda: crossing.uses == "two")
        half = crossing.core.runner.half
        crossing.sea.nursery.start_soon(crossing.publish)
        crossing.sea.down.clear()
        for _ in range(20):
            await trio.sleep(4)
            crossing.cut("one")
        crossing.sea.down.add("one")
        await trio.sleep(5)
        assert crossing.core.runner.half is half
        assert len(crossing.dials()) > 10
        assert crossing.core.numbers("one") == []
        came = crossing.core.numbers("two")
        assert came == list(range(len(came)))
        assert len(came) >= crossing.next - 5

    cross(tell)


@pytest.mark.parametrize("silent", [1, 3])
def test_remotes_that_say_nothing(voyage: Any, silent: int) -> None:
    """A remote that takes the connection and says nothing costs three seconds; then the next one is tried."""

    async def run(sea: Any) -> None:
        core = sea.island("core", "yellow")
        names = [f"r{number}" for number in range(silent)]
        sea.silent |= set(names)
        sea.island("good", "blue")
        remotes = [
            {"name": "blue", "location": name, "connect_order": order}
            for order, name in enumerate([*names, "good"], 1)
        ]
        connection = {"retry_delay": 3, "failback_delay": 0}
        core.bridge({"remote_msg_vpns": remotes, "remote_connection": connection})
        up = Inbound.READY_IN_SYNC
        await sea.until(lambda: core.runner.record.inbound_state is up, within_s=3.2 * silent + 0.5)
        assert [host for _, _, host, _ in sea.dialed] == [*names, "good"]

    voyage(run, 1, 0.005)


def test_a_slow_remote_has_its_time_in_the_end(voyage: Any) -> None:
    """Two remotes that take four seconds to answer: the first pass goes on from both, the second one waits."""

    async def run(sea: Any) -> None:
        core = sea.island("core", "yellow")
        sea.draw.random = lambda: 0.9
        for name in ("one", "two"):
            sea.island(name, "blue")
        remotes = [{"name": "blue", "location": name} for name in ("one", "two")]
        core.bridge({"remote_msg_vpns": remotes, "remote_connection": {"retry_delay": 1}})
        up = Inbound.READY_IN_SYNC
        await sea.until(lambda: core.runner.record.inbound_state is up, within_s=60)
        assert [host for _, _, host, _ in sea.dialed] == ["one", "two", "one"]

    voyage(run, 3, 2.0)


def test_a_better_one_that_says_nothing(cross: Any) -> None:
    """A remote that takes connections and never answers is passed over, and breaks nothing later."""

    async def tell(crossing: Crossing) -> None:
        crossing.sea.silent.add("one")
        crossing.start(failback_delay=5, retry_delay=1)
        await crossing.sea.until(lambda: crossing.uses == "two")
        half = crossing.core.runner.half
        crossing.sea.nursery.start_soon(crossing.publish)
        await trio.sleep(120)
        assert crossing.core.runner.half is half
        assert crossing.uses == "two"
        assert crossing.dials().count("one") > 5
        assert len([cable for cable in crossing.sea.standing() if cable.acceptor == "one"]) <= 1
        assert len(crossing.core.numbers("two")) >= crossing.next - 5

    cross(tell)


def test_the_one_that_stands_by(cross: Any) -> None:
    """When the link in use breaks, the one that stands by takes its place at once."""

    async def tell(crossing: Crossing) -> None:
        crossing.sea.down.add("one")
        crossing.start(failback_delay=60, retry_delay=1)
        await crossing.sea.until(lambda: crossing.uses == "two")
        crossing.sea.down.clear()
        await crossing.sea.until(lambda: stands_by(crossing.core.runner))
        await trio.sleep(1)
        crossing.sea.down |= {"one", "two"}
        lost_s = trio.current_time()
        crossing.cut("two")
        await crossing.sea.until(lambda: crossing.uses == "one", within_s=0.1)
        assert crossing.dials(lost_s) == []
        crossing.one.publish(1)
        await trio.sleep(0.1)
        assert crossing.core.numbers("one") == [1]

    cross(tell)


def test_the_one_that_stands_by_breaks_too(cross: Any) -> None:
    """When both links break at once the bridge dials again, as after any loss."""

    async def tell(crossing: Crossing) -> None:
        crossing.sea.down.add("one")
        crossing.start(failback_delay=60, retry_delay=1)
        await crossing.sea.until(lambda: crossing.uses == "two")
        crossing.sea.down.clear()
        await crossing.sea.until(lambda: stands_by(crossing.core.runner))
        crossing.cut("one", "two")
        await trio.sleep(0.01)
        assert crossing.uses == ""
        await crossing.sea.until(lambda: crossing.uses == "one", within_s=2)

    cross(tell)


def test_a_better_one_that_refuses(cross: Any) -> None:
    """A better remote that knows another password moves nobody, and is not hammered."""

    async def tell(crossing: Crossing) -> None:
        sea = crossing.sea
        sea.island(
            "vault", "blue", basic=True, usernames=[ClientUsername("core", password="right")]
        )
        remote = FIRST | {"location": "vault", "client_username": "core", "password": "wrong"}
        crossing.start(remote, SECOND, failback_delay=5, retry_delay=2)
        await sea.until(lambda: crossing.uses == "two")
        half = crossing.core.runner.half
        since_s = trio.current_time()
        await trio.sleep(60)
        assert crossing.core.runner.half is half
        assert crossing.uses == "two"
        assert 15 <= len(crossing.dials(since_s)) <= 61
        assert set(crossing.dials(since_s)) == {"vault"}
        assert [cable.acceptor for cable in sea.standing()] == ["two"]

    cross(tell)


def test_a_refusal_is_told_once(cross: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong password is one line, however long the bridge tries; another reason is another line."""

    async def tell(crossing: Crossing) -> None:
        given = [ClientUsername("core", password="right")]
        vault = crossing.sea.island("vault", "blue", basic=True, usernames=given)
        remote = FIRST | {"location": "vault", "client_username": "core", "password": "wrong"}
        crossing.start(remote, retry_delay=1)
        await trio.sleep(120)
        assert len(crossing.dials()) > 5
        # It learns this only once its password is right.
        vault.vpn.enabled = False
        given[0].password = "wrong"
        await trio.sleep(120)

    cross(tell)
    lines = [line for line in capsys.readouterr().err.splitlines() if "LINK_REJECTED" in line]
    assert [line.rpartition("rejected: ")[2] for line in lines] == [
        "403 Forbidden",
        "503 Message VPN Unavailable",
    ]


REMOTES: dict[str, list[dict[str, Any]]] = {
    "without the better one": [SECOND],
    "with another order": [FIRST | {"connect_order": 2}, SECOND | {"connect_order": 3}],
    "without the one in use": [FIRST],
    "with the better one disabled": [FIRST | {"enabled": False}, SECOND],
    "none at all": [],
}


@pytest.mark.parametrize("stands_s", [1.0, 4.99])
@pytest.mark.parametrize("remotes", REMOTES.values(), ids=REMOTES)
def test_remotes_that_change_while_one_stands_by(
    cross: Any, remotes: list[dict[str, Any]], stands_s: float
) -> None:
    """Whatever becomes of the list of remotes, the bridge ends on the best one that is left."""

    async def tell(crossing: Crossing) -> None:
        crossing.sea.down.add("one")
        crossing.start(failback_delay=5, retry_delay=1)
        await crossing.sea.until(lambda: crossing.uses == "two")
        crossing.sea.down.clear()
        await crossing.sea.until(lambda: stands_by(crossing.core.runner))
        await trio.sleep(stands_s)
        written = Bridge.model_validate({"remote_msg_vpns": remotes})
        half = crossing.core.runner.half
        crossing.core.change(remote_msg_vpns=written.remote_msg_vpns)
        left = [remote["location"] for remote in remotes if remote.get("enabled", True)]
        best = left[0] if left else ""
        await trio.sleep(30)
        assert crossing.uses == best
        assert [cable.acceptor for cable in crossing.sea.standing()] == left[:1]
        if best == "two" and stands_s < 4:
            assert crossing.core.runner.half is half

    cross(tell)


def test_the_event_names_the_router_it_went_to(cross: Any, capfd: Any) -> None:
    """What is told of a fail-back has the name of the remote that is used from then on."""

    async def tell(crossing: Crossing) -> None:
        crossing.sea.down.add("one")
        crossing.start(failback_delay=5)
        await crossing.sea.until(lambda: crossing.uses == "two")
        crossing.sea.down.clear()
        await crossing.sea.until(lambda: crossing.uses == "one")

    cross(tell)
    (moved,) = [line for line in capfd.readouterr().err.splitlines() if "moved here" in line]
    assert " from one at one" in moved, moved
