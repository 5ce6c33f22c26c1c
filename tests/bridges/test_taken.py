"""What was taken, written down together with the messages."""

from vpnrouter.bridges.received_positions import (
    AcceptedPositions,
    ReceivedPositions,
    decode_positions,
)
from vpnrouter.core.guaranteed.spool import Spool
from vpnrouter.core.router import Router
from vpnrouter.spool.ledger import Ledger
from vpnrouter.spool.store import MemoryStore
from vpnrouter.trace.recorder import Recorder

STORE = b"s" * 16
KEY = b"bvpn\0bridge"


def test_written_with_the_unit_and_only_when_it_changed() -> None:
    """What is added is in the store after the commit, what is forgotten is not, and no change writes nothing."""
    store = MemoryStore(STORE)
    spool = Spool(Router("r", 1, Recorder()).context, Ledger(store))
    taken = AcceptedPositions(spool, KEY, ReceivedPositions())

    def commit() -> ReceivedPositions:
        taken.write()
        batch = spool.end_round()
        if batch is not None:
            store.commit(batch)
            spool.committed()
        return decode_positions(store.get(KEY) or b"")

    assert not taken.is_open
    taken.open(STORE, "q", [])
    for position in (5, 6, 9):
        taken.add(position)
    assert taken.is_open
    assert (taken.count, taken.has(6), taken.has(7)) == (3, True, False)
    assert commit().named("q") == {STORE: [(5, 2), (9, 1)]}
    taken.write()
    assert spool.end_round() is None
    taken.forget([(5, 2), (100, 3)])
    taken.close()
    assert (taken.count, taken.has(9)) == (0, False)
    assert commit().named("q") == {STORE: [(9, 1)]}
    # What the sender says that it has settled is forgotten when the flow stands again.
    taken.open(STORE, "q", [(9, 1)])
    assert taken.count == 0
    commit()
    assert store.get(KEY) is None
