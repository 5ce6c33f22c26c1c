"""What can be shown, and what it is called."""

import pytest

from vpnrouter.cli._show_rows import RowQuery, What


@pytest.mark.parametrize(
    ("what", "one", "key"),
    [
        (What.VPNS, "message VPN", "msgVpnName"),
        (What.CLIENTS, "client", "clientName"),
        (What.SUBSCRIPTIONS, "subscription", "name"),
        (What.QUEUES, "queue", "queueName"),
        (What.BRIDGES, "bridge", "bridgeName"),
        (What.EVENTS, "event", "event"),
    ],
)
def test_names(what: What, one: str, key: str) -> None:
    """The word for one, and the attribute with its name."""
    assert (what.one, what.key) == (one, key)


def test_everything_without_more_words() -> None:
    """No name, no VPN, no bound."""
    assert RowQuery(What.CLIENTS)[1:] == ("", "", "", 0)
