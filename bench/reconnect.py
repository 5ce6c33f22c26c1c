"""Measures how soon a bridge is up again once its remote can be reached: `python -m bench.reconnect`.

Two routers and a link between them that fails. Each turn starts the router with the bridge anew, since one that
comes and goes is tried less and less often; then the link is cut and refuses for a moment, is healed, and the
time counts until the first message has come across.
"""

from __future__ import annotations

import argparse
import contextlib
import select
import socket
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.clients import clients
from bench.dialects import MQTT
from bench.ours import ready_addresses, ready_line
from bench.processes import running
from bench.products import Address, directory
from vpnrouter.testing.network import FaultyLink, FaultyNetwork

GOAL_MS = 100.0
TURNS = 20
AWAY_S = 0.5
"""How long the remote cannot be reached; within the five seconds in which attempts are quick."""
PROBE_S = 0.001
PATIENCE_S = 40.0

_EDGE = """\
router: {name: edge}
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: link, bind: "127.0.0.1:0"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    client_profiles: {default: {allow_bridge_connections_enabled: true}}
"""
_CORE = """\
router: {name: core}
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: yellow}
msg_vpns:
  yellow:
    authentication: {basic: {enabled: false}}
    bridges:
      from-blue:
        remote_authentication: {basic: {client_username: core}}
        remote_msg_vpns: [{name: blue, location: "LOCATION"}]
        remote_subscriptions: [">"]
"""
_RUN = "from vpnrouter.cli.app import main; main()"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; 0 when the median meets the goal."""
    parser = argparse.ArgumentParser(prog="python -m bench.reconnect", description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS, help="cuts (default: 20)")
    options = parser.parse_args(arguments)
    found = []
    with directory("reconnect") as folder, FaultyNetwork() as network:
        link = network.link()
        with _router(folder, "edge", _EDGE) as edge:
            link.target = edge["link"]
            for _ in range(options.turns):
                with _router(folder, "core", _CORE.replace("LOCATION", link.address)) as core:
                    found.append(_turn(link, edge["mqtt"], core["mqtt"]) * 1000)
    median = statistics.median(found)
    print(
        f"back after min {min(found):.0f} ms, median {median:.0f} ms, max {max(found):.0f} ms"
        f" ({len(found)} cuts; goal {GOAL_MS:.0f} ms)"
    )
    return 0 if median <= GOAL_MS else 1


@contextlib.contextmanager
def _router(folder: Path, name: str, text: str) -> Iterator[dict[str, Address]]:
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    log = folder / f"{name}.log"
    with running([sys.executable, "-c", _RUN, "run", str(path)], core=None, log=log) as process:
        yield ready_addresses(ready_line(process, log))


def _turn(link: FaultyLink, near: Address, far: Address) -> float:
    """Seconds from the end of the fault to the first message across."""
    with contextlib.ExitStack() as stack:
        (sender,) = stack.enter_context(clients(MQTT, near, 1, "near"))
        (taker,) = stack.enter_context(clients(MQTT, far, 1, "far"))
        MQTT.subscribe(taker, [MQTT.topic(0)])
        frame = MQTT.publish(MQTT.topic(0), b"probe")
        _across(sender, taker, frame)
        link.unreachable()
        time.sleep(AWAY_S)
        _empty(taker)
        began = time.perf_counter()
        link.heal()
        _across(sender, taker, frame)
        return time.perf_counter() - began


def _across(sender: socket.socket, taker: socket.socket, frame: bytes) -> None:
    """Publish until something arrives."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        sender.sendall(frame)
        if select.select([taker], [], [], PROBE_S)[0]:
            taker.recv(65536)
            return
    raise RuntimeError(f"nothing came across within {PATIENCE_S:.0f} s")


def _empty(taker: socket.socket) -> None:
    while select.select([taker], [], [], 0)[0]:
        if not taker.recv(65536):
            raise RuntimeError("the subscriber was disconnected")


if __name__ == "__main__":
    sys.exit(main())
