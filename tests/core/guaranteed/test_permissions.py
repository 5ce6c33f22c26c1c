"""vpnrouter.core.guaranteed.reasons."""

from vpnrouter.core.credentials import ClientUsername
from vpnrouter.core.guaranteed.terms import (
    CONSUME,
    DELETE,
    MODIFY_TOPIC,
    NO_ACCESS,
    READ_ONLY,
    EndpointTerms,
)


def test_permissions() -> None:
    """A ladder; the owner stands on top of it."""
    terms = EndpointTerms()
    terms.owner = "maria"
    ladder = [NO_ACCESS, READ_ONLY, CONSUME, MODIFY_TOPIC, DELETE]
    assert ladder == sorted(ladder)
    for permission in ladder:
        terms.permission = permission
        assert ClientUsername("otto").permission_on(terms) == permission
        assert ClientUsername("maria").permission_on(terms) == DELETE
        over = ClientUsername("otto", guaranteed_endpoint_permission_override_enabled=True)
        assert over.permission_on(terms) == DELETE
    terms.owner = ""
    terms.permission = NO_ACCESS
    assert ClientUsername("").permission_on(terms) == NO_ACCESS, "nobody is no owner"
