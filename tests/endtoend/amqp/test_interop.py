"""Clients of other makers exchange all types, headers, properties and sizes over the router (interop.yaml)."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
PEERS = HERE.parents[2] / ".peers"
PATIENCE_S = 120
NAMES = ["proton", "rhea", "go", "jms"]
PAIRS = list(itertools.product(NAMES, NAMES))

CONFIG = """
listeners:
  - {protocol: amqp, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: http, bind: "127.0.0.1:0"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    max_msg_size: 30000000
    queues:
      q: {max_msg_size: 30000000}
"""

COMMANDS: dict[str, tuple[str, list[str]]] = {
    "proton": ("proton/done", [f"{PEERS}/proton/bin/python", f"{HERE}/peers/interop.py"]),
    "rhea": ("rhea/node_modules/rhea", ["node", f"{HERE}/peers/interop.js"]),
    "go": ("go/goamqp", [f"{PEERS}/go/goamqp", "interop"]),
    "jms": ("spring/done", ["java", "-cp", f"{PEERS}/spring:{PEERS}/spring/lib/*", "Interop"]),
}
"""What has to be there, and how the program of a client is called."""


def called(name: str, *words: str, given: str = "") -> list[str]:
    """Run the program of a client to its end, which has to be a good one; the lines that it printed."""
    needs, command = COMMANDS[name]
    if not (PEERS / needs).exists():
        pytest.skip(f"{PEERS / needs} is missing: run .ci/peers")
    env = {**os.environ, "RHEA": str(PEERS / "rhea/node_modules/rhea")}
    done = subprocess.run(
        [*command, *words],
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env=env,
    )
    assert done.returncode == 0, (name, words[:3], done.stdout[-500:], done.stderr[-3_000:])
    return done.stdout.splitlines()


def told(lines: list[str]) -> dict[str, str]:
    """What lines say, by the names that they begin with."""
    return {line.partition("\t")[0]: line.partition("\t")[2] for line in lines}


def unfolded(value: Any) -> Any:
    """A value of interop.yaml with its repeated pieces."""
    if isinstance(value, list) and [type(one) for one in value] == [str, int]:
        return value[0] * value[1]
    if isinstance(value, list):
        return [unfolded(one) for one in value]
    if isinstance(value, dict):
        return {key: unfolded(one) for key, one in value.items()}
    return value


DATA: dict[str, Any] = yaml.safe_load((HERE / "interop.yaml").read_text(encoding="utf-8"))


def cases() -> list[dict[str, Any]]:
    """All messages, with their names: a type and a number, or a name of its own."""
    found = [
        {"name": f"{typed[0]}-{number}", "body": unfolded(typed)}
        for number, typed in enumerate(DATA["values"])
    ]
    return found + [{"name": name, **unfolded(one)} for name, one in DATA["messages"].items()]


class Measure:
    """What clients make of each other's messages without a router, as far as they can."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "cases.json"
        self.file.write_text(json.dumps(cases()), encoding="utf-8")
        self._encoded: dict[str, dict[str, str]] = {}
        self._read: dict[tuple[str, str], dict[str, str]] = {}

    def encoded(self, sender: str) -> dict[str, str]:
        """The messages of a sender in its own encoding, by their names."""
        if sender not in self._encoded:
            self._encoded[sender] = told(called(sender, "encode", str(self.file)))
        return self._encoded[sender]

    def read(self, sender: str, receiver: str) -> dict[str, str]:
        """What a receiver makes of the messages of a sender."""
        pair = (sender, receiver)
        if pair not in self._read:
            made = self.encoded(sender).items()
            lines = [f"{name}\t{data}\n" for name, data in made if not data.startswith("cannot")]
            self._read[pair] = told(called(receiver, "decode", given="".join(lines)))
        return self._read[pair]


@pytest.fixture(scope="module")
def measure(tmp_path_factory: pytest.TempPathFactory) -> Measure:
    """The measure of all tests."""
    return Measure(tmp_path_factory.mktemp("interop"))


def kinds(found: dict[str, str]) -> set[str]:
    """Kinds of the messages that a client cannot do: a type, or the name of a message."""
    names = [name for name, text in found.items() if text.startswith("cannot")]
    return {name if name in DATA["messages"] else name.rpartition("-")[0] for name in names}


def bodies(told_of: dict[str, str]) -> dict[str, str]:
    """What is told of bodies, which come last."""
    return {name: text.rpartition("\t")[2] for name, text in told_of.items()}


@pytest.mark.parametrize("name", NAMES)
def test_what_clients_cannot_do(measure: Measure, name: str) -> None:
    """The data has a reason for all that a client can neither make nor read, and for nothing else."""
    assert kinds(measure.encoded(name)) == {*DATA["cannot_make"][name]}
    unread: set[str] = set()
    for sender in NAMES:
        unread |= kinds(measure.read(sender, name))
    assert unread == {*DATA["cannot_read"][name]}


@pytest.mark.parametrize(("sender", "receiver"), PAIRS)
def test_messages(start: Any, measure: Measure, sender: str, receiver: str) -> None:
    """Each message comes as the receiver reads the sender's own encoding, and none is missing."""
    expected = {
        name: text
        for name, text in measure.read(sender, receiver).items()
        if not text.startswith("cannot")
    }
    router = start(CONFIG)
    url = f"amqp://127.0.0.1:{router.port('amqp')}"
    called(sender, "send", url, "queue://q", str(measure.file), *expected)
    router.holds("blue", "q", len(expected))
    found = told(called(receiver, "receive", url, "queue://q", str(len(expected))))
    assert found.keys() == expected.keys()
    if sender == "jms":
        # The rest of a message of JMS is JMS's own.
        found, expected = bodies(found), bodies(expected)
    wrong = {name: (text, expected[name]) for name, text in found.items() if text != expected[name]}
    assert not wrong, {name: [one[:300] for one in both] for name, both in [*wrong.items()][:5]}
    router.holds("blue", "q", 0)


SIZES = [(1 << 20, 512), (10 << 20, 65_536), (25 << 20, 1 << 20)]
"""Bytes of a body, and how many a frame may have that the receiver takes."""

SMALLEST = {"rhea": 4_096}
"""Frames below which a client fails: the window of rhea is 2,048 frames, and a longer message never ends."""


@pytest.mark.parametrize(("sender", "receiver"), PAIRS)
def test_large_bodies(start: Any, sender: str, receiver: str) -> None:
    """1, 10 and 25 MiB, the first in small frames."""
    router = start(CONFIG)
    url = f"amqp://127.0.0.1:{router.port('amqp')}"
    for size, frame in SIZES:
        body = (bytes(range(251)) * (size // 251 + 1))[:size]
        called(sender, "large", url, "queue://q", "send", str(size))
        (line,) = called(
            receiver,
            "large",
            url,
            "queue://q",
            "receive",
            str(max(frame, SMALLEST.get(receiver, 0))),
        )
        assert line == f"{size} {hashlib.sha256(body).hexdigest()}"
