"""Stores of both kinds, and a ledger over them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vpnrouter.spool.rocks_store import RocksStore
from vpnrouter.spool.store import Batch, MemoryStore, Store

ID = bytes(range(16))


@pytest.fixture(params=["memory", "rocks"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store of each kind."""
    made: Store = MemoryStore(ID) if request.param == "memory" else RocksStore(tmp_path / "spool")
    yield made
    made.close()


@pytest.fixture
def rocks(tmp_path: Path) -> Iterator[Callable[..., RocksStore]]:
    """`rocks(name)`: the store in a directory of that name, closed with the test."""
    made: list[RocksStore] = []

    def open_store(name: str = "spool", create: bool = True) -> RocksStore:
        made.append(RocksStore(tmp_path / name, create))
        return made[-1]

    yield open_store
    for each in made:
        each.close()


@pytest.fixture
def batch() -> Callable[..., Batch]:
    """`batch(puts, deletes)`: a batch."""

    def make(puts: dict[bytes, bytes], deletes: tuple[bytes, ...] = ()) -> Batch:
        made = Batch()
        for key, value in puts.items():
            made.put(key, value)
        for key in deletes:
            made.delete(key)
        return made

    return make
