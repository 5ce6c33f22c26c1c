"""Repair of a damaged store: a damaged file costs no more than its loss would, and a damaged list of files nothing.

A store is filled in several runs with messages of several endpoints, some of them settled, so that it has tables of
several ages, files of large values, and a log. Then one file of a copy is damaged, and the copy is repaired.
"""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from vpnrouter.spool.file_list import LIST_COPY
from vpnrouter.spool.ledger import Ledger
from vpnrouter.spool.read_only_store import ReadOnlyStore, findings
from vpnrouter.spool.record import encode_record
from vpnrouter.spool.repair import Losses, salvage
from vpnrouter.spool.rocks_store import RocksStore
from vpnrouter.spool.write_ahead_log import records_in, write_record

RUNS: Final = 2
"""Each start writes a table, and from four on RocksDB merges them in the background, at a time of its own."""

UNITS: Final = 250

Held = dict[tuple[int, int], bytes]
"""What waits: endpoint and spool id of each message, and the message."""


def record_of(payload: bytes) -> bytes:
    """A stored message with this payload."""
    return encode_record(
        b"t",
        payload,
        b"",
        flags=0,
        priority=4,
        expires_ns=0,
        ingress_ns=0,
        message_id=0,
        source_name="",
    )


def held(directory: Path) -> Held:
    """What waits in a store that is sound."""
    store = ReadOnlyStore(directory)
    try:
        ledger = Ledger(store)
        found: Held = {}
        for portion in list(ledger.recover()):
            for number in portion.ids:
                found[portion.endpoint, number] = dict(ledger.read(number))[number]
        return found
    finally:
        store.close()


def fill(directory: Path, draws: random.Random) -> None:
    """Let a router that is started have many units, and settle some of what is there."""
    store = RocksStore(directory)
    ledger = Ledger(store)
    waiting = [(one.endpoint, number) for one in ledger.recover() for number in one.ids]
    for _ in range(UNITS):
        size = draws.choice((30, 30, 300, 3_000))
        for _ in range(draws.randint(1, 4)):
            record = record_of(draws.randbytes(size))
            members = sorted(draws.sample((1, 2, 3), draws.randint(1, 3)))
            number = ledger.add(record, len(record), 4, 0, 0, members)
            waiting += [(endpoint, number) for endpoint in members]
        for _ in range(min(len(waiting), draws.randint(0, 3))):
            ledger.settle(*waiting.pop(draws.randrange(len(waiting))))
        store.commit(ledger.seal())
    store.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Held]:
    """The directory of a store, and what waits in it."""
    directory = tmp_path_factory.mktemp("filled") / "spool"
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draws = random.Random(seed)
    for _ in range(RUNS):
        fill(directory, draws)
    # One that is opened writes what is in the log into a table.
    RocksStore(directory).close()
    fill(directory, draws)
    assert len(list(directory.glob("*.sst"))) == RUNS + 1
    return directory, held(directory)


class Scene:
    """Repairs copies of a store."""

    def __init__(self, original: Path, folder: Path) -> None:
        self._original = original
        self._folder = folder
        self.spool = folder / "spool"
        self.told: list[str] = []
        self.losses = Losses()

    def damaged(self, damage: Callable[[Path], None]) -> Held:
        """What waits after a repair of a copy that was damaged so; it is told where anything is lost."""
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._original, self.spool)
        damage(self.spool)
        before = {path.name: path.read_bytes() for path in self.spool.iterdir()}
        self.told = findings(self.spool)
        self.losses = salvage(self.spool, self._folder / "work", self._folder / "fresh")
        assert {path.name: path.read_bytes() for path in self.spool.iterdir()} == before
        assert findings(self._folder / "fresh") == []
        return held(self._folder / "fresh")


@pytest.fixture
def scene(filled: tuple[Path, Held], tmp_path: Path) -> Scene:
    """The store, in a folder of the test."""
    return Scene(filled[0], tmp_path / "scene")


def flip(path: Path, at: int) -> None:
    """Turn a bit over."""
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize("count", [2, pytest.param(25, marks=pytest.mark.slow)])
def test_a_damaged_table_costs_no_more_than_its_loss(
    scene: Scene, filled: tuple[Path, Held], count: int
) -> None:
    """Whatever bit of a table is wrong, what is left without the table is left, and nothing is another message."""
    directory, before = filled
    for table in sorted(path.name for path in directory.glob("*.sst")):
        size = (directory / table).stat().st_size

        def remove(spool: Path, table: str = table) -> None:
            (spool / table).unlink()

        left = scene.damaged(remove).keys() & before.keys()
        places = [size * part // count + 10 for part in range(count)] + [size - 60, size - 6]
        for at in places:

            def damage(spool: Path, table: str = table, at: int = at) -> None:
                flip(spool / table, at)

            after = scene.damaged(damage)
            where = f"{table}, byte {at} of {size}"
            assert left <= after.keys(), where
            assert all(after[one] == before[one] for one in after.keys() & before.keys()), where
            if before.keys() - after.keys():
                assert scene.losses.rows_lost or scene.losses.messages, where


@pytest.fixture(scope="module")
def killed(
    filled: tuple[Path, Held], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Held]:
    """A store as SIGKILL leaves it, with much in the log, and what waits in it."""
    folder = tmp_path_factory.mktemp("killed")
    shutil.copytree(filled[0], folder / "open")
    store = RocksStore(folder / "open")
    ledger = Ledger(store)
    list(ledger.recover())
    for number in range(300):
        record = record_of(number.to_bytes(2, "big") * 400)
        ledger.add(record, len(record), 4, 0, 0, [number % 3 + 1])
        store.commit(ledger.seal())
    shutil.copytree(folder / "open", folder / "spool")
    store.close()
    return folder / "spool", held(folder / "spool")


@pytest.mark.parametrize("parts", [5, pytest.param(60, marks=pytest.mark.slow)])
def test_lost_commits_are_told(killed: tuple[Path, Held], tmp_path: Path, parts: int) -> None:
    """One bit of the log costs some of them, never without a word."""
    directory, before = killed
    scene = Scene(directory, tmp_path / "scene")
    log = max(directory.glob("*.log"), key=lambda path: path.stat().st_size).name
    size = len((directory / log).read_bytes().rstrip(b"\0"))
    for at in [0, 5, 7, *(size * part // parts for part in range(1, parts))]:

        def damage(spool: Path, at: int = at) -> None:
            flip(spool / log, at)

        after = scene.damaged(damage)
        assert all(after[one] == before[one] for one in after.keys() & before.keys())
        if before.keys() - after.keys():
            assert [one for one in scene.losses.unknown if "write-ahead" in one.what], at


LIST_DAMAGE: Final[dict[str, Callable[[Path], None]]] = {
    "without its last record": lambda path: shorten(path, 1),
    "without its last two records": lambda path: shorten(path, 2),
    "without the half of it": lambda path: shorten(path, len(records_in(path.read_bytes())) // 2),
    "one byte short": lambda path: path.write_bytes(path.read_bytes()[:-1]) and None,
    "a bit of its head": lambda path: flip(path, 5),
    "a bit of its last record": lambda path: flip(path, path.stat().st_size - 3),
    "the length of its last record": lambda path: flip(path, last_record(path) + 5),
    "the kind of its last record": lambda path: flip(path, last_record(path) + 6),
    "its end is zeros": lambda path: zero(path, last_record(path)),
    "zeros": lambda path: zero(path, 0),
    "empty": lambda path: path.write_bytes(b"") and None,
    "gone": Path.unlink,
}


def shorten(path: Path, count: int) -> None:
    """Leave a list without its last records."""
    data = b""
    for record in records_in(path.read_bytes())[:-count]:
        data += write_record(len(data), record)
    path.write_bytes(data)


def last_record(path: Path) -> int:
    """Where the last record of a list begins."""
    shorter = path.with_suffix(".shorter")
    shutil.copyfile(path, shorter)
    shorten(shorter, 1)
    size = shorter.stat().st_size
    shorter.unlink()
    return size


def zero(path: Path, at: int) -> None:
    """Let a file hold zeros from this byte on."""
    data = path.read_bytes()
    path.write_bytes(data[:at] + bytes(len(data) - at))


@pytest.mark.parametrize("damage", LIST_DAMAGE)
def test_a_damaged_list_of_files_costs_nothing(
    scene: Scene, filled: tuple[Path, Held], damage: str
) -> None:
    """A start is refused whatever its damage is, and a repair gets everything back."""

    def on_list(spool: Path) -> None:
        (path,) = spool.glob("MANIFEST-*")
        LIST_DAMAGE[damage](path)

    assert scene.damaged(on_list) == filled[1]
    assert scene.told
    with pytest.raises(Exception, match="damaged"):
        RocksStore(scene.spool)
    assert not scene.losses.messages
    assert not scene.losses.unknown


@pytest.mark.parametrize("damage", ["gone", "zeros", "a bit of its head"])
def test_the_list_of_files_and_its_copy_are_damaged(
    scene: Scene, filled: tuple[Path, Held], damage: str
) -> None:
    """The list is made again from the files; what was deleted, and is in an old log, does not come back."""

    def on_both(spool: Path) -> None:
        (path,) = spool.glob("MANIFEST-*")
        LIST_DAMAGE[damage](path)
        LIST_DAMAGE[damage](spool / LIST_COPY)

    assert scene.damaged(on_both) == filled[1]


@pytest.mark.parametrize("damage", LIST_DAMAGE)
def test_a_damaged_copy_of_the_list_hinders_nobody(
    scene: Scene, filled: tuple[Path, Held], damage: str
) -> None:
    """Without it a store is sound, and the next start makes it again."""

    def on_copy(spool: Path) -> None:
        path = spool / LIST_COPY
        mark = path.read_bytes()[:12]
        path.write_bytes(path.read_bytes()[12:])
        LIST_DAMAGE[damage](path)
        if path.exists():
            path.write_bytes(mark + path.read_bytes())

    assert scene.damaged(on_copy) == filled[1]
    assert scene.told == []
    RocksStore(scene.spool).close()
    assert findings(scene.spool) == []
    (path,) = scene.spool.glob("MANIFEST-*")
    assert (scene.spool / LIST_COPY).read_bytes()[12:] == path.read_bytes()


def test_a_list_that_grows_is_copied(tmp_path: Path) -> None:
    """What comes and goes while the store is open is in the copy after the next commit."""
    directory = tmp_path / "spool"
    store = RocksStore(directory)
    ledger = Ledger(store)
    sizes = set()
    (path,) = directory.glob("MANIFEST-*")
    record = record_of(random.Random(1).randbytes(1_000_000))
    for _ in range(90):
        ledger.add(record, len(record), 4, 0, 0, [1])
        store.commit(ledger.seal())
        sizes.add((directory / LIST_COPY).stat().st_size)
    assert len(sizes) > 1
    store.close()
    assert (directory / LIST_COPY).read_bytes()[12:] == path.read_bytes()
    assert findings(directory) == []


def test_a_backup_has_the_copy(scene: Scene, filled: tuple[Path, Held], tmp_path: Path) -> None:
    """A backup whose list is cut is damaged."""
    shutil.copytree(filled[0], tmp_path / "spool")
    store = RocksStore(tmp_path / "spool")
    store.backup(tmp_path / "backup")
    store.close()
    assert findings(tmp_path / "backup") == []
    (path,) = (tmp_path / "backup").glob("MANIFEST-*")
    shorten(path, 1)
    assert findings(tmp_path / "backup") != []
