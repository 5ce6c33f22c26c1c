import pytest
from pydantic import ValidationError

from vpnrouter.config.endpoint import GuaranteedMsging


def test_defaults() -> None:
    """Guaranteed messaging is on, with the field's quota of a software broker."""
    assert GuaranteedMsging().model_dump() == {"enabled": True, "max_msg_spool_usage": 10_000}


@pytest.mark.parametrize("usage", [0, 6_000_000])
def test_quota(usage: int) -> None:
    """From nothing to the field's most, and not one more."""
    written = GuaranteedMsging.model_validate({"max_msg_spool_usage": usage})
    assert written.max_msg_spool_usage == usage
    with pytest.raises(ValidationError):
        GuaranteedMsging.model_validate({"max_msg_spool_usage": 6_000_001})
