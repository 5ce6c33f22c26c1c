"""The screens of all connectors and of one."""

from typing import Any, Final

import pytest

from vpnrouter.config.connector import Connector
from vpnrouter.connectors.link_state import LinkEvent
from vpnrouter.server.connectors.runner import ConnectorRunner
from vpnrouter.units import SECOND_NS

ONCE: Final = "once-and-only-once"
LINKS: Final[dict[str, Any]] = {
    "in": {"source": {"address": "sensors/#"}, "quality_of_service": ONCE},
    "out": {"source": {"topic": "alarms/>"}, "target": {"address": "far/{1}"}},
    "spare": {"source": {"topic": "spare/>"}, "enabled": False},
}
NOW_S: Final = 1_000


class Clock:
    """Nanoseconds that stand still until a test moves them."""

    def __init__(self) -> None:
        self.now_ns = NOW_S * SECOND_NS

    def __call__(self) -> int:
        """Nanoseconds of monotonic time."""
        return self.now_ns


def made(router: Any, name: str, host: str) -> ConnectorRunner:
    """A connector of message VPN blue, which nobody dials."""
    nobody: Any = None
    configured = Connector.model_validate({"provider": {"url": f"mqtt://{host}"}, "links": LINKS})
    certificates = router.config.msg_vpns["blue"].bridging.tls_server_cert
    runner = ConnectorRunner(
        router.router,
        nobody,
        "blue",
        name,
        configured,
        certificates,
        draw=lambda: 0.5,
        clock=Clock(),
    )
    runner.connections[""].machine.begin(runner._clock())
    return runner


@pytest.fixture
def connectors(mesh: Any) -> dict[str, ConnectorRunner]:
    """Of the router edge: `well` is up and carries messages; `down` could not connect."""
    well, down = (made(mesh.edge, name, f"{name}.example") for name in ("well", "down"))
    now_ns = well._clock()
    well.connections[""].machine.reached(now_ns)
    well.connections[""].machine.joined(now_ns)
    for link in well.links.values():
        for event in (LinkEvent.CONNECTED, LinkEvent.OPENED):
            link.status.happened(event, now_ns)
    down.connections[""].machine.failed(
        "cannot connect to down.example: no route to host", now_ns, 0.5
    )
    out = well.links["out"].counters
    for second in range(4):
        out.messages = 50 * second
        out.bytes_ = 5_000 * second
        out.delivered = 48 * second
        out.dead_letters = 2 * second
        well.sample(now_ns + second * SECOND_NS)
    mesh.edge.have_connectors(well, down)
    return {"well": well, "down": down}


def test_down_on_top_with_its_reason(looking: Any, mesh: Any, connectors: Any) -> None:
    """State, provider, links, rates; the whole failure in the line of notes; all in 80 columns."""

    async def test(seen: Any) -> None:
        screen = await seen.press("0")
        lines = screen.splitlines()
        assert max(map(len, lines)) <= 80
        assert lines[1].split() == [
            *("Connector", "VPN", "State", "Provider", "Links", "Rx/s", "Tx/s", "Wait", "Failure"),
        ]
        assert lines[2].split()[:5] == ["down", "blue", "waiting", "mqtt://down.e…", "0/2"]
        assert lines[3].split()[:7] == ["well", "blue", "up", "mqtt://well.e…", "2/2", "-", "48"]
        assert "down waiting: cannot connect to down.example: no route to host" in lines[-2]
        assert "well" not in await seen.press("d")
        assert "well" in await seen.press("d")

    looking(test, mesh.edge, mesh.core)


def test_one_connector(looking: Any, mesh: Any, connectors: Any) -> None:
    """Each link with its way, its state, its reason and its counts."""
    inward = connectors["well"].links["in"].status
    inward.hold("queue orders is full", connectors["well"]._clock())

    async def test(seen: Any) -> None:
        await seen.press("0", "j")
        screen = await seen.press("enter")
        assert screen.startswith("overview › connectors › connector blue/well")
        assert max(map(len, screen.splitlines())) <= 80
        for part in (
            "well  up",
            "mqtt://well.example",
            "144 messages, 15kB",
            "◄ in  held",
            "queue orders is full",
            f"sensors/# to the same topic, {ONCE}",
            "► out  up",
            "alarms/> to far/{1}, duplicates-ok",
            "150 messages: 144 delivered, 6 dead letters",
            "dead letters 6",
        ):
            assert part in screen, part
        assert "► spare  disabled" in await seen.press("G")

    looking(test, mesh.edge)


def test_gone(looking: Any, mesh: Any, connectors: Any) -> None:
    """One that is removed meanwhile is told to be gone."""

    async def test(seen: Any) -> None:
        await seen.press("0", "enter")
        mesh.edge.have_connectors()
        assert "this connector is not there" in await seen.look()
        assert "no connectors" in await seen.press("0")

    looking(test, mesh.edge)


@pytest.mark.parametrize("keys", [("0",), ("0", "enter")], ids=["list", "detail"])
def test_reconnect(looking: Any, mesh: Any, connectors: Any, keys: tuple[str, ...]) -> None:
    """It is done after `y` alone: the next attempt is due at once."""
    machine = connectors["down"].connections[""].machine

    async def test(seen: Any) -> None:
        await seen.press(*keys)
        assert "Reconnect connector down in message VPN blue?" in await seen.press("R")
        await seen.press("n")
        assert machine.state.value == "waiting"
        await seen.press("R")
        await seen.press("y")
        await seen.app.workers.wait_for_complete()
        assert machine.state.value != "waiting" or machine.wake_ns <= connectors["down"]._clock()
        assert "connector down connects again" in await seen.screen()

    looking(test, mesh.edge)


@pytest.mark.parametrize("keys", [("0",), ("0", "enter")], ids=["list", "detail"])
def test_paused(looking: Any, mesh: Any, connectors: Any, keys: tuple[str, ...]) -> None:
    """Each switch is asked for first; what is paused is told by its state."""
    editor = mesh.edge.edited()
    runner = connectors["well"]
    with_it = Connector.model_validate({**runner.configured.model_dump(), "paused": True})

    async def test(seen: Any) -> None:
        await seen.press("0", "j", *keys[1:])
        asked = await seen.press("p")
        assert "Pause connector well in message VPN blue?" in asked
        assert "guaranteed ones wait" in asked
        await seen.press("n")
        for key, verb in (("e", "Enable"), ("x", "Disable"), ("u", "Resume")):
            assert f"{verb} connector well in message VPN blue?" in await seen.press(key)
            await seen.press("n")
        await seen.press("p")
        await seen.press("y")
        await seen.app.workers.wait_for_complete()
        # It runs, and is in no configuration.
        assert "connector well in msgVpn blue" in await seen.screen()
        runner.change(with_it, runner._server_cert, ())
        assert "paused" in await seen.look()

    digest = editor.digest()
    looking(test, mesh.edge)
    assert editor.digest() == digest


def test_viewer(looking: Any, mesh: Any, connectors: Any) -> None:
    """Who may only look is told so, and asked nothing."""
    users = {"ann": {"password": "pw", "role": "read-only"}}

    async def test(seen: Any) -> None:
        await seen.press("0")
        screen = await seen.press("R")
        assert "user ann may look and not change" in screen
        assert "Reconnect" not in screen

    looking(test, mesh.edge, users=users, login=("ann", "pw"))


def test_trouble_leads_there(looking: Any, mesh: Any, connectors: Any) -> None:
    """The overview has the connector among what is down, and Enter opens it; so does its message VPN."""

    async def test(seen: Any) -> None:
        lines = (await seen.screen()).splitlines()
        assert lines[3].split()[:4] == ["DOWN", "connector", "blue", "down"]
        await seen.press("shift+tab", "j")
        assert (await seen.press("enter")).startswith("overview › connector blue/down")
        await seen.press("1", "tab", "enter")
        assert (await seen.press("o")).startswith("overview › message VPN blue › connectors")

    looking(test, mesh.edge)
