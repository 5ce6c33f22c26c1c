"""vpnrouter.core.guaranteed.reasons."""

from vpnrouter.core.guaranteed.reasons import permission_of
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
        assert permission_of(terms, "otto", override=False) == permission
        assert permission_of(terms, "maria", override=False) == DELETE
        assert permission_of(terms, "otto", override=True) == DELETE
    terms.owner = ""
    terms.permission = NO_ACCESS
    assert permission_of(terms, "", override=False) == NO_ACCESS, "nobody is no owner"
