"""Clients of other makers exchange all types, headers, properties and sizes over the router (interop.yaml)."""

from __future__ import annotations

import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
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

DATA: dict[str, Any] = yaml.safe_load((HERE / "interop.yaml").read_text(encoding="utf-8"))


def cases(programs: Any) -> list[dict[str, Any]]:
    """All messages, with their names: a type and a number, or a name of its own."""
    found = [
        {"name": f"{typed[0]}-{number}", "body": programs.unfolded(typed)}
        for number, typed in enumerate(DATA["values"])
    ]
    messages = DATA["messages"].items()
    return found + [{"name": name, **programs.unfolded(one)} for name, one in messages]


class Measure:
    """What clients make of each other's messages without a router, as far as they can."""

    def __init__(self, programs: Any, folder: Path) -> None:
        self.file = folder / "cases.json"
        self.file.write_text(json.dumps(cases(programs)), encoding="utf-8")
        self._programs = programs
        self._encoded: dict[str, dict[str, str]] = {}
        self._read: dict[tuple[str, str], dict[str, str]] = {}

    def encoded(self, sender: str) -> dict[str, str]:
        """The messages of a sender in its own encoding, by their names."""
        if sender not in self._encoded:
            self._encoded[sender] = self._called(sender, "encode", str(self.file))
        return self._encoded[sender]

    def read(self, sender: str, receiver: str) -> dict[str, str]:
        """What a receiver makes of the messages of a sender."""
        pair = (sender, receiver)
        if pair not in self._read:
            made = self.encoded(sender).items()
            lines = [f"{name}\t{data}\n" for name, data in made if not data.startswith("cannot")]
            self._read[pair] = self._called(receiver, "decode", given="".join(lines))
        return self._read[pair]

    def _called(self, name: str, *words: str, given: str = "") -> dict[str, str]:
        return self._programs.told(self._programs.called(name, *words, given=given))


@pytest.fixture(scope="module")
def measure(programs: Any, tmp_path_factory: pytest.TempPathFactory) -> Measure:
    """The measure of all tests."""
    return Measure(programs, tmp_path_factory.mktemp("interop"))


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


@pytest.mark.parametrize("frame", [0, 512])
@pytest.mark.parametrize(("sender", "receiver"), PAIRS)
def test_messages(
    start: Any, programs: Any, measure: Measure, sender: str, receiver: str, frame: int
) -> None:
    """Each message comes as the receiver reads the sender's own encoding, and none is missing.

    The receiver takes frames as large as it likes, or the smallest that AMQP allows.
    """
    expected = {
        name: text
        for name, text in measure.read(sender, receiver).items()
        if not text.startswith("cannot")
    }
    router = start(CONFIG)
    url = f"amqp://127.0.0.1:{router.port('amqp')}"
    programs.called(sender, "send", url, "queue://q", str(measure.file), *expected)
    router.holds("blue", "q", len(expected))
    words = ["queue://q", str(len(expected)), str(frame)]
    found = programs.told(programs.called(receiver, "receive", url, *words))
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
def test_large_bodies(start: Any, programs: Any, sender: str, receiver: str) -> None:
    """1, 10 and 25 MiB, the first in small frames."""
    router = start(CONFIG)
    url = f"amqp://127.0.0.1:{router.port('amqp')}"
    for size, frame in SIZES:
        body = (bytes(range(251)) * (size // 251 + 1))[:size]
        programs.called(sender, "large", url, "queue://q", "send", str(size))
        (line,) = programs.called(
            receiver,
            "large",
            url,
            "queue://q",
            "receive",
            str(max(frame, SMALLEST.get(receiver, 0))),
        )
        assert line == f"{size} {hashlib.sha256(body).hexdigest()}"
