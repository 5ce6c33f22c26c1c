"""What `vpnrouter spool repair` tells when a table of the spool is damaged: all that is lost, never that nothing is.

The spool has a queue with messages in each of two message VPNs, an MQTT session with messages, and a retained message.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import trio
import trio.testing

from vpnrouter.cli import app
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import QUEUE
from vpnrouter.server.spool.held_counts import keep_counts
from vpnrouter.spool import keys
from vpnrouter.spool.read_only_store import findings
from vpnrouter.spool.rocks_store import RocksStore
from vpnrouter.spool.store import Batch, Store
from vpnrouter.spool.stored_counts import COUNTS, read_counts, write_counts
from vpnrouter.wire.mqtt.packets import Publish, Subscribe, SubscriptionRequest
from vpnrouter.wire.mqtt.properties import Properties

VPNS: Final = """
listeners:
- {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
- {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: green}
msg_vpns:
  blue: {authentication: {basic: {enabled: false}}, queues: {qa: {subscriptions: [a/>]}}}
  green: {authentication: {basic: {enabled: false}}, queues: {qv: {subscriptions: [v/>]}}}
"""
SESSION: Final = "#mqtt/device"

MESSAGES: Final = 10
"""Messages of a topic in each of two runs of the router."""

Held = dict[tuple[str, str, str], int]
Damage = Callable[[Path], None]


def every(damage: Damage) -> Damage:
    """Damage all tables of a spool."""

    def run(spool: Path) -> None:
        for path in spool.glob("*.sst"):
            damage(path)

    return run


def newest(damage: Damage) -> Damage:
    """Damage the table that was written last."""
    return lambda spool: damage(max(spool.glob("*.sst")))


def cut(path: Path) -> None:
    """Leave half of a file."""
    os.truncate(path, path.stat().st_size // 2)


def zero(path: Path) -> None:
    """Leave nothing but the size of a file."""
    path.write_bytes(bytes(path.stat().st_size))


DAMAGE: Final[dict[str, Damage]] = {
    "all removed": every(Path.unlink),
    "one removed": newest(Path.unlink),
    "cut": newest(cut),
    "zeros": newest(zero),
    "all zeros": every(zero),
}


QUICK: Final = {("all removed", 100), ("zeros", 100), ("one removed", 5_000)}
"""Cases of the short run."""

CASES: Final = [
    pytest.param(damage, size, marks=() if (damage, size) in QUICK else pytest.mark.slow)
    for damage in DAMAGE
    for size in (100, 5_000)
]


@pytest.fixture(autouse=True)
def mask() -> Iterator[None]:
    """Commands that read a configuration set the mask of the files that their process makes."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Where filled spools are kept, by the size of their messages; empty at first."""
    return {size: tmp_path_factory.mktemp("filled") / "spool" for size in (100, 5_000)}


@pytest.fixture
def spool(tmp_path: Path, filled: dict[int, Path], running: Any, client_of: Any) -> Any:
    """Makes the directory of a stopped router's spool, with messages of this size."""

    async def run(size: int) -> Path:
        place = tmp_path / "data-here" / "spool"
        kept = filled[size]
        if not kept.exists():
            for first in (True, False):
                async with running(VPNS) as node:
                    await _fill(node, client_of, size, first=first)
            shutil.copytree(place, kept)
            return place
        shutil.copytree(kept, place)
        return place

    return run


async def _fill(node: Any, client_of: Any, size: int, *, first: bool) -> None:
    if first:
        device = await client_of(node)
        lasting = Properties(session_expiry_interval=600)
        await device.connect("device", clean_start=True, properties=lasting)
        await device.send(Subscribe(1, [SubscriptionRequest("s/1", 1)]))
        await device.packet()
        await device.stream.aclose()
    for index, topics in enumerate(((b"a/1", b"s/1"), (b"v/1",))):
        client = await client_of(node, listener=index)
        await client.connect(f"publisher-{index}")
        for topic in topics:
            for number in range(1, MESSAGES + 1):
                retain = first and topic == b"v/1" and number == 1
                payload = os.urandom(size)
                await client.send(Publish(topic, payload, qos=1, packet_id=number, retain=retain))
                await client.packet()


def repair(tmp_path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> Any:
    """What a repair tells, as JSON."""
    config = tmp_path / "here.yaml"
    config.write_text(
        f"router: {{name: here, data_dir: {tmp_path}/data-here}}\n{VPNS}", encoding="utf-8"
    )
    capsys.readouterr()
    assert app.run(["spool", "repair", str(config), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def held(stored: Any) -> Held:
    """What a router finds in the spool, as a repair names it."""
    one = stored(VPNS)
    found: Held = {}
    for name, vpn in one.router.vpns.items():
        found["MQTT sessions", name, ""] = len(vpn.clients)
        found["retained messages", name, ""] = len(vpn.retained)
        for (_, endpoint), made in endpoints_of(vpn).items():
            key = ("messages", name, endpoint)
            if endpoint == SESSION:
                key = ("messages of MQTT sessions", name, "")
            found[key] = made.spooled_count
    one.close()
    return found


BEFORE: Final[Held] = {
    ("messages", "blue", "qa"): 2 * MESSAGES,
    ("messages", "green", "qv"): 2 * MESSAGES,
    ("messages of MQTT sessions", "blue", ""): 2 * MESSAGES,
    ("MQTT sessions", "blue", ""): 1,
    ("retained messages", "green", ""): 1,
}


@pytest.mark.parametrize(("damage", "size"), CASES)
async def test_counted(
    spool: Any,
    stored: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    damage: str,
    size: int,
) -> None:
    """After a clean stop, by queue and by kind: what is told and what is left make up what was there."""
    DAMAGE[damage](await spool(size))
    dry = repair(tmp_path, capsys, "--dry-run")
    told = repair(tmp_path, capsys)
    assert told["lost"] == dry["lost"]
    assert findings(Path(told["spool"])) == []
    lost = {
        (row["what"], row["msg_vpn"], row["endpoint"]): row["count"]
        for row in told["lost"]
        if row["msg_vpn"]
    }
    left = held(stored)
    assert lost == {
        key: count - left.get(key, 0) for key, count in BEFORE.items() if count > left.get(key, 0)
    }
    assert [row for row in told["lost"] if row["what"].startswith("all that 0")]


@pytest.mark.parametrize(("damage", "size"), CASES)
async def test_not_counted(
    spool: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str, size: int
) -> None:
    """Where nothing remembers it: which kinds of rows each table had, and that their number is not known."""
    place = await spool(size)
    (place / COUNTS).unlink()
    DAMAGE[damage](place)
    told = repair(tmp_path, capsys)
    tables = [row for row in told["lost"] if row["what"].startswith("all that 0")]
    assert tables
    for row in tables:
        assert row["count"] is row["messages"] is None
    kinds = "; ".join(row["note"] for row in tables)
    assert "messages" in kinds.split("; ")
    if damage.startswith("all"):
        assert {"MQTT sessions", "retained messages"} <= set(kinds.split("; "))


@pytest.mark.parametrize("remembered", [COUNTS, "SYNCED"])
async def test_the_list_of_files_is_lost_too(
    spool: Any,
    stored: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    remembered: str,
) -> None:
    """Then no file names the tables that are missing; what remembers them is enough."""
    place = await spool(100)
    for pattern in ("*.sst", "MANIFEST*", *({COUNTS, "SYNCED"} - {remembered})):
        for path in place.glob(pattern):
            path.unlink()
    told = repair(tmp_path, capsys)
    assert "all that missing files held" in {row["what"] for row in told["lost"]}
    if remembered == COUNTS:
        counts = {(row["what"], row["msg_vpn"]): row["count"] for row in told["lost"]}
        left = held(stored)
        for vpn, queue in (("blue", "qa"), ("green", "qv")):
            # What is in the log is there.
            assert left["messages", vpn, queue] == MESSAGES
            assert counts["messages", vpn] == MESSAGES
        assert counts["MQTT sessions", "blue"] == counts["retained messages", "green"] == 1


@pytest.mark.parametrize("counted", [True, False])
async def test_lost_definitions(
    spool: Any, stored: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], counted: bool
) -> None:
    """Queues that were counted are defined again. Nobody gets the messages of one that was not."""
    place = await spool(100)
    if not counted:
        (place / COUNTS).unlink()
    store = RocksStore(place)
    batch = Batch()
    for key, _ in store.scan(keys.ENDPOINT):
        batch.delete(key)
    # What is sound would not be repaired.
    batch.put(keys.bodies(1 << 40), b"x")
    store.commit(batch)
    store.close()
    repair(tmp_path, capsys)
    left = held(stored)
    there = 2 * MESSAGES if counted else 0
    assert left["messages", "blue", "qa"] == left["messages", "green", "qv"] == there
    assert left["messages of MQTT sessions", "blue", ""] == 2 * MESSAGES


async def test_counted_before_a_crash(
    spool: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counts of an earlier moment count for nothing where no table is damaged."""
    place = await spool(100)
    store = RocksStore(place)
    batch = Batch()
    batch.delete(keys.session("blue", "device"))
    store.commit(batch)
    store.close()
    (place / "SYNCED").unlink()
    assert repair(tmp_path, capsys)["lost"] == []


async def test_counted_at_another_moment(
    spool: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then nobody knows what was consumed since, and what is told says so."""
    place = await spool(100)
    counts = read_counts(place)
    assert counts is not None
    lines = (place / COUNTS).read_bytes().partition(b"\n")[2]
    write_counts(place, counts.sequence - 1, counts.taken_s, lines)
    DAMAGE["all removed"](place)
    rows = {row["endpoint"]: row for row in repair(tmp_path, capsys)["lost"]}
    assert rows["qa"]["count"] == 2 * MESSAGES
    assert "with those that were consumed since" in rows["qa"]["note"]


async def test_the_last_line(
    spool: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says that something is lost, whatever the exit code."""
    DAMAGE["all removed"](await spool(100))
    repair(tmp_path, capsys, "--dry-run")
    assert app.run(["spool", "repair", str(tmp_path / "here.yaml"), "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "lost: qa in message VPN blue: 20 messages (of 20 at " in told
    assert "lost: message VPN blue: 1 MQTT sessions (of 1 at " in told
    assert told.endswith("nothing was changed; a repair loses what is listed\n")
    assert app.run(["spool", "repair", str(tmp_path / "here.yaml")]) == 0
    assert "repaired, without what is listed as lost; " in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"12 34 5\n", b"x", bytes(40)])
async def test_damaged_counts(
    spool: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    """They are as good as none, and hinder neither a repair nor a start."""
    place = await spool(100)
    (place / COUNTS).write_bytes(content)
    assert findings(place) == []
    assert read_counts(place) is None
    DAMAGE["all removed"](place)
    assert all(row["count"] is None for row in repair(tmp_path, capsys)["lost"])


class Noted(Store):
    """A store that keeps what it is told to write."""

    def __init__(self) -> None:
        super().__init__(bytes(16))
        self.written: list[bytes] = []
        self.more = trio.Event()
        self.token = trio.lowlevel.current_trio_token()

    def write_counts(self, lines: bytes) -> None:
        self.written.append(lines)
        self.token.run_sync_soon(self.more.set)


async def test_counted_again_and_again(
    stored: Any, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A running router counts, too, and message VPNs that come are counted the next time."""
    one = stored(VPNS)
    vpns = one.router.vpns
    one.publish("a/1")
    store = Noted()
    shown = [vpns["blue"]]
    nursery.start_soon(keep_counts, store, lambda: shown)
    for expected in (["blue"], ["blue", "green"]):
        await store.more.wait()
        store.more = trio.Event()
        rows = [json.loads(line) for line in store.written[-1].splitlines()]
        assert sorted({row[1] for row in rows}) == expected
        number = endpoints_of(vpns["blue"])[0, "qa"].number
        assert ["messages", "blue", "qa", number, 1, QUEUE] in rows
        shown = list(vpns.values())
    nursery.cancel_scope.cancel()


def test_something_else_in_the_place_of_counts(tmp_path: Path) -> None:
    """A pipe is never opened to write to it, and replaced."""
    for name in (COUNTS, f"{COUNTS}.new"):
        os.mkfifo(tmp_path / name)
    write_counts(tmp_path, 7, 8, b"")
    assert read_counts(tmp_path) == (7, 8, [])
    assert [path.name for path in tmp_path.iterdir()] == [COUNTS]
