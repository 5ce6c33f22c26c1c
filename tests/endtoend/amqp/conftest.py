"""AMQP clients of other makers, as `.ci/peers` installs them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PEERS = HERE.parents[2] / ".peers"
PATIENCE_S = 120

Run = Callable[..., list[str]]


class Peers:
    """Runs peers against a router on `port`; each call is a process of its own.

    `url` is another address of it, for those that take one, `environment` what they are told besides.
    """

    def __init__(self, port: int, url: str = "") -> None:
        self.port = port
        self.url = url or f"amqp://127.0.0.1:{port}"
        self.environment: dict[str, str] = {}

    def command(self, name: str) -> list[str]:
        """How to call a peer; without it the test skips."""
        url = self.url
        found = {
            "jms": ["java", "-cp", f"{PEERS}/jms:{PEERS}/jms/lib/*", "JmsPeer", url],
            "scenarios": ["java", "-cp", f"{PEERS}/scenarios:{PEERS}/jms/lib/*", "Scenarios", url],
            "artemis": ["java", "-cp", f"{PEERS}/artemis:{PEERS}/artemis/lib/*", "ArtemisPeer"],
            "proton": [f"{PEERS}/proton/bin/python", f"{HERE}/peers/proton_peer.py", url],
            "rhea": ["node", f"{HERE}/peers/rhea_peer.js", "127.0.0.1", str(self.port)],
            "go": [f"{PEERS}/go/goamqp", url],
        }
        there = {
            "jms": PEERS / "jms" / "JmsPeer.class",
            "scenarios": PEERS / "scenarios" / "Scenarios.class",
            "artemis": PEERS / "artemis" / "ArtemisPeer.class",
            "proton": PEERS / "proton" / "done",
            "rhea": PEERS / "rhea" / "node_modules" / "rhea",
            "go": PEERS / "go" / "goamqp",
        }
        if not there[name].exists():
            pytest.skip(f"{there[name]} is missing: run .ci/peers")
        return found[name]

    def run(self, command: Sequence[str]) -> list[str]:
        """Run a peer to its end, which has to be a good one; the lines that it printed."""
        done = self.ended(command)
        assert done.returncode == 0, (command, done.stdout, done.stderr[-3_000:])
        return done.stdout.splitlines()

    def ended(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a peer to its end."""
        env = {
            **os.environ,
            "RHEA": str(PEERS / "rhea" / "node_modules" / "rhea"),
            **self.environment,
        }
        return subprocess.run(
            [*command], capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=env
        )

    def send(self, name: str, address: str, body: str, kind: str = "text") -> None:
        """Send one message."""
        words = [kind, body] if name == "jms" else [body]
        self.run([*self.command(name), "send", address, *words])

    def receive(self, name: str, address: str, count: int) -> list[str]:
        """Receive messages and accept them; `KIND:BODY` of each."""
        return self.run([*self.command(name), "receive", address, str(count)])


@pytest.fixture(scope="session")
def peers() -> type[Peers]:
    """Runs peers."""
    return Peers
