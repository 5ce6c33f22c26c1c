import pytest
from pydantic import ValidationError

from vpnrouter import limits
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


def test_message_vpns_are_bounded() -> None:
    """More of them than any router has are refused before the first is looked at."""
    named = {f"v{number}": {"none": 1} for number in range(limits.MSG_VPNS + 1)}
    with pytest.raises(ValidationError) as refused:
        RouterConfig.model_validate({"router": {"name": "r"}, "msg_vpns": named})
    assert [each["loc"] for each in refused.value.errors()] == [("msg_vpns",)]
