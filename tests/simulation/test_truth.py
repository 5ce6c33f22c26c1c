import numpy as np

from vpnrouter.simulation import mesh, plan, truth


def test_truth_is_counted_from_the_plan() -> None:
    """Rows by event are templates times messages, and states; clocks are of routers in use."""
    rng = np.random.default_rng(1)
    built = mesh.build(mesh.load("sndlib/polska"), 10, 1, rng)
    made = plan.draft(built, 600.0, 1.0, 2, rng)
    plan.lay_out(made, 1.0, rng)
    counts = np.full(len(made.streams), 5)
    told = truth.tell(made, counts, [{"kind": "loop"}], [])
    numbers = told["counts"]
    assert numbers["messages"] == numbers["events"]["ingress"] == 5 * len(made.streams)
    assert sum(numbers["events"].values()) == numbers["rows"]
    assert numbers["events"]["link_up"] == 2 * len(built.bridges)
    assert set(told["clocks"]) == {site.router_name for site in built.sites}
    assert sum(edge["sent"] for edge in told["edges"]) == numbers["events"]["bridge_send"]
    assert told["faults"] == [{"kind": "loop"}]
