"""The golden packets as parameters: `golden` (all), `accepted` and `refused` of them."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from vpnrouter.wire.mqtt import packets
from vpnrouter.wire.mqtt.packets import Packet, SubscriptionRequest, Will
from vpnrouter.wire.mqtt.properties import Properties

DATA = Path(__file__).parents[2] / "conformance" / "data" / "mqtt_packets.yaml"
BYTES = {"topic", "payload", "password", "correlation_data", "authentication_data"}


class Golden(NamedTuple):
    """One case of the data file; `packet` is None when the frame must be refused."""

    name: str
    level: int
    frame: bytes
    packet: Packet | None
    canonical: bool
    reason: int
    clause: str


def build(field: str, value: Any) -> Any:
    """A constructor's argument from its form in the data file."""
    if field == "properties":
        return Properties(**arguments(value))
    if field == "will":
        return Will(**arguments(value))
    if field == "requests":
        return [SubscriptionRequest(**one) for one in value]
    if field == "user_properties":
        return [(key, text) for key, text in value]
    if field in BYTES:
        return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value.encode()
    return value


def arguments(fields: dict[str, Any]) -> dict[str, Any]:
    """Constructor arguments from a mapping of the data file."""
    return {field: build(field, value) for field, value in fields.items()}


def read_case(case: dict[str, Any]) -> Golden:
    """One entry of the data file; an unknown key is an error of the file."""
    case = dict(case)
    kind = case.pop("packet", None)
    fields = case.pop("fields", {})
    golden = Golden(
        name=case.pop("name"),
        level=case.pop("level"),
        frame=bytes.fromhex(case.pop("hex")),
        packet=None if kind is None else getattr(packets, kind)(**arguments(fields)),
        canonical=case.pop("canonical", True),
        reason=case.pop("reason", 0),
        clause=case.pop("clause", ""),
    )
    assert not case, f"{golden.name}: unknown keys {sorted(case)}"
    assert (golden.packet is None) == (golden.reason > 0), golden.name
    return golden


GOLDEN = [read_case(case) for case in yaml.safe_load(DATA.read_text(encoding="utf-8"))]
SELECTED = {
    "golden": GOLDEN,
    "accepted": [case for case in GOLDEN if case.packet is not None],
    "refused": [case for case in GOLDEN if case.packet is None],
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `golden`, `accepted` or `refused` once for each such case."""
    for name, cases in SELECTED.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, cases, ids=[case.name for case in cases])


@pytest.fixture
def all_accepted() -> list[Golden]:
    """Every golden packet that decodes."""
    return SELECTED["accepted"]
