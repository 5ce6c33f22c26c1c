"""AMQP clients of other makers, as `.ci/peers` installs them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

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


PROGRAMS: dict[str, tuple[str, list[str]]] = {
    "proton": ("proton/done", [f"{PEERS}/proton/bin/python", f"{HERE}/peers/interop.py"]),
    "wire": ("proton/done", [f"{PEERS}/proton/bin/python", f"{HERE}/peers/wire.py"]),
    "rhea": ("rhea/node_modules/rhea", ["node", f"{HERE}/peers/interop.js"]),
    "go": ("go/goamqp", [f"{PEERS}/go/goamqp", "interop"]),
    "jms": ("spring/done", ["java", "-cp", f"{PEERS}/spring:{PEERS}/spring/lib/*", "Interop"]),
    "jms-messages": (
        "spring/done",
        ["java", "-cp", f"{PEERS}/spring:{PEERS}/spring/lib/*", "Messages"],
    ),
}
"""What has to be there, and how the program of a client is called that exchanges the messages of a file."""


class Programs:
    """Runs programs that exchange the messages of a file."""

    def command(self, name: str) -> list[str]:
        """How to call one; without it the test skips."""
        needs, command = PROGRAMS[name]
        if not (PEERS / needs).exists():
            pytest.skip(f"{PEERS / needs} is missing: run .ci/peers")
        return command

    def called(self, name: str, *words: str, given: str = "") -> list[str]:
        """Run one to its end, which has to be a good one; the lines that it printed."""
        env = {**os.environ, "RHEA": str(PEERS / "rhea/node_modules/rhea")}
        done = subprocess.run(
            [*self.command(name), *words],
            input=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            env=env,
        )
        assert done.returncode == 0, (name, words[:3], done.stdout[-500:], done.stderr[-3_000:])
        # A text may hold what Python takes for the end of a line, too.
        return done.stdout.removesuffix("\n").split("\n") if done.stdout else []

    @staticmethod
    def told(lines: list[str]) -> dict[str, str]:
        """What lines say, by the names that they begin with."""
        return {line.partition("\t")[0]: line.partition("\t")[2] for line in lines}

    @classmethod
    def unfolded(cls, value: Any) -> Any:
        """A value of a file with its repeated pieces, as interop.yaml describes them."""
        if isinstance(value, list) and [type(one) for one in value] == [str, int]:
            return value[0] * value[1]
        if isinstance(value, list) and value[:1] == ["map"] and isinstance(value[1], dict):
            return [
                "map",
                [[["string", name], one] for name, one in cls.unfolded(value[1]).items()],
            ]
        if isinstance(value, list):
            return [one for given in value for one in cls._times(given)]
        if isinstance(value, dict) and value.keys() == {"numbered", "of"}:
            return {
                f"name-{number}": cls.unfolded(value["of"]) for number in range(value["numbered"])
            }
        if isinstance(value, dict):
            return {key: cls.unfolded(one) for key, one in value.items()}
        return value

    @classmethod
    def _times(cls, value: Any) -> list[Any]:
        if isinstance(value, dict) and value.keys() == {"times", "of"}:
            return [cls.unfolded(value["of"])] * value["times"]
        return [cls.unfolded(value)]


@pytest.fixture(scope="session")
def programs() -> Programs:
    """Runs programs that exchange the messages of a file."""
    return Programs()
