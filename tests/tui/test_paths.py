from vpnrouter.tui import api


def test_each_name_is_encoded_by_itself() -> None:
    """A slash or a comma in a name is no part of the path."""
    assert api.bridge("a/b", "x,y [z]") == "/msgVpns/a%2Fb/bridges/x%2Cy%20%5Bz%5D,auto"
    assert api.queue("a/b", "q?") == "/msgVpns/a%2Fb/queues/q%3F"
    assert api.client("v", "#bridge/r/v/b") == "/msgVpns/v/clients/%23bridge%2Fr%2Fv%2Fb"
    assert api.matches("v") == "/vpnrouter/v1/msgVpns/v/matches"


def test_subscriptions_of_all_message_vpns() -> None:
    """Without a message VPN it is the path of all."""
    assert api.subscriptions("") == "/vpnrouter/v1/subscriptions"
    assert api.subscriptions("v") == "/vpnrouter/v1/msgVpns/v/subscriptions"
