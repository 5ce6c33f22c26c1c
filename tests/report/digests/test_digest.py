import pytest
from pyspark.testing import assertSchemaEqual

from vpnrouter.report.digests.digest import Digests
from vpnrouter.report.digests.schema import DIGESTS

pytestmark = pytest.mark.spark


def test_every_digest_is_made(small_mesh: Digests) -> None:
    """All of them, in their shape, and the clocks besides."""
    assert small_mesh.frames.keys() == DIGESTS.keys()
    for name, frame in small_mesh.frames.items():
        assertSchemaEqual(frame.schema, DIGESTS[name])
    clocks = {row["router"]: row["offset_ns"] for row in small_mesh.clocks}
    assert abs(clocks["core"] - clocks["edge"]) == 40_000_000
