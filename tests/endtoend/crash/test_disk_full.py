"""A disk without room: publishers wait or are refused, nothing acknowledged is lost, and it clears by itself.

Two ways to have no room: a bound on the size of files, which everybody may set, and a file system of its own
that is full, which needs root.
"""

import contextlib
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Protocol

import pytest

ADMINISTRATION: Final = 21
"""Number of the capability to mount (CAP_SYS_ADMIN)."""


def _may_mount() -> bool:
    """Has this process the right to mount? The second way needs it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return False
    held = next(
        line for line in status.read_text(encoding="ascii").splitlines() if "CapEff" in line
    )
    return bool(int(held.split()[1], 16) >> ADMINISTRATION & 1)


MAY_MOUNT: Final = _may_mount()
ACCEPTED: Final = 0x00
QUOTA_EXCEEDED: Final = 0x97
ROOM_BYTES: Final = 3_000_000
"""What is left when the disk is "full": some hundred messages fill it."""
SIZE: Final = 20_000
"""Bytes of a message."""
FILE_SYSTEM_BYTES: Final = 134_217_728
"""Of a file system of its own. Beyond a full log a spool wants 64 MB to go on."""


class Disk(Protocol):
    """A disk that can be full."""

    def fill(self) -> None:
        """Leave ROOM_BYTES."""

    def clear(self) -> None:
        """Make room."""


class Bounded:
    """The router's files may not grow."""

    def __init__(self, place: Any) -> None:
        self._place = place

    def _bound(self, size: int) -> None:
        pid = self._place.router.process.pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def fill(self) -> None:
        self._bound(ROOM_BYTES)

    def clear(self) -> None:
        self._bound(resource.RLIM_INFINITY)


class Full:
    """The file system of the router's data folder is full."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def _fill(self, left: int) -> None:
        state = os.statvfs(self.folder)
        with self._filler.open("ab") as file:
            size = self._filler.stat().st_size
            os.posix_fallocate(
                file.fileno(), size, max(4_096, state.f_bavail * state.f_frsize - left)
            )

    def fill(self) -> None:
        self._fill(ROOM_BYTES)

    def fill_up(self) -> None:
        """Leave nothing at all."""
        with contextlib.suppress(OSError):
            self._fill(0)

    def clear(self) -> None:
        self._filler.unlink()


@pytest.fixture
def own_file_system(tmp_path: Path) -> Iterator[Full]:
    """A file system of its own for the data of router edge."""
    folder = tmp_path / "edge"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={FILE_SYSTEM_BYTES}", "tmpfs", str(folder)]
    subprocess.run(mount, check=True)
    yield Full(folder)
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(params=["bounded", "full"] if MAY_MOUNT else ["bounded"])
def disk(request: pytest.FixtureRequest) -> Disk:
    """A disk of each kind, for router edge."""
    if request.param == "full":
        made: Full = request.getfixturevalue("own_file_system")
        return made
    return Bounded(request.getfixturevalue("alone"))


def begin(traffic: Any, alone: Any) -> None:
    """Two endpoints, two producers."""
    traffic.read(alone)
    for qos in (1, 2):
        topics = dict.fromkeys((f"orders/{qos}/x", f"orders/{qos}/y"), ("orders", "twice"))
        traffic.produce(alone, f"p{qos}", topics, qos=qos, burst=2, size=SIZE)


def until_full(traffic: Any, alone: Any, patiently: Any, times: int) -> None:
    """Wait until the router says so. Whoever waits for an answer goes on waiting; who comes now is refused."""
    failed = "the message spool cannot be written: spool "
    patiently(lambda: len(alone.router.told(failed)) == times, "the router finds no room")
    topics = {"orders/late": ("orders", "twice")}
    late = traffic.produce(alone, f"late{times}", topics, limit=5)
    patiently(lambda: late.done, "publishes are refused")
    assert list(late.reasons.values()) == [QUOTA_EXCEEDED] * 5


def until_taken(traffic: Any, patiently: Any) -> None:
    """Wait until each producer that goes on has heard of ten more publishes that they were taken."""
    due = {each: answers(each) + 10 for each in traffic.producers if not each.done}
    patiently(
        lambda: all(answers(each) >= count for each, count in due.items()), "publishes are taken"
    )


def answers(producer: Any) -> int:
    """How many publishes were taken."""
    return list(producer.reasons.values()).count(ACCEPTED)


def end(traffic: Any, alone: Any, patiently: Any) -> None:
    """There is room, and all is well again."""
    until_taken(traffic, patiently)
    traffic.stop_producers()
    traffic.drain()
    alone.kill()
    alone.start()
    traffic.quiet()
    row = alone.router.queue("blue", "orders")
    assert (row["imbalance"], row["msgCount"]) == (0, 0), row
    traffic.judge(refusing=True)


@pytest.mark.slow
def test_full_and_free_again(disk: Disk, alone: Any, traffic: Any, patiently: Any) -> None:
    """New publishes are refused until there is room; then everything goes on by itself."""
    alone.start()
    begin(traffic, alone)
    for times in (1, 2):
        disk.fill()
        until_full(traffic, alone, patiently, times)
        traffic.history.noted("there is room")
        disk.clear()
        until_taken(traffic, patiently)
    assert len(alone.router.told("the message spool works again")) == 2
    end(traffic, alone, patiently)


@pytest.mark.slow
def test_killed_while_full(own_file_system: Full, alone: Any, traffic: Any, patiently: Any) -> None:
    """A router does not start without room, and says so; with room it has all that it acknowledged."""
    alone.start()
    begin(traffic, alone)
    own_file_system.fill()
    until_full(traffic, alone, patiently, 1)
    alone.kill()
    traffic.history.noted("edge is killed")
    own_file_system.fill_up()
    alone.start({"VPNROUTER_FAULT": ""})
    assert alone.router.wait() == 1
    assert len(alone.router.told("there is no space left for it")) == 1
    assert not alone.router.told("Traceback")
    own_file_system.clear()
    alone.start()
    end(traffic, alone, patiently)
