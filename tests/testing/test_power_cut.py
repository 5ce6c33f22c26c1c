"""Whatever a power cut leaves of the last commit, all acknowledged batches are there and none is half there."""

import random
from pathlib import Path

import pytest

from vpnrouter.errors import SpoolError
from vpnrouter.spool.rocks_store import RocksStore
from vpnrouter.spool.store import Batch
from vpnrouter.testing.stores import PowerCutRocks


def batch_of(number: int, size: int, draw: random.Random) -> Batch:
    """A batch with a large value between two small ones."""
    batch = Batch()
    batch.put(b"a%d" % number, b"first")
    batch.put(b"b%d" % number, draw.randbytes(size))
    batch.put(b"c%d" % number, b"last")
    return batch


def found_in(directory: Path, numbers: int) -> list[int]:
    """How many of the three rows of each batch a start finds."""
    store = RocksStore(directory)
    found = [
        sum(store.get(b"%c%d" % (kind, number)) is not None for kind in b"abc")
        for number in range(numbers)
    ]
    # It works on: what is committed now is there for the next start.
    store.commit(batch_of(99, 10, random.Random(1)))
    store.close()
    store = RocksStore(directory)
    assert store.get(b"c99") == b"last"
    store.close()
    return found


def cuts(total: int, seed: int) -> list[int]:
    """Where to cut: around both ends and the log's blocks, and at some places between."""
    draw = random.Random(seed)
    near = [0, 1, 6, 7, 8, total - 8, total - 1]
    blocks = [place + off for place in range(32_768, total, 32_768) for off in (-7, 0, 3)]
    return sorted(
        {place for place in [*near, *blocks] if 0 <= place < total} | {draw.randrange(total)}
    )


@pytest.mark.parametrize("size", [20, 3_000, 100_000])
def test_cut_at_any_byte(tmp_path: Path, size: int) -> None:
    """A log that ends too early."""
    seed = random.SystemRandom().getrandbits(32)
    draw = random.Random(seed)
    power = PowerCutRocks(tmp_path / "spool")
    for number, each in enumerate((50, 40_000, 300, size)):
        power.commit(batch_of(number, each, draw))
    total = power.last_bytes
    assert total > size
    for kept in cuts(total, seed):
        found = found_in(power.cut(tmp_path / f"at{kept}", kept), 4)
        assert found == [3, 3, 3, 0], f"seed {seed}, {kept} of {total} bytes"
    assert found_in(power.cut(tmp_path / "whole", total), 4) == [3, 3, 3, 3]
    power.close()


@pytest.mark.parametrize("size", [3_000, 100_000])
def test_pages_in_any_order(tmp_path: Path, size: int) -> None:
    """A log that has its full length, with pages in it that never came to the disk."""
    seed = random.SystemRandom().getrandbits(32)
    draw = random.Random(seed)
    power = PowerCutRocks(tmp_path / "spool")
    for number, each in enumerate((50, 40_000, 300, size)):
        power.commit(batch_of(number, each, draw))
    total = power.last_bytes
    lost = [
        (0, 4_096),
        (0, total),
        (8, 200),
        (total - 4_096, total),
        (total // 2, total // 2 + 4_096),
    ]
    for turn, (begin, end) in enumerate(lost):
        place = power.cut(tmp_path / f"lost{turn}", total, (max(begin, 0), end))
        assert found_in(place, 4) == [3, 3, 3, 0], f"seed {seed}, without {begin} to {end}"
    power.close()


def test_acknowledged_part_is_never_cut_off(tmp_path: Path) -> None:
    """Bytes of an acknowledged batch that cannot be read: the store is refused."""
    draw = random.Random(5)
    power = PowerCutRocks(tmp_path / "spool")
    for number in range(3):
        power.commit(batch_of(number, 5_000, draw))
    place = power.cut(tmp_path / "cut", power.last_bytes, (-6_000, -5_000))
    with pytest.raises(SpoolError) as raised:
        RocksStore(place)
    assert raised.value.reason == "corrupt"
    power.close()


def test_log_begins_anew(tmp_path: Path) -> None:
    """A commit that begins a new log is cut in that one; those in older logs stay."""
    draw = random.Random(6)
    power = PowerCutRocks(tmp_path / "spool")
    logs: set[str] = set()
    number = 0
    while len(logs) < 2:
        power.commit(batch_of(number, 3_000_000, draw))
        logs |= {path.name for path in power.directory.glob("*.log")}
        number += 1
    found = found_in(power.cut(tmp_path / "cut", power.last_bytes // 2), number)
    assert found == [3] * (number - 1) + [0]
    power.close()
