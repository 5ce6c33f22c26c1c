"""vpnrouter.core.login: a value."""

import dataclasses

import pytest

from vpnrouter.core.credentials import PeerCertificate


def test_it_is_a_value() -> None:
    """Two of the same content are equal, and none changes."""
    one, other = (PeerCertificate("cn", ("a",), "ff", 1, 2, 0, "CN=cn") for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(one, "common_name", "else")  # noqa: B010 - the checker sees it otherwise
