"""vpnrouter.core.login: client usernames and remembered passwords."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.config.secrets import (
    hash_password,
    is_hash,
    parse_hash,
    verify_password,
)
from vpnrouter.core.credentials import (
    ALTERNATE_NAME,
    ANONYMOUS,
    COMMON_NAME,
    THUMBPRINT,
    ClientCertRules,
    ClientUsername,
    Credentials,
    PeerCertificate,
)
from vpnrouter.core.guaranteed.endpoint_settings import (
    CONSUME,
    DELETE,
    MODIFY_TOPIC,
    NO_ACCESS,
    READ_ONLY,
    EndpointSettings,
)
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


def certificate(**changed: Any) -> PeerCertificate:
    """A certificate that is valid from 100 to 200 ns."""
    whole = PeerCertificate("cn", ("dns.example", "urn:x"), "ab12", 100, 200, 1, "CN=cn")
    return replace(whole, **changed)


def identified(
    credentials: Credentials, certificate: PeerCertificate, wall_ns: int
) -> ClientUsername:
    """The client username of a certificate that may be used."""
    known = credentials.named_by(certificate)
    credentials.check_certificate(certificate, wall_ns)
    return known


@pytest.mark.parametrize(
    ("source", "name"),
    [(COMMON_NAME, "cn"), (THUMBPRINT, "ab12"), (ALTERNATE_NAME, "dns.example")],
)
def test_what_names_the_owner_of_a_certificate(source: str, name: str) -> None:
    """Common name, thumbprint or first alternate name selects the client username."""
    user = ClientUsername(name)
    credentials = Credentials(True, [user], client_cert=ClientCertRules(source))
    assert identified(credentials, certificate(), 150) is user


@pytest.mark.parametrize("source", [COMMON_NAME, ALTERNATE_NAME])
def test_a_certificate_without_the_name(source: str) -> None:
    """A certificate that lacks what names the owner lets nobody in, not even `default`."""
    credentials = Credentials(
        False, [ClientUsername("default")], client_cert=ClientCertRules(source)
    )
    with pytest.raises(Refused, match="403 Forbidden: the certificate names no client username"):
        identified(credentials, certificate(common_name="", san=()), 150)


def test_certificates_name_listed_usernames_only() -> None:
    """Not every certificate of the authority is welcome: the name has to be listed."""
    credentials = Credentials(False, [ClientUsername("default")], client_cert=ClientCertRules())
    with pytest.raises(Refused) as caught:
        identified(credentials, certificate(), 150)
    assert caught.value.reason_code == 0x87


@pytest.mark.parametrize(
    ("rules", "changed", "wall_ns", "reason"),
    [
        (ClientCertRules(), {}, 99, "403 Certificate Not Yet Valid"),
        (ClientCertRules(), {}, 201, "403 Certificate Expired"),
        (ClientCertRules(max_chain_depth=0), {}, 150, "403 Certificate Chain Too Long"),
        (ClientCertRules(max_chain_depth=3), {"chain_depth": 4}, 150, "403 Certificate Chain Too"),
    ],
)
def test_certificates_that_are_refused(
    rules: ClientCertRules, changed: dict[str, Any], wall_ns: int, reason: str
) -> None:
    """Too early, too late, too long a chain: each has the field's reason."""
    credentials = Credentials(True, [ClientUsername("cn")], client_cert=rules)
    with pytest.raises(Refused, match=reason):
        identified(credentials, certificate(**changed), wall_ns)


@pytest.mark.parametrize("wall_ns", [100, 200, 99, 201])
def test_dates_that_do_not_matter(wall_ns: int) -> None:
    """The bounds are inside, and without date validation any time is."""
    rules = ClientCertRules(validate_date_enabled=wall_ns in (100, 200), max_chain_depth=1)
    credentials = Credentials(True, [ClientUsername("cn")], client_cert=rules)
    assert identified(credentials, certificate(), wall_ns).name == "cn"


def test_without_client_certificates() -> None:
    """Where they are off, none identifies anybody."""
    with pytest.raises(Refused, match="403 Client Certificate Authentication is Shutdown"):
        identified(Credentials(True, [ClientUsername("cn")]), certificate(), 150)


def test_decoys_cost_what_known_names_cost() -> None:
    """A decoy's stored password has the kind and the cost of a configured one, and none verifies."""
    hashed = hash_password("right", bytes(16), ln=4)
    credentials = Credentials(True, [ClientUsername("u", hashed)], b"secret")
    stored = credentials.decoy("nobody").password
    assert stored is not None
    assert parse_hash(stored)[:4] == parse_hash(hashed)[:4]
    assert not verify_password(stored, b"right")
    plain = Credentials(True, [ClientUsername("u", "plain")], b"secret")
    stored = plain.decoy("nobody").password
    assert stored is not None
    assert not is_hash(stored)
    assert stored != plain.decoy("somebody").password
    assert stored != Credentials(True, (), b"other").decoy("nobody").password


def test_decoys_are_mixed_like_known_names() -> None:
    """Where some passwords are hashed and some not, unknown names look like both, each always the same."""
    hashed = hash_password("right", bytes(16), ln=4)
    users = [ClientUsername("u", hashed), ClientUsername("v", "plain"), ClientUsername("w")]
    credentials = Credentials(True, users, b"secret")
    kinds = [is_hash(credentials.decoy(f"n{number}").password or "") for number in range(64)]
    assert set(kinds) == {True, False}
    assert kinds == [is_hash(credentials.decoy(f"n{n}").password or "") for n in range(64)]


def test_the_built_in_default_has_no_certificate() -> None:
    """A certificate whose name is `default` logs in only where somebody listed that client username."""
    shown = certificate(common_name="default")
    for listed in (False, True):
        default = ClientUsername("default", listed=listed)
        credentials = Credentials(True, [default], client_cert=ClientCertRules())
        if listed:
            assert identified(credentials, shown, 150) is default
        else:
            with pytest.raises(Refused, match="names no client username"):
                identified(credentials, shown, 150)


def test_permissions() -> None:
    """A ladder; the owner stands on top of it."""
    settings = EndpointSettings()
    settings.owner = "maria"
    ladder = [NO_ACCESS, READ_ONLY, CONSUME, MODIFY_TOPIC, DELETE]
    assert ladder == sorted(ladder)
    for permission in ladder:
        settings.permission = permission
        assert ClientUsername("otto").permission_on(settings) == permission
        assert ClientUsername("maria").permission_on(settings) == DELETE
        over = ClientUsername("otto", guaranteed_endpoint_permission_override_enabled=True)
        assert over.permission_on(settings) == DELETE
    settings.owner = ""
    settings.permission = NO_ACCESS
    assert ClientUsername("").permission_on(settings) == NO_ACCESS, "nobody is no owner"
