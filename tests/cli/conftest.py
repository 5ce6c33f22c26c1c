"""A router that stands still (tests/management/standing.py), for commands that ask one."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

PLACE = Path(__file__).parents[1] / "management" / "standing.py"

HOLD = """
import sys
from pathlib import Path
from vpnrouter.spool.rocks_store import RocksStore
store = RocksStore(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
store.close()
"""


@pytest.fixture(scope="session")
def standing() -> ModuleType:
    """The module standing.py."""
    spec = importlib.util.spec_from_file_location("management_standing", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Served(NamedTuple):
    """A Monitor and where it is served."""

    still: Any
    url: str


@pytest.fixture
def served(standing: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Bridges and queues of a served router; VPNROUTER_URL says where it is."""
    still = standing.three_bridges()
    with standing.serving(still) as address:
        monkeypatch.setenv("VPNROUTER_URL", f"http://{address}")
        yield Served(still, f"http://{address}")


class Stopped(NamedTuple):
    """A stopped router: its configuration and its spool, with one endpoint in it."""

    config: Path
    spool: Path

    def endpoint(self) -> bytes | None:
        """What the spool holds of the endpoint."""
        from vpnrouter.spool import keys
        from vpnrouter.spool.rocks_store import RocksStore

        store = RocksStore(self.spool, create=False)
        found = store.get(keys.endpoint(1))
        store.close()
        return found

    def write(self, value: bytes) -> None:
        """Let the spool hold this of the endpoint."""
        from vpnrouter.spool import keys
        from vpnrouter.spool.rocks_store import RocksStore
        from vpnrouter.spool.store import Batch

        store = RocksStore(self.spool)
        batch = Batch()
        batch.put(keys.endpoint(1), value)
        store.commit(batch)
        store.close()


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stopped:
    """A router that was stopped cleanly."""
    monkeypatch.delenv("VPNROUTER_URL", raising=False)
    config = tmp_path / "here.yaml"
    data = {"router": {"name": "here", "data_dir": str(tmp_path / "data")}}
    config.write_text(json.dumps(data), encoding="utf-8")
    (tmp_path / "data").mkdir()
    made = Stopped(config, tmp_path / "data" / "spool")
    made.write(b'{"name":"orders"}')
    return made


@contextmanager
def _opened(spool: Path) -> Iterator[None]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(spool)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=PLACE.parents[2],
    )
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"open\n"
        yield
    finally:
        holder.communicate()


@pytest.fixture
def opened_elsewhere() -> Any:
    """A context manager: while it lasts, another process has the spool of the given directory open."""
    return _opened
