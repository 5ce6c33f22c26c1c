"""A queue of millions costs little memory, also when each message came in a commit of its own."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

WAITING = 5_000_000
MOST_MIB = 400

PROGRAM = """
    import json, pathlib, sys
    from rocksdict import WriteOptions
    from vpnrouter.spool.ledger import Ledger
    from vpnrouter.spool.record import encode_record
    from vpnrouter.spool.rocks_store import RocksStore
    from vpnrouter.spool.segments import SegmentTable
    from vpnrouter.spool.ledger import IdQueue

    def resident():
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4_096 / 2**20

    store = RocksStore(pathlib.Path(sys.argv[1]))
    # Waiting for the disk costs time, not memory.
    store._sync = WriteOptions()
    ledger, queue = Ledger(store), IdQueue()
    for number in range(200_000):
        payload = number.to_bytes(8, "big") * 32
        record = encode_record(b"a/b/c", payload, b"", 1, 4, 0, 1, number, "me")
        queue.append(ledger.add(record, 256, 4, 0, 0, [1]))
        store.commit(ledger.seal())
    with_store = resident()
    table, more = SegmentTable(), IdQueue()
    before = resident()
    for number in range(1, 1_000_001):
        table.append(number, 1, 1)
        more.append(number)
    print(json.dumps([with_store, resident() - before]))
"""


@pytest.mark.slow
def test_five_million_messages(tmp_path: Path) -> None:
    """What 200,000 take with the store, and what each million more takes beside it."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path / "spool")],
        capture_output=True,
        text=True,
        check=True,
    )
    with_store, million = json.loads(done.stdout)
    assert with_store + million * WAITING / 1_000_000 < MOST_MIB, done.stdout
