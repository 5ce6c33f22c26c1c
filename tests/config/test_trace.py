import pytest
from pydantic import ValidationError

from vpnrouter import limits
from vpnrouter.config.trace import Trace


def test_a_written_block_traces() -> None:
    """A block with a directory traces one message in a hundred."""
    trace = Trace(directory="t")
    assert trace.enabled
    assert trace.sample == 0.01
    assert trace.rotation.max_bytes == limits.TRACE_FILE_BYTES
    assert (trace.retention.max_days, trace.retention.max_bytes) == (0, 0)


@pytest.mark.parametrize("sample", [0, 0.0, 1, 1.0, 0.5])
def test_share(sample: float) -> None:
    """The share is a number from 0 to 1, with or without a point."""
    assert Trace.model_validate({"directory": "t", "sample": sample}).sample == sample


@pytest.mark.parametrize("sample", [-0.01, 1.01, True, float("inf"), float("nan"), "1"])
def test_no_share(sample: object) -> None:
    """Everything else is refused."""
    with pytest.raises(ValidationError):
        Trace.model_validate({"directory": "t", "sample": sample})
