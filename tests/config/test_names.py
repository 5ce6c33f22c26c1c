from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from vpnrouter.config import names


@pytest.mark.parametrize(
    ("kind", "longest"),
    [
        (names.RouterName, 64),
        (names.MsgVpnName, 32),
        (names.BridgeName, 150),
        (names.QueueName, 200),
        (names.TopicEndpointName, 200),
        (names.ReplayLogName, 185),
        (names.ClientUsernameName, 189),
        (names.ClientProfileName, 32),
        (names.AclProfileName, 32),
        (names.UserName, 189),
        (names.FilePath, 4096),
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
        (names.RouterName, "edge-1.eu_west", "/ =é"),
        (names.MsgVpnName, "blue VPN/ü@x", "*?"),
        (names.BridgeName, '#a-b:"~`!\\@$%|^()_+={},.;[]', "/*?<> é"),
        (names.QueueName, "#P2P/QUE/orders ü", "*?'<>&;"),
        (names.ClientUsernameName, "ann@example.com", "*?"),
        (names.ClientProfileName, "#client-profile", ". /@é"),
        (names.AclProfileName, "any thing", ""),
        (names.UserName, "ann@example.com", ":"),
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
        TypeAdapter(names.ClientProfileName).validate_python("a#b")
