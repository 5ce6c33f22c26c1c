import errno
import os
import random
from pathlib import Path

import pytest

from vpnrouter import limits
from vpnrouter.trace.retention import Retention
from vpnrouter.units import DAY_NS

TODAY = "2024-10-10"
TODAY_NS = 20_006 * DAY_NS
NOW_NS = TODAY_NS + DAY_NS // 2
SIZE = 100


def put(root: Path, day: int, *numbers: int, router: str = "edge", size: int = SIZE) -> list[Path]:
    """Files of a day counted from today; each number is one second of it."""
    made = []
    folder = root / f"date=2024-10-{10 + day:02d}" / f"router={router}"
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        at = TODAY_NS + day * DAY_NS + number * 10**9
        path = folder / f"part-{at}-{number}.parquet"
        path.write_bytes(bytes(size))
        os.utime(path, ns=(at, at))
        made.append(path)
    return made


def run(retention: Retention, now_ns: int = NOW_NS) -> int:
    """Steps until there is nothing to do."""
    steps = 1
    while retention.step(now_ns):
        steps += 1
        assert steps < 10_000
    return steps


def left(root: Path) -> list[str]:
    """Every file and directory, relative."""
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


def test_what_is_too_old_goes_away_with_its_directories(tmp_path: Path) -> None:
    """Files whose time is as long ago as asked are removed, and empty directories of past dates."""
    put(tmp_path, -4, 1, 2)
    old, young = put(tmp_path, -2, 43_200, 43_201)
    (now,) = put(tmp_path, 0, 1)
    retention = Retention(tmp_path, "edge", 2 * DAY_NS, 0)
    run(retention)
    assert not old.exists()
    assert young.exists()
    assert now.exists()
    assert not (tmp_path / "date=2024-10-06").exists()
    assert (retention.removed, retention.removed_bytes) == (3, 3 * SIZE)
    assert retention.errors == {}


def test_a_file_is_as_old_as_its_completion(tmp_path: Path) -> None:
    """A file that was begun long ago and completed lately stays."""
    (path,) = put(tmp_path, -3, 1)
    os.utime(path, ns=(NOW_NS, NOW_NS - DAY_NS))
    run(Retention(tmp_path, "edge", 2 * DAY_NS, 0))
    assert path.exists()


def test_the_oldest_go_until_the_rest_fits(tmp_path: Path) -> None:
    """By date, time of the first row and serial number; no more than needed."""
    first = put(tmp_path, -2, 5, 30, 4)
    second = put(tmp_path, -1, 7, 8)
    retention = Retention(tmp_path, "edge", 0, 2 * SIZE + 50)
    run(retention)
    assert [path.exists() for path in first] == [False, False, False]
    assert [path.exists() for path in second] == [True, True]
    assert not first[0].parent.parent.exists()
    put(tmp_path, 0, 1)
    retention.completed(TODAY, SIZE)
    run(retention)
    assert [path.exists() for path in second] == [False, True]


def test_the_newest_file_stays_however_large_it_is(tmp_path: Path) -> None:
    """A bound below one file keeps one file, for readers to have something."""
    put(tmp_path, -1, 1)
    first, last = put(tmp_path, 0, 1, 2)
    run(Retention(tmp_path, "edge", 0, 1))
    assert not first.exists()
    assert last.exists()
    assert len(list(tmp_path.rglob("*.parquet"))) == 1


def test_without_bounds_nothing_is_looked_at(tmp_path: Path) -> None:
    """Two zeros keep everything."""
    put(tmp_path, -9, 1)
    retention = Retention(tmp_path, "edge", 0, 0)
    retention.completed(TODAY, SIZE)
    assert not retention.step(NOW_NS)
    assert len(list(tmp_path.rglob("*.parquet"))) == 1


def test_nothing_else_is_touched(tmp_path: Path) -> None:
    """Other routers' files, files being written, and whatever else lies there stays."""
    (mine,) = put(tmp_path, -5, 1)
    put(tmp_path, -5, 1, router="core")
    put(tmp_path, -5, 1, router="edge2")
    folder = mine.parent
    for name in (".part-1-1.parquet", "part-1.parquet", "part-1-1.parquet.tmp", "part-x-1.parquet"):
        (folder / name).write_bytes(bytes(SIZE))
    (folder / "part-2-2.parquet").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "part-1-1.parquet").write_bytes(bytes(SIZE))
    (folder / "part-3-3.parquet").symlink_to(tmp_path / "elsewhere" / "part-1-1.parquet")
    for odd in ("date=2024-13-45", "date=2024-10-05x", "day=2024-10-05"):
        place = tmp_path / odd / "router=edge"
        place.mkdir(parents=True)
        (place / "part-1-1.parquet").write_bytes(bytes(SIZE))
    linked = tmp_path / "date=2024-10-04"
    linked.mkdir()
    (linked / "router=edge").symlink_to(tmp_path / "date=2024-10-05" / "router=core")
    before = left(tmp_path)
    run(Retention(tmp_path, "edge", DAY_NS, 1))
    before.remove(mine.relative_to(tmp_path).as_posix())
    assert left(tmp_path) == before


def test_the_name_of_the_directory_is_escaped(tmp_path: Path) -> None:
    """The router of a name with a colon has its own directory."""
    (path,) = put(tmp_path, -5, 1, router="a%3Ab")
    run(Retention(tmp_path, "a:b", DAY_NS, 0))
    assert not path.exists()


def test_a_missing_directory_is_no_error(tmp_path: Path) -> None:
    """Nothing was written yet."""
    retention = Retention(tmp_path / "traces", "edge", DAY_NS, 1)
    run(retention)
    assert retention.errors == {}


def test_a_step_does_a_bounded_part(tmp_path: Path) -> None:
    """Many files take many steps, and in the end none too old is left."""
    put(tmp_path, -3, *range(100))
    retention = Retention(tmp_path, "edge", DAY_NS, 0, step=10)
    assert retention.step(NOW_NS)
    assert 80 <= len(list(tmp_path.rglob("*.parquet"))) <= 99
    assert run(retention) >= 9
    assert left(tmp_path) == []


def test_more_files_than_names_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A date with more old files than fit into memory is read again, oldest first still."""
    monkeypatch.setattr(limits, "TRACE_RETENTION_REMOVALS", 7)
    numbers = list(range(50))
    random.Random(4).shuffle(numbers)
    put(tmp_path, -1, *numbers)
    run(Retention(tmp_path, "edge", 0, 8 * SIZE))
    serials = {int(path.stem.split("-")[2]) for path in tmp_path.rglob("*.parquet")}
    assert serials == set(range(42, 50))


def test_a_refusal_is_counted_and_the_next_file_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be removed is named by reason; the others go; the sweep ends."""
    first, second, third = put(tmp_path, -1, 1, 2, 3)
    real = Path.unlink

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if path == first:
            raise PermissionError(errno.EACCES, "not yours", str(path))
        real(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    retention = Retention(tmp_path, "edge", 0, 2 * SIZE)
    run(retention)
    assert [path.exists() for path in (first, second, third)] == [True, False, True]
    assert retention.errors == {"permission": 1}
    assert retention.last_error.startswith("permission: ")
    monkeypatch.undo()
    put(tmp_path, -1, 4)
    retention.completed("2024-10-09", SIZE)
    run(retention)
    assert [path.exists() for path in (first, second, third)] == [False, False, True]


def test_a_directory_that_cannot_be_read_ends_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is counted, and the next complete file begins another sweep."""
    (path,) = put(tmp_path, -3, 1)
    real = os.scandir

    def scandir(place: Path) -> object:
        if Path(place).name == "router=edge":
            raise OSError(errno.EIO, "bad sector")
        return real(place)

    monkeypatch.setattr(os, "scandir", scandir)
    retention = Retention(tmp_path, "edge", DAY_NS, 0)
    run(retention)
    assert retention.errors == {"io-error": 1}
    monkeypatch.undo()
    retention.completed(TODAY, SIZE)
    run(retention)
    assert not path.exists()


def test_files_removed_by_others_are_noticed(tmp_path: Path) -> None:
    """A file that is gone already is no error, and with a new date the bytes are counted anew."""
    one, two, three = put(tmp_path, -1, 1, 2, 3)
    retention = Retention(tmp_path, "edge", 0, 3 * SIZE)
    run(retention)
    one.unlink()
    two.unlink()
    put(tmp_path, 0, 1)
    retention.completed(TODAY, SIZE)
    run(retention)
    assert three.exists()
    assert retention.removed == 0


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_holds_whatever_comes(seed: int, tmp_path: Path) -> None:
    """Files of any size on any date: afterwards they fit, and no newer file went before an older."""
    draw = random.Random(seed)
    bound = draw.randrange(500, 3_000)
    retention = Retention(tmp_path, "edge", 0, bound, step=draw.choice([1, 3, 1000]))
    sizes: dict[tuple[int, int], int] = {}
    for number in range(60):
        day = number // 9 - 7
        sizes[day, number] = draw.randrange(400)
        put(tmp_path, day, number, size=sizes[day, number])
        retention.completed(f"2024-10-{10 + day:02d}", sizes[day, number])
        run(retention)
        there = {
            (int(path.parts[-3][-2:]) - 10, int(path.stem.split("-")[2]))
            for path in tmp_path.rglob("*.parquet")
        }
        assert sum(sizes[key] for key in there) <= bound, f"seed {seed}"
        assert there == set(sorted(sizes)[-len(there) :]), f"seed {seed}"
