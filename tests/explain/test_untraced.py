"""The arrivals are those of a message that is not traced."""

from pathlib import Path

from vpnrouter.config.load import load
from vpnrouter.explain.mesh import MemoryMesh
from vpnrouter.explain.probe import Probe
from vpnrouter.explain.request import ENDPOINT, Arrival, ExplainRequest, Explanation
from vpnrouter.explain.steps import compare

CONFIGS = Path(__file__).parents[2] / "configs"
QUESTION = ExplainRequest("edge", "blue", "orders/1", "persistent")
WALL_NS = 1_700_000_000_000_000_000


def arrivals(*told: tuple[str, str, int]) -> tuple[list[tuple[str, int]], list[str]]:
    """What is left of these arrivals (router, queue, count), and the notes."""
    mesh = [load(CONFIGS / "core.yaml"), load(CONFIGS / "edge.yaml")]
    answer = Explanation("orders/1", "persistent", "edge", "blue")
    answer.arrivals = [
        Arrival(
            router,
            "blue" if router == "edge" else "yellow",
            ENDPOINT,
            name,
            "persistent",
            "orders/1",
            count,
        )
        for router, name, count in told
    ]
    memory_mesh = MemoryMesh(mesh, WALL_NS, traced=False)
    compare(answer, memory_mesh, Probe(memory_mesh, QUESTION), b"orders/1")
    return [(one.name, one.count) for one in answer.arrivals], answer.notes


def test_what_is_right_stays() -> None:
    """No note where there is no difference."""
    told = (("edge", "to-core", 1), ("core", "orders", 1))
    assert arrivals(*told) == ([("orders", 1), ("to-core", 1)], [])


def test_what_differs_is_corrected_and_said() -> None:
    """Once and not twice, there and not somewhere else."""
    found, notes = arrivals(("edge", "to-core", 2))
    assert found == [("orders", 1), ("to-core", 1)]
    assert [note.split(" times")[0] for note in notes] == [
        "core/yellow: a message that is not traced comes to endpoint orders 1",
        "edge/blue: a message that is not traced comes to endpoint to-core 1",
    ]
