from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from vpnrouter.config import model


@pytest.mark.parametrize(
    ("kind", "longest"),
    [
        (model.RouterName, 64),
        (model.MsgVpnName, 32),
        (model.BridgeName, 150),
        (model.QueueName, 200),
        (model.TopicEndpointName, 200),
        (model.ReplayLogName, 185),
        (model.ClientUsernameName, 189),
        (model.ClientProfileName, 32),
        (model.AclProfileName, 32),
        (model.UserName, 189),
        (model.FilePath, 4096),
    ],
)
def test_lengths(kind: Any, longest: int) -> None:
    """Each name has 1 to as many characters as the field allows, and not one more."""
    adapter = TypeAdapter(kind)
    assert adapter.validate_python("a" * longest) == "a" * longest
    with pytest.raises(ValidationError, match=f"at most {longest} are allowed"):
        adapter.validate_python("a" * (longest + 1))
    with pytest.raises(ValidationError, match="must not be empty"):
        adapter.validate_python("")


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (model.RouterName, "edge-1.eu_west", "/ =é"),
        (model.MsgVpnName, "blue VPN/ü@x", "*?"),
        (model.BridgeName, '#a-b:"~`!\\@$%|^()_+={},.;[]', "/*?<> é"),
        (model.QueueName, "#P2P/QUE/orders ü", "*?'<>&;"),
        (model.ClientUsernameName, "ann@example.com", "*?"),
        (model.ClientProfileName, "#client-profile", ". /@é"),
        (model.AclProfileName, "any thing", ""),
        (model.UserName, "ann@example.com", ":"),
    ],
)
def test_characters(kind: Any, good: str, bad: str) -> None:
    """Each name takes the field's characters and refuses each forbidden one."""
    adapter = TypeAdapter(kind)
    assert adapter.validate_python(good) == good
    for character in bad + "\n\0\x85":
        with pytest.raises(ValidationError, match=r"must not contain|may only contain"):
            adapter.validate_python(f"a{character}b")


def test_hash_leads_a_client_profile_name_only() -> None:
    """`#` may stand first in a client profile name and nowhere else."""
    with pytest.raises(ValidationError, match="after an optional leading #"):
        TypeAdapter(model.ClientProfileName).validate_python("a#b")
