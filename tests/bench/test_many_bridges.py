from bench.many_bridges import UP


def test_a_bridge_that_is_up_is_told_from_others() -> None:
    """By the event's name or by the last word; the message VPN says which bridge it is."""
    said = (
        b"vpnrouter: fan-1 bridge from-source from edge at 127.0.0.1:5: up\n"
        b"vpnrouter: fan-2 bridge from-source from edge at 127.0.0.1:5: down: lost\n"
        b"vpnrouter: VPN_BRIDGING_LINK_UP: VPN fan-3 bridge from-source from edge at x: up again\n"
        b"vpnrouter: VPN_BRIDGING_LINK_DOWN: VPN fan-4 bridge from-source: down: not up\n"
        b"vpnrouter: up after 2.97 s\n"
        b"vpnrouter: VPN_BRIDGING_LINK_UP: VPN fan-10 bridge from-source from edge at x: up"
    )
    assert [match[1] for match in UP.finditer(said)] == [b"fan-1", b"fan-3", b"fan-10"]
