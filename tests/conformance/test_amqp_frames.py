"""Golden frames of AMQP 1.0: what clients of other makers wrote, and what nobody may write."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.amqp import frames
from vpnrouter.wire.amqp.conditions import CONDITIONS
from vpnrouter.wire.amqp.types import Described, Symbol, Typed

DATA = Path(__file__).parent / "data/amqp_frames.yaml"
CASES: dict[str, Any] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
FRAMES: list[dict[str, Any]] = [
    frame for client in CASES["clients"] for frame in client["wrote"] if len(frame) > 1
]


def plain(value: Any) -> Any:
    """A value in the words of the data; fields that have their default are left out."""
    if isinstance(value, Symbol):
        return {"symbol": str(value)}
    if isinstance(value, Described):
        return {"described": [plain(value.descriptor), plain(value.value)]}
    if isinstance(value, Typed):
        return {"typed": [value.kind, plain(value.value)]}
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        default = type(value)._field_defaults
        given = zip(value._fields, value, strict=True)
        fields = {name: plain(one) for name, one in given if one != default.get(name, ...)}
        return {type(value).__name__: fields}
    if isinstance(value, dict):
        return {"map": [[plain(key), plain(one)] for key, one in value.items()]}
    return [plain(one) for one in value] if isinstance(value, list) else value


def decoded(data: bytes) -> frames.Frame:
    """The one frame of these bytes."""
    assert frames.frame_at(data, 0, len(data), limits.AMQP_FRAME_BYTES) == len(data)
    return frames.decode(data, 0, len(data))


@pytest.mark.parametrize("case", FRAMES)
def test_what_clients_write(case: dict[str, Any]) -> None:
    """It decodes to what the data says, and what we write of that decodes to the same."""
    frame = decoded(bytes.fromhex(case["hex"]))
    assert plain(frame.performative) == {case["performative"]: case["fields"]}
    assert (frame.channel, frame.payload.hex()) == (case.get("channel", 0), case.get("payload", ""))
    again = frames.encode(frame.performative, frame.channel, frame.kind, frame.payload)
    assert decoded(again) == frame


@pytest.mark.parametrize("case", FRAMES)
def test_every_cut(case: dict[str, Any]) -> None:
    """A frame that says that it ends early is refused as such, but for a message, which may end anywhere."""
    data = bytes.fromhex(case["hex"])
    whole = decoded(data)
    for size in range(frames.HEADER_BYTES + 1, len(data)):
        part = size.to_bytes(4, "big") + data[4:size]
        assert frames.frame_at(data, 0, size, limits.AMQP_FRAME_BYTES) == 0, "it waits for the rest"
        try:
            found = decoded(part)
        except ProtocolError as error:
            assert error.reason_code in CONDITIONS  # noqa: PT017 - some cuts are allowed
        else:
            assert found.performative == whole.performative
            assert whole.payload.startswith(found.payload)


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["name"])
def test_what_nobody_may_write(case: dict[str, Any]) -> None:
    """It is refused with the condition that stands for it."""
    data = bytes.fromhex(case["hex"])
    with pytest.raises(ProtocolError) as caught:
        decoded(data)
    assert CONDITIONS[caught.value.reason_code] == case["condition"]
    assert str(caught.value).startswith(case.get("clause", ""))
