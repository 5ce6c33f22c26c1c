"""vpnrouter.core.credentials: client usernames and remembered passwords."""

import pytest

from vpnrouter import limits
from vpnrouter.core.credentials import ANONYMOUS, ClientUsername, Credentials
from vpnrouter.errors import Refused


def test_without_basic_authentication_any_name_will_do() -> None:
    """Known names select their profiles, others those of `default`, none is anonymous."""
    known = ClientUsername("known", None, "fast", "tight")
    default = ClientUsername("default", None, "slow", "loose")
    credentials = Credentials(False, [known, default])
    assert credentials.identify("known") is known
    other = credentials.identify("other")
    assert (other.name, other.client_profile, other.acl_profile) == ("other", "slow", "loose")
    assert credentials.identify(None).name == ANONYMOUS
    assert credentials.identify("").name == ANONYMOUS
    assert not credentials.needs_password(known)
    bare = Credentials(False).identify("x")
    assert (bare.client_profile, bare.acl_profile) == ("default", "default")


def test_a_name_that_is_shut_down() -> None:
    """It stays shut down when it is identified, and unknown names are whatever `default` is."""
    shut = ClientUsername("shut", "pw", enabled=False)
    default = ClientUsername("default", enabled=False)
    assert not Credentials(True, [shut, default]).identify("shut").enabled
    assert not Credentials(False, [shut, default]).identify("shut").enabled
    assert not Credentials(False, [shut, default]).identify("unknown").enabled
    assert Credentials(False, [shut]).identify("unknown").enabled


def test_with_basic_authentication_only_known_names() -> None:
    """Unknown names, no name and names without password get the one answer of a wrong password."""
    credentials = Credentials(True, [ClientUsername("u", "pw"), ClientUsername("none")])
    assert credentials.needs_password(credentials.identify("u"))
    for name in ("unknown", None, "", "none"):
        with pytest.raises(Refused) as caught:
            credentials.identify(name)
        assert (caught.value.reason, caught.value.reason_code) == ("403 Forbidden", 0x86)


def test_remembered_passwords() -> None:
    """Only the very password verified for this name, and not after the stored one changed."""
    user, other = ClientUsername("u", "stored"), ClientUsername("v", "stored")
    credentials = Credentials(True, [user, other], b"secret")
    assert not credentials.remembered(user, b"pw")
    credentials.remember(user, b"pw")
    assert credentials.remembered(user, b"pw")
    assert not credentials.remembered(user, b"pw2")
    assert not credentials.remembered(user, b"")
    assert not credentials.remembered(other, b"pw")
    assert not credentials.remembered(ClientUsername("u", "changed"), b"pw")


def test_the_memory_is_bounded() -> None:
    """REMEMBERED_PASSWORDS names are remembered, with one more the memory starts anew."""
    credentials = Credentials(True, (), b"secret")
    names = [
        ClientUsername(f"u{number}", "pw") for number in range(limits.REMEMBERED_PASSWORDS + 1)
    ]
    for name in names[:-1]:
        credentials.remember(name, b"pw")
    assert credentials.remembered(names[0], b"pw")
    credentials.remember(names[-1], b"pw")
    assert not credentials.remembered(names[0], b"pw")
    assert credentials.remembered(names[-1], b"pw")
