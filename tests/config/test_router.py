import pytest
from pydantic import ValidationError

from vpnrouter.config.router import RouterConfig


def test_smallest_configuration() -> None:
    """A router needs a name and nothing else."""
    config = RouterConfig.model_validate({"router": {"name": "r"}})
    assert config.router.data_dir == "./data"
    assert config.listeners == ()
    assert config.trace is None
    assert config.management.users == {}
    assert config.msg_vpns == {}


def test_name_is_needed() -> None:
    """A router without a name cannot be told from another one."""
    nameless: list[dict[str, object]] = [{}, {"router": {}}]
    for written in nameless:
        with pytest.raises(ValidationError, match="Field required"):
            RouterConfig.model_validate(written)
