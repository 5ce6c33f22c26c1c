import numpy as np
import pytest

from vpnrouter.simulation import mesh, plan
from vpnrouter.simulation.files import Press

START_NS = 1_772_352_000 * 10**9


def pressed(seed: int = 1) -> tuple[plan.Plan, Press, np.ndarray]:
    """A small plan, its press and its counts."""
    rng = np.random.default_rng(seed)
    built = mesh.build(mesh.load("sndlib/polska"), 10, 1, rng)
    made = plan.draft(built, 600.0, 1.0, 2, rng)
    plan.lay_out(made, 1.0, rng)
    counts = plan.share_out(made, 5_000)
    return made, Press(made, counts, START_NS, rng), counts


@pytest.mark.parametrize("slices", [1, 3, 50])
def test_slices_hold_everything_once(slices: int) -> None:
    """However the time is cut, each stream has its messages and each message all its rows."""
    made, press, counts = pressed()
    total = press.rows
    parts = [press.draw(600.0 * (at + 1) / slices)[0] for at in range(slices)]
    row = np.concatenate([part.row for part in parts])
    message = np.concatenate([part.message for part in parts])
    assert len(row) == total
    assert len(np.unique(message[message >= 0])) == counts.sum()
    pairs = np.stack([row, message])[:, message >= 0]
    assert len(np.unique(pairs, axis=1).T) == pairs.shape[1]
    events = np.array(made.templates.columns["event"])[row]
    assert (events == "ingress").sum() == counts.sum()
    assert (message < 0).sum() == len(made.states)


def test_a_slice_begins_where_the_last_one_ended() -> None:
    """Messages of a slice come before its end and, but for one a stream, after its begin."""
    made, press, _ = pressed()
    press.draw(200.0)
    rows, _ = press.draw(400.0)
    came = np.array(made.templates.columns["event"])[rows.row] == "ingress"
    at_s = (rows.ts_ns[came] - START_NS) / 1e9
    assert (at_s < 460).all()
    assert ((at_s < 199.9) | (at_s > 400.1)).sum() <= 2 * len(made.streams)


def test_rows_are_ordered_by_router_and_time() -> None:
    """The order goes through the routers one after the other, and through each in time."""
    made, press, _ = pressed()
    rows, order = press.draw(600.0)
    router = np.array(made.templates.router)[rows.row[order]]
    assert (np.diff(router) >= 0).all()
    late = np.diff(rows.ts_ns[order])[np.diff(router) == 0]
    assert (late > -2_048).all()
