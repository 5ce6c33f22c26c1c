"""Messages of JMS, with all their kinds, values, headers and properties, between Qpid JMS and each client (jms.yaml).

A message has to be the same to its receiver whether it came over the router or was handed on byte for byte.
"""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
OTHERS = ["proton", "rhea", "go"]
PAIRS = [("jms", "jms"), *(("jms", name) for name in OTHERS), *((name, "jms") for name in OTHERS)]

CONFIG = """
listeners:
  - {protocol: amqp, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: http, bind: "127.0.0.1:0"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    queues:
      q: {}
"""

DATA: dict[str, Any] = yaml.safe_load((HERE / "jms.yaml").read_text(encoding="utf-8"))

KINDS = {"message": 0, "object": 1, "map": 2, "bytes": 3, "stream": 4, "text": 5}
"""What the annotation `x-opt-jms-msg-type` says of a kind."""

DESTINATIONS = {"queue": 0, "topic": 1, "temporary-queue": 2, "temporary-topic": 3}
"""What the annotation `x-opt-jms-reply-to` says of a destination."""

NUMBERS = {"byte": ">b", "short": ">h", "char": ">H", "int": ">i", "long": ">q"}


def cases(programs: Any) -> list[dict[str, Any]]:
    """All messages, with their names and an id: those of each kind and value, and those that have a name."""
    found: list[dict[str, Any]] = []
    for number, typed in enumerate(programs.unfolded(DATA["values"])):
        for kind in ("bytes", "map", "stream", "object"):
            name = f"{kind}-{typed[0]}-{number}"
            found.append({"name": name, "kind": kind, "values": [typed], "with": ["a"]})
        if typed[0] not in {"char", "binary"}:
            name = f"property-{typed[0]}-{number}"
            found.append({"name": name, "kind": "message", "properties": {"a": typed}})
    found += [{"name": name, **programs.unfolded(one)} for name, one in DATA["messages"].items()]
    return [{"id": ["string", f"ID:{one['name']}"], **one} for one in found]


def written(typed: list[Any]) -> bytes:
    """A value as a bytes message has it."""
    kind, value = typed
    if kind == "boolean":
        return bytes([value])
    if kind == "string":
        # Java's own form: of UTF-16, and of no byte zero.
        units = struct.unpack(f">{len(value.encode('utf-16-be')) // 2}H", value.encode("utf-16-be"))
        data = b"".join(
            chr(unit).encode("utf-8", "surrogatepass") if unit else b"\xc0\x80" for unit in units
        )
        return struct.pack(">H", len(data)) + data
    return struct.pack(NUMBERS[kind], int(value)) if kind in NUMBERS else bytes.fromhex(value)


def body(case: dict[str, Any], objects: dict[str, str]) -> dict[str, Any]:
    """The body of a message as AMQP has it, `objects` by the names of messages."""
    values = case.get("values", [])
    match case["kind"]:
        case "text":
            return {"body": ["null" if case["text"] is None else "string", case["text"]]}
        case "bytes":
            return {"data": b"".join(map(written, values)).hex()}
        case "map":
            return {
                "body": [
                    "map",
                    [[["string", k], v] for k, v in zip(case.get("with", []), values, strict=True)],
                ]
            }
        case "stream":
            return {"sequence": values}
        case "object":
            return {"data": objects[case["name"]]}
    return {"body": ["null", None]}


def as_amqp(case: dict[str, Any], objects: dict[str, str]) -> dict[str, Any]:
    """The message of a case for a client that knows AMQP alone."""
    properties = {"message_id": case["id"]}
    annotations = {"x-opt-jms-msg-type": ["byte", str(KINDS[case["kind"]])]}
    if "correlation" in case:
        properties["correlation_id"] = case["correlation"]
    if "reply_to" in case:
        kind, name = case["reply_to"]
        properties["reply_to"] = f"{kind.rpartition('-')[2]}://{name or 'somewhere'}"
        annotations["x-opt-jms-reply-to"] = ["byte", str(DESTINATIONS[kind])]
    if case["kind"] in {"bytes", "object"}:
        java = case["kind"] == "object"
        properties["content_type"] = (
            f"application/{'x-java-serialized-object' if java else 'octet-stream'}"
        )
    application = dict(case.get("properties", {}))
    if "JMSXGroupID" in application:
        properties["group_id"] = application.pop("JMSXGroupID")[1]
        properties["group_sequence"] = int(application.pop("JMSXGroupSeq")[1])
    header = {"durable": case.get("persistent", True), "priority": case.get("priority", 4)}
    if "ttl" in case:
        header["ttl"] = min(case["ttl"], (1 << 32) - 1)
        properties["creation_time"] = 1_000_000_000_000
        properties["absolute_expiry_time"] = 253_402_300_799_999
    return {
        "name": case["name"],
        "subject": case.get("type"),
        "header": header,
        "properties": properties,
        "application": application,
        "annotations": annotations,
        **body(case, objects),
    }


class Exchange:
    """Files of the messages, and what a receiver makes of those of a sender when they come by a way."""

    def __init__(self, programs: Any, folder: Path) -> None:
        self._programs = programs
        self._jms = folder / "jms.json"
        self._amqp = folder / "amqp.json"
        self._cases = cases(programs)
        self._jms.write_text(json.dumps(self._cases), encoding="utf-8")
        objects = programs.told(programs.called("jms-messages", "serialized", str(self._jms)))
        made = [as_amqp(case, objects) for case in self._cases]
        self._amqp.write_text(json.dumps(made), encoding="utf-8")

    def names(self, *clients: str) -> list[str]:
        """The messages that all these clients can make and read."""
        left_out = tuple(f"{kind}-" for client in clients for kind in DATA["cannot"][client])
        return [one["name"] for one in self._cases if not one["name"].startswith(left_out)]

    def came(self, port: int, sender: str, receiver: str, names: list[str]) -> dict[str, str]:
        """What the receiver tells of each message, with "TEMPORARY" for the name of a destination of now."""
        url = f"amqp://127.0.0.1:{port}"
        jms = ("q", str(self._jms), *names)
        temporary: list[str] = []
        if sender == "jms":
            lines = self._programs.called("jms-messages", "send", url, *jms)
            temporary = [line.partition("\t")[2] for line in lines]
        else:
            self._programs.called(sender, "send", url, "queue://q", str(self._amqp), *names)
        if receiver == "jms":
            lines = self._programs.called("jms-messages", "receive", url, *jms)
        else:
            lines = self._programs.called(
                receiver, "receive", url, "queue://q", str(len(names)), "0"
            )
        text = "\n".join(lines)
        for name in temporary:
            text = text.replace(name, "TEMPORARY")
        assert text.count("TEMPORARY") >= len(temporary)
        found = [line.partition("\t")[2] for line in text.split("\n")]
        return dict(zip(names, found, strict=True))


@pytest.fixture(scope="module")
def exchange(programs: Any, tmp_path_factory: pytest.TempPathFactory) -> Exchange:
    """Files of the messages."""
    return Exchange(programs, tmp_path_factory.mktemp("jms"))


@pytest.fixture
def wire(programs: Any) -> Iterator[int]:
    """The port at which messages are handed on byte for byte."""
    serving = subprocess.Popen(
        programs.command("wire"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with serving:
        assert serving.stdout is not None
        yield int(serving.stdout.readline())
        serving.terminate()


@pytest.mark.parametrize(("sender", "receiver"), PAIRS)
def test_messages_of_jms(
    start: Any, exchange: Exchange, wire: int, sender: str, receiver: str
) -> None:
    """Each comes over the router as it was sent, and in its order."""
    names = exchange.names(sender, receiver)
    expected = exchange.came(wire, sender, receiver, names)
    assert {name for name, text in expected.items() if text.startswith("cannot")} == set()
    found = exchange.came(start(CONFIG).port("amqp"), sender, receiver, names)
    wrong = {name: (text, expected[name]) for name, text in found.items() if text != expected[name]}
    assert not wrong, {name: [one[:600] for one in both] for name, both in [*wrong.items()][:5]}
