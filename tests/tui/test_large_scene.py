"""The main screens of a large router on small and large terminals: pictures, made anew by --snapshot-update."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from management_routers import routers
from tui_scene import sample

from vpnrouter.config.connector import Connector
from vpnrouter.server.connectors.runner import ConnectorRunner
from vpnrouter.units import SECOND_NS

SIZES: Final = ((80, 24), (120, 40), (200, 50))
PLANTS: Final = 10
CLIENTS: Final = 1_000
QUEUES: Final = 300
BRIDGES: Final = 50
DOWN: Final = 7
"""Each so many-th bridge finds nobody."""


def plant(number: int) -> str:
    """A message VPN with its share of queues, and of bridges that bring what headquarters say."""
    queues = [
        f"      orders-of-hall-{at:03}: {{subscriptions: [hall-{at:03}/>]}}"
        for at in range(number, QUEUES, PLANTS)
    ]
    bridges = [
        f"      from-headquarters-{at:02}:\n"
        "        remote_authentication: {basic: {client_username: bridge, password: pw}}\n"
        f"        remote_msg_vpns: [{{name: headquarters, router: {'core' if at % DOWN else 'gone'},"
        f" location: '198.51.100.{7 if at % DOWN else 9}:55555'}}]\n"
        f"        remote_subscriptions: [plans-{at:02}/>]"
        for at in range(number, BRIDGES, PLANTS)
    ]
    lines = [
        f"  plant-{number}:",
        "    client_usernames: {sensor: {password: pw}}",
        "    queues:",
        *queues,
        "    bridges:",
        *bridges,
    ]
    return "\n".join(lines)


CORE: Final = """
listeners: [{protocol: link, bind: "127.0.0.1:55556"}]
msg_vpns:
  headquarters:
    client_usernames: {bridge: {password: pw}}
    client_profiles: {default: {allow_bridge_connections_enabled: true}}
"""


def unreachable(router: Any, name: str) -> ConnectorRunner:
    """A connector whose provider is not there."""
    nobody: Any = None
    links = {"in": {"source": {"address": "sensors/#"}}}
    configured = Connector.model_validate(
        {"provider": {"url": f"mqtt://{name}.example"}, "links": links}
    )
    certificates = router.config.msg_vpns["plant-1"].bridging.tls_server_cert
    runner = ConnectorRunner(
        *(router.router, nobody, "plant-1", name, configured, certificates),
        draw=lambda: 0.5,
        clock=lambda: 1_000 * SECOND_NS,
    )
    runner.connections[""].machine.begin(runner._clock())
    runner.connections[""].machine.failed(
        f"cannot connect to {name}.example: no route to host", runner._clock(), 0.5
    )
    return runner


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The router of ten plants: a thousand clients, three hundred queues, fifty bridges, two connectors that are
    down.
    """
    folder: Path = tmp_path_factory.mktemp("large")
    text = 'listeners: [{protocol: link, bind: "127.0.0.1:55555"}]\nmsg_vpns:\n'
    edge, core = routers(folder, edge=text + "\n".join(map(plant, range(PLANTS))) + "\n", core=CORE)
    for number in range(CLIENTS):
        name = f"plant-{number % PLANTS}/line-{number % 17:02}/sensor-{number:04}"
        edge.connect(
            f"plant-{number % PLANTS}", name, user="sensor", peer=f"192.0.2.{number % 255}:40000"
        )
    for number in range(0, QUEUES, 60):
        name = f"plant-{number % PLANTS}/line-{number % 17:02}/sensor-{number:04}"
        edge.publish(name, f"hall-{number:03}/x", *[b"x"] * 20)
    edge.have_connectors(*(unreachable(edge, name) for name in ("weather-service", "supplier")))
    edge.mesh.wait(5_000)
    sample(edge, core)
    return edge


SCREENS: Final = {
    "overview": (),
    "bridges": ("2",),
    "queues": ("3",),
    "clients": ("4",),
    "connectors": ("0",),
}


@pytest.fixture
def led(large: Any, application: Any) -> Callable[[str], tuple[Any, Any]]:
    """`led(screen)` gives an application, and what leads it to a screen."""

    def make(screen: str) -> tuple[Any, Any]:
        app = application(large)

        async def lead(pilot: Any) -> None:
            for key in ("", *SCREENS[screen]):
                if key:
                    await pilot.press(key)
                await app.look()
                await pilot.pause()
                await pilot.pause()

        return app, lead

    return make


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("screen", SCREENS)
def test_pictures(led: Any, snap_compare: Any, screen: str, size: tuple[int, int]) -> None:
    """Trouble first, names that tell rows apart, and the whole height in use."""
    app, lead = led(screen)
    assert snap_compare(app, terminal_size=size, run_before=lead)


TELLING: Final = {
    "overview": [r"DOWN", r"10 urgent", r"plant-[0-9]"],
    "bridges": [r"from-\S*ters-00 ", r"from-\S*ters-07 ", r"no given file describes router gone"],
    "queues": [r"orders-of-hall-[0-9]{3}"],
    "clients": [r"ters-[0-9]{2} |sensor-[0-9]{4}", r"of 1,042"],
    "connectors": [r"weath\S*rvice", r"supplier", r"no route to host"],
}
"""What has to be read, whatever the size; of names their begin and their end, which tells rows apart."""


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_what_matters_is_not_cut(large: Any, looking: Any, size: tuple[int, int]) -> None:
    """Of each screen; no line is wider than the terminal, and what is cut says so."""

    async def test(seen: Any) -> None:
        for screen, keys in SCREENS.items():
            text = await seen.press(*keys) if keys else await seen.look()
            lines = text.splitlines()
            assert max(map(len, lines)) <= size[0], screen
            assert len(lines) == size[1], screen
            for pattern in TELLING[screen]:
                assert re.search(pattern, text), (screen, pattern, text)

    looking(test, large, size=size)
