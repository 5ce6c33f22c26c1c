"""All clients together, on routers of their own."""

from pathlib import Path

import pytest

from vpnrouter.demo import scene
from vpnrouter.demo.clients import Counted, accepted, connected_clients
from vpnrouter.demo.progress import PUBLISHED, Lines
from vpnrouter.demo.routers import running_routers
from vpnrouter.demo.scene import Flights
from vpnrouter.errors import OperationError


def test_everything_arrives(flights: Flights, folder: Path) -> None:
    """Every publisher's flights leave, every subscriber's tally is what it must be, on one connection."""
    with (
        running_routers(folder) as routers,
        connected_clients(folder, len(flights), routers.addresses) as clients,
    ):
        counted: Counted = clients.run(flights, Lines({PUBLISHED: 1}))
        assert accepted(routers.link_ports) in {1, None}
    assert counted.published == {
        one.name: int(scene.published(flights, one).sum()) for one in scene.PUBLISHERS
    }
    for one in scene.SUBSCRIBERS:
        assert counted.tallies[one.name] == scene.tally(flights, one), one.name


def test_nobody_answers(folder: Path) -> None:
    """Clients that cannot connect are an error that names their log."""
    nowhere = dict.fromkeys(scene.PLACES, ("127.0.0.1", 1))
    with (
        pytest.raises(OperationError, match=r"subscribers edge ended early: .*Connection refused"),
        connected_clients(folder, 10, nowhere),
    ):
        pass
