import numpy as np
import pytest

from vpnrouter.errors import OperationError
from vpnrouter.simulation import mesh, plan


def drafted(seed: int = 1, vpns: int = 12) -> tuple[plan.Plan, np.random.Generator]:
    """A plan of a small mesh, without templates."""
    rng = np.random.default_rng(seed)
    built = mesh.build(mesh.load("sndlib/polska"), vpns, 1, rng)
    return plan.draft(built, 600.0, 1.0, 3, rng), rng


@pytest.mark.parametrize("rows", [3_000, 4_321, 50_000, 10_000_000])
def test_rows_come_out_as_asked(rows: int) -> None:
    """Messages are shared out by weight, each stream has some, and rows fall short by less than a message."""
    made, rng = drafted()
    plan.lay_out(made, 1.0, rng)
    counts = plan.share_out(made, rows)
    length = [made.templates.length[stream.template] for stream in made.streams]
    total = int((counts * length).sum()) + len(made.states)
    assert rows - max(length) < total <= rows
    assert counts.min() >= plan.LEAST_MESSAGES


def test_too_few_rows_are_refused() -> None:
    """The words say how many it takes, and so many are enough."""
    made, rng = drafted()
    plan.lay_out(made, 1.0, rng)
    with pytest.raises(OperationError, match="at least") as refused:
        plan.share_out(made, 10)
    least = int(str(refused.value).split("at least ")[1].split(", or")[0].replace(",", ""))
    assert plan.share_out(made, least).min() == plan.LEAST_MESSAGES
    with pytest.raises(OperationError):
        plan.share_out(made, least - 1)


def test_feeds_avoid_links_that_are_down() -> None:
    """Every stream over such a bridge has a profile that is silent in the span."""
    made, rng = drafted()
    number = max(range(len(made.mesh.bridges)), key=lambda at: len(made.mesh.bridges[at].filters))
    made.downs[number] = [(100.0, 200.0, "gone")]
    plan.lay_out(made, 1.0, rng)
    first = {stream.template: stream for stream in made.streams}
    touched = [
        stream
        for template, stream in first.items()
        if number
        in made.templates.bridge_number[
            made.templates.first[template] : made.templates.first[template]
            + made.templates.length[template]
        ]
    ]
    assert touched
    for stream in touched:
        assert made.profiles[stream.profile].share_within([(100.0, 200.0)]) == 0
    links = [
        made.templates.columns["event"][state.row]
        for state in made.states
        if 99.9 < state.at_s < 200.1
    ]
    assert links.count("link_down") == links.count("link_up") == 2


def test_feeds_are_parted_at_a_stall() -> None:
    """A feed over a bridge that stalls has one stream outside the span and one that ends at the bridge."""
    made, rng = drafted()
    made.stalls[0] = (200.0, 300.0)
    plan.lay_out(made, 1.0, rng)
    ends: dict[int, list[int]] = {}
    for stream in made.streams:
        begin = made.templates.first[stream.template]
        rows = range(begin, begin + made.templates.length[stream.template])
        events = [
            made.templates.columns["event"][at]
            for at in rows
            if made.templates.bridge_number[at] == 0
        ]
        if events:
            ends.setdefault(stream.topic, []).append(len(events))
            inside = made.profiles[stream.profile].share_within([(200.0, 300.0)])
            assert inside == pytest.approx(1 if len(events) == 1 else 0)
    assert ends
    assert all(1 in many and 2 in many for many in ends.values())
