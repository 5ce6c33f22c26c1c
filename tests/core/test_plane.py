"""vpnrouter.core.router: what the message VPNs of a router share."""

from vpnrouter.core.context import RouterContext
from vpnrouter.trace.recorder import Recorder


def test_a_plane_is_its_seed() -> None:
    """Equal seeds give equal ids and equal sampling; tracing is on when anything is sampled."""
    one, two = (RouterContext("here", 99, Recorder(), 0.1) for _ in range(2))
    assert one.tracing
    assert one.ids.high == two.ids.high == 99
    assert one.sampler.left == two.sampler.left
    assert not RouterContext("here", 99, Recorder(), 0.0).tracing
