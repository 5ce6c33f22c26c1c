from typing import Any

import numpy as np
import pytest

from vpnrouter.simulation import mesh, plan
from vpnrouter.simulation.faults.ground import Ground
from vpnrouter.simulation.faults.kinds import KINDS, plant


def test_each_kind_is_planted(faulty: Any) -> None:
    """Each kind leaves a fault of its name, and every fault is of a known kind."""
    assert {fault["kind"] for fault in faulty.truth["faults"]} == set(KINDS)


@pytest.mark.parametrize("seed", range(20))
def test_all_fit_into_a_middling_mesh(seed: int) -> None:
    """Two of each kind find room in 250 message VPNs, whatever the seed."""
    rng = np.random.default_rng(seed)
    kinds = (*KINDS, *KINDS)
    built = mesh.build(mesh.load("sndlib/germany50"), 250, len(kinds), rng)
    ground = Ground(plan.draft(built, 3_600.0, 0.2, 1, rng), 100_000, rng)
    plant(ground, kinds)
    found = [fault["kind"] for fault in ground.faults]
    assert all(found.count(kind) >= 2 for kind in KINDS), f"seed {seed}"
