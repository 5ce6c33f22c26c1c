"""Every message is accounted for at every instant, whatever happens to the links.

The short form runs always; `VPNROUTER_LONG=1` makes it last longer.
"""

import json
import os
import random
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

import vpnrouter
from vpnrouter.testing.network import FROM_TARGET, TO_TARGET

LONG: Final = bool(os.environ.get("VPNROUTER_LONG"))


def both_ways(document: dict[str, Any], location: str) -> None:
    """Give VPN blue of edge a bridge from VPN yellow of core."""
    document["msg_vpns"]["blue"]["bridges"] = {
        "from-yellow": {
            "topic_syntax": "mqtt",
            "remote_connection": {"retry_delay": 0, "heartbeat_interval": 150},
            "remote_authentication": {"basic": {"client_username": "edge", "password": "word"}},
            "remote_msg_vpns": [{"name": "yellow", "router": "core", "location": location}],
            "remote_subscriptions": ["back/#"],
        }
    }


def let_in(document: dict[str, Any]) -> None:
    """Let bridges log in to VPN yellow of core."""
    document["listeners"].append({"protocol": "link", "bind": "127.0.0.1:0"})
    document["msg_vpns"]["yellow"]["client_profiles"] = {
        "default": {"allow_bridge_connections_enabled": True}
    }
    document["msg_vpns"]["yellow"]["client_usernames"] = {"edge": {"password": "word"}}


def shown(command: list[str], router: Any, *options: str) -> list[dict[str, Any]]:
    """What `vpnrouter show bridges --balance --json` says; it must exit with 0."""
    url = f"http://127.0.0.1:{router.port('http')}"
    done = subprocess.run(
        [*command, "show", "bridges", "--balance", "--json", "--url", url, *options],
        capture_output=True,
        env=os.environ | {"PYTHONPATH": str(Path(vpnrouter.__file__).parents[1])},
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def assert_adds_up(row: dict[str, Any]) -> None:
    """What came was delivered, discarded or is in flight; what was offered was sent, and so on."""
    assert (row["rxImbalance"], row["txImbalance"]) == (0, 0), row
    received = row["deliveredRxMsgCount"] + sum(row["discardedRx"].values())
    assert row["dataRxMsgCount"] == received + row["rxInFlightMsgCount"], row
    sent = row["dataTxMsgCount"] + sum(row["discardedTx"].values())
    assert row["offeredTxMsgCount"] == sent + row["txInFlightMsgCount"], row


def over_all(router: Any) -> bool:
    """Whether messages came over all bridges of a router."""
    return all(row["dataRxMsgCount"] > 100 for row in router.bridges())


@pytest.mark.slow
def test_the_balance_holds_while_links_break(
    bridged: Any,
    network: Any,
    paho: Any,
    publishing: Any,
    vpnrouter_command: Any,
    patiently: Any,
) -> None:
    """Links cut at random under load, messages too long and a loop of two bridges: nothing is lost uncounted."""
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    draws = random.Random(seed)
    back = network.link()
    two = bridged(edge=lambda edge: both_ways(edge, back.address), core=let_in)
    back.target = ("127.0.0.1", two.core.port("link"))
    two.edge.bridge("from-yellow", inboundState="ready-in-sync")
    for router, topic in ((two.edge, "out/x"), (two.core, "back/x"), (two.core, "out/home")):
        publishing(paho(router.port("mqtt"), f"p-{topic}"), topic, rate=400, size=2000)
    for router in (two.edge, two.core):
        paho(router.port("mqtt"), "s").subscribe("#")
    links = (two.link, back)
    checks = 0
    ends = time.monotonic() + (60 if LONG else 5)
    while time.monotonic() < ends:
        link = draws.choice(links)
        draws.choice(
            (
                link.cut,
                link.close,
                link.orphan,
                link.unreachable,
                lambda link=link: link.stall(draws.choice((TO_TARGET, FROM_TARGET))),
                lambda link=link: link.throttle(draws.randrange(50_000, 500_000)),
                lambda link=link: link.cut_after(
                    draws.randrange(1, 20_000), draws.choice((TO_TARGET, FROM_TARGET))
                ),
            )
        )()
        for router in (two.edge, two.core):
            for row in router.bridges():
                assert_adds_up(row)
                checks += 1
        time.sleep(draws.uniform(0.02, 0.3))
        if draws.random() < 0.8:
            link.heal()
    for link in links:
        link.heal()
    print(f"{checks} checks")
    for router in (two.edge, two.core):
        patiently(partial(over_all, router), "messages over all")
        for row in shown(vpnrouter_command, router):
            assert_adds_up(row)
        assert not router.told("Traceback")


def test_the_ends_of_a_link_agree(bridged: Any, paho: Any) -> None:
    """On a link that never broke, what one end sent is what the other one received, message for message."""
    count = 300
    two = bridged(core=let_in)
    far = paho(two.core.port("mqtt"), "far")
    far.subscribe("out/#")
    near = paho(two.edge.port("mqtt"), "near")
    for number in range(count):
        near.publish(f"out/{number}", b"x" * number)
    for number in range(count):
        assert far.next() == (f"out/{number}", b"x" * number)
    (row,) = two.core.bridges()
    assert row["dataRxMsgCount"] == row["deliveredRxMsgCount"] == count
    assert_adds_up(row)
