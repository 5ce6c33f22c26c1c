"""Sends the messages of a file, or tells of those that it receives, with Apache Qpid Proton.

encode CASES: each message that it can make, as NAME, a tab, its bytes in hexadecimal digits. decode: the same lines on
standard input, each told of. send URL ADDRESS CASES NAME…: sends these. receive URL ADDRESS COUNT FRAME: tells of
messages, which come in frames of at most FRAME bytes, or with 0 of as many as the client likes.
large URL ADDRESS send SIZE, large URL ADDRESS receive FRAME: a body of so many bytes, in frames of at most FRAME bytes.
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import proton
from proton import UNDESCRIBED, Array, Data, Described, Message
from proton.utils import BlockingConnection

SIMPLE: dict[str, Any] = {
    "null": lambda _: None,
    "boolean": bool,
    "ubyte": lambda text: proton.ubyte(int(text)),
    "ushort": lambda text: proton.ushort(int(text)),
    "uint": lambda text: proton.uint(int(text)),
    "ulong": lambda text: proton.ulong(int(text)),
    "byte": lambda text: proton.byte(int(text)),
    "short": lambda text: proton.short(int(text)),
    "int": lambda text: proton.int32(int(text)),
    "long": int,
    "float": lambda text: proton.float32(struct.unpack(">f", bytes.fromhex(text))[0]),
    "double": lambda text: struct.unpack(">d", bytes.fromhex(text))[0],
    "decimal32": lambda text: proton.decimal32(int(text, 16)),
    "decimal64": lambda text: proton.decimal64(int(text, 16)),
    "decimal128": lambda text: proton.decimal128(bytes.fromhex(text)),
    "char": lambda text: proton.char(chr(int(text))),
    "timestamp": lambda text: proton.timestamp(int(text)),
    "uuid": uuid.UUID,
    "binary": bytes.fromhex,
    "string": str,
    "symbol": proton.symbol,
}


def made(typed: list[Any]) -> Any:
    """The value of a type."""
    kind, value = typed
    if kind == "list":
        return [made(one) for one in value]
    if kind == "map":
        return {made(key): made(one) for key, one in value}
    if kind == "array":
        code = getattr(Data, value[0].upper().replace("BOOLEAN", "BOOL"))
        return Array(UNDESCRIBED, code, *[SIMPLE[value[0]](one) for one in value[1]])
    if kind == "described":
        return Described(made(value[0]), made(value[1]))
    return SIMPLE[kind](value)


def said_of(name: str, value: Any) -> Any:
    """The value of a property."""
    if isinstance(value, list):
        return made(value)
    if name == "user_id":
        return bytes.fromhex(value)
    return value / 1000 if name.endswith("_time") else value


def message(case: dict[str, Any]) -> Message:
    """The message of a case; its subject is the name of it."""
    said = Message(subject=case.get("subject", case["name"]))
    if "data" in case:
        said.inferred = True
        said.body = bytes.fromhex(case["data"])
    elif "sequence" in case:
        said.inferred = True
        said.body = [made(one) for one in case["sequence"]]
    elif "parts" in case:
        raise ValueError("a message of Proton has one section of data")
    else:
        said.body = made(case["body"])
    header = case.get("header", {})
    said.durable = header.get("durable", False)
    said.priority = header.get("priority", 4)
    said.ttl = header.get("ttl", 0) / 1000
    names = {"to": "address", "message_id": "id", "absolute_expiry_time": "expiry_time"}
    for name, value in case.get("properties", {}).items():
        setattr(said, names.get(name, name), said_of(name, value))
    said.properties = {name: made(one) for name, one in case.get("application", {}).items()}
    notes = case.get("annotations", {}).items()
    said.annotations = {proton.symbol(name): made(one) for name, one in notes}
    return said


def shown(value: Any) -> str:
    """A value with its type."""
    kind = type(value).__name__
    if isinstance(value, dict):
        return f"{kind} " + ", ".join(sorted(f"{shown(k)}: {shown(v)}" for k, v in value.items()))
    if isinstance(value, Array):
        return f"array of {value.type}: " + ", ".join(map(shown, value.elements))
    if isinstance(value, Described):
        return f"described {shown(value.descriptor)}: {shown(value.value)}"
    if isinstance(value, (list, tuple)):
        return f"{kind}[" + ", ".join(map(shown, value)) + "]"
    if isinstance(value, float):
        return f"{kind} {struct.pack('>d', value).hex()}"
    if isinstance(value, memoryview):
        return f"{kind} {bytes(value).hex()}"
    return f"{kind} {value!r}"


def times(said: Message) -> list[Any]:
    """When it was made and when it ends; of one that was made just now how long it lives."""
    made_at, ends = said.creation_time, said.expiry_time
    if abs(made_at - time.time()) > 86_400:
        return [made_at, ends]
    return ["now", ends and round(1_000 * (ends - made_at))]


def told(said: Message) -> str:
    """All of a message."""
    words = [said.subject, said.durable, said.priority, said.ttl > 0, said.inferred]
    fields = [
        said.id,
        said.user_id,
        said.address,
        said.reply_to,
        said.correlation_id,
        said.content_type,
        said.content_encoding,
        *times(said),
        said.group_id,
        said.group_sequence,
        said.reply_to_group_id,
        said.properties,
        said.annotations,
        said.body,
    ]
    return "\t".join([str(word) for word in words] + [shown(one) for one in fields])


def attempts(lines: Iterable[tuple[str, Any]], what: Any) -> None:
    """Print what each line gives, or that there is none."""
    for name, given in lines:
        try:
            print(f"{name}\t{what(given)}")
        except Exception as problem:  # noqa: BLE001 - whatever it is that the client cannot do
            print(f"{name}\tcannot\t{type(problem).__name__}: {problem}".replace("\n", " "))


def large(url: str, address: str, action: str, number: int) -> None:
    """Send or receive one large message."""
    if action == "send":
        connection = BlockingConnection(url, 60)
        body = (bytes(range(251)) * (number // 251 + 1))[:number]
        said = Message(body=body, inferred=True, durable=True)
        connection.create_sender(address).send(said)
    else:
        connection = BlockingConnection(url, 60, max_frame_size=number)
        receiver = connection.create_receiver(address, credit=1)
        # The body is a view of what the message holds.
        said = receiver.receive(timeout=60)
        body = bytes(said.body)
        receiver.accept()
        print(len(body), hashlib.sha256(body).hexdigest())
    connection.close()


def main() -> None:
    """Do what the arguments say."""
    action = sys.argv[1]
    if action == "large":
        large(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    elif action == "encode":
        cases = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
        attempts([(one["name"], one) for one in cases], lambda one: message(one).encode().hex())
    elif action == "decode":

        def read(digits: str) -> str:
            said = Message()
            said.decode(bytes.fromhex(digits))
            return told(said)

        attempts([line.split() for line in sys.stdin], read)
    elif action == "send":
        cases = json.loads(Path(sys.argv[4]).read_text(encoding="utf-8"))
        connection = BlockingConnection(sys.argv[2], 30)
        sender = connection.create_sender(sys.argv[3])
        for one in cases:
            if one["name"] in sys.argv[5:]:
                sender.send(message(one))
        connection.close()
    else:
        connection = BlockingConnection(sys.argv[2], 30, max_frame_size=int(sys.argv[5]) or None)
        receiver = connection.create_receiver(sys.argv[3], credit=100)
        for _ in range(int(sys.argv[4])):
            said = receiver.receive(timeout=30)
            receiver.accept()
            print(f"{said.subject}\t{told(said)}")
        connection.close()


main()
