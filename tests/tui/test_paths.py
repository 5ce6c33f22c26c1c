from vpnrouter.tui import paths


def test_each_name_is_encoded_by_itself() -> None:
    """A slash or a comma in a name is no part of the path."""
    assert paths.bridge("a/b", "x,y [z]") == "/msgVpns/a%2Fb/bridges/x%2Cy%20%5Bz%5D,auto"
    assert paths.queue("a/b", "q?") == "/msgVpns/a%2Fb/queues/q%3F"
    assert paths.client("v", "#bridge/r/v/b") == "/msgVpns/v/clients/%23bridge%2Fr%2Fv%2Fb"
    assert paths.matches("v") == "/vpnrouter/v1/msgVpns/v/matches"


def test_subscriptions_of_all_message_vpns() -> None:
    """Without a message VPN it is the path of all."""
    assert paths.subscriptions("") == "/vpnrouter/v1/subscriptions"
    assert paths.subscriptions("v") == "/vpnrouter/v1/msgVpns/v/subscriptions"
