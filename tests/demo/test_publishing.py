"""The publishers' process."""

import socket
import threading

import pytest

from vpnrouter.demo import scene
from vpnrouter.demo.publishing import Station, connected, descriptor
from vpnrouter.demo.routers import Routers
from vpnrouter.demo.scene import Flights, topic
from vpnrouter.demo.subscribing import Ear
from vpnrouter.errors import OperationError


def test_own_flights(flights: Flights, routers: Routers) -> None:
    """A publisher sends the flights of its airport among those asked for, on their topics."""
    address = routers.addresses[scene.EDGE_GREEN]
    ear = Ear(scene.Subscriber("test", scene.EDGE_GREEN, "flights/#"), address)
    station = Station(flights, scene.Publisher("test", scene.EDGE_GREEN, "JFK"), address)
    station.publish(0, 100)
    station.publish(100, 250)
    mine = [flights.routes[route] for route in flights.route_of[:250]]
    mine = [route for route in mine if route[1] == "JFK"]
    assert station.count == len(mine) > 0
    while ear.count < station.count:
        ear.listen()
    assert set(ear.tally) == {scene.EDGE_GREEN}
    assert ear.tally[scene.EDGE_GREEN].total() == len(mine)
    assert set(ear.tally[scene.EDGE_GREEN]) == {topic(route) for route in mine}


def test_hung_up() -> None:
    """A router that hangs up instead of answering is an error that names the client."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            server.accept()[0].close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(OperationError, match="test cannot connect"):
            connected("test", server.getsockname())
        thread.join()


def test_no_connection(routers: Routers) -> None:
    """A client that has hung up has no socket to wait for."""
    client = connected("test-gone", routers.addresses[scene.CORE_GREEN])
    assert descriptor(client) > 0
    client.disconnect()
    with pytest.raises(OperationError, match="connection lost"):
        descriptor(client)
