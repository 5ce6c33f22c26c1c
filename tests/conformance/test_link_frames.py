"""Golden frames of the link protocol: codec and table of order against data."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import encode, frames, order
from vpnrouter.wire.link.decode import decode, link_frame_at

ROOT = Path(__file__).parents[2]
CASES: list[dict[str, Any]] = yaml.safe_load(
    (ROOT / "tests/conformance/data/link_frames.yaml").read_text(encoding="utf-8")
)
CLAUSES = re.findall(
    r"^\*\*(LINK-\d+)\*\*((?: `\[\w+\]`)*)",
    (ROOT / "docs/link-protocol.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
DOING = {
    ("acceptor", "handshake"): order.STRANGE,
    ("dialer", "handshake"): order.ASKING,
    ("acceptor", "up"): order.UP | order.SERVING,
    ("dialer", "up"): order.UP | order.ATTRACTING,
    ("both", "up"): order.UP | order.ATTRACTING | order.SERVING | order.PACKED,
    ("acceptor", "flowing"): order.UP | order.SERVING | order.FLOWING,
    ("dialer", "flowing"): order.UP | order.ATTRACTING | order.FLOWING,
    ("dialer", "reusable"): order.UP | order.ATTRACTING | order.REUSABLE,
    ("dialer", "proving"): order.ASKING | order.PROVING,
    ("acceptor", "challenging"): order.CHALLENGING,
    ("acceptor", "asking"): order.UP | order.SERVING | order.ASKING,
}
BYTES = ("topic", "payload", "properties")
SECRETS = ("nonce", "salt", "proof", "signature")
ENCODERS: dict[str, Any] = {
    "Hello": encode.hello,
    "Welcome": encode.welcome,
    "Challenge": encode.challenge,
    "Proof": encode.proof,
    "Refuse": encode.refuse,
    "Close": encode.close,
    "Heartbeat": encode.heartbeat,
    "Detach": encode.detach,
    "Subscribe": encode.subscribe,
    "Unsubscribe": encode.unsubscribe,
    "Subscribed": encode.subscribed,
    "Direct": encode.message,
    "Bind": encode.bind,
    "Bound": encode.bound,
    "Unbind": encode.unbind,
    "Unbound": encode.unbound,
    "Guaranteed": encode.guaranteed_message,
    "Ack": encode.ack,
    "Forget": encode.forget,
    "Reject": encode.reject,
    "Settled": encode.settled,
    "FlowStatus": encode.flow_status,
    "SnapshotEnd": encode.snapshot_end,
}


def raw(text: str) -> bytes:
    """The bytes that a case writes down."""
    out = b""
    for quoted, pair, times, hexes in re.findall(
        r"'([^']*)'|([0-9a-f]{2})\*(\d+)|([0-9a-f]+)", text
    ):
        if times:
            out += bytes.fromhex(pair) * int(times)
        else:
            out += bytes.fromhex(hexes) if hexes else quoted.encode("ascii")
    return out


def value(name: str, given: Any) -> Any:
    """The value of one field: bytes where the frame has bytes, long texts as written in hex."""
    if name == "topic":
        return given.encode()
    if name == "store_id" or name in SECRETS:
        return raw(given) if "*" in given else given.encode()
    if name in BYTES:
        return raw(given)
    if isinstance(given, str) and re.fullmatch(r"[0-9a-f]{2}\*\d+", given):
        return raw(given).decode()
    if name in {"ranges", "kept"}:
        return [tuple(pair) for pair in given]
    if name == "accepted":
        return {store.encode(): value("ranges", ranges) for store, ranges in given.items()}
    if name == "filters":
        return [
            (entry[0], value("", entry[1])) if isinstance(entry, list) else entry for entry in given
        ]
    return given


def built(kind: str, fields: dict[str, Any]) -> Any:
    """The frame object that a case describes."""
    values = {name: value(name, given) for name, given in fields.items()}
    if kind == "Guaranteed":
        values["message"] = built("Direct", values["message"])
    if kind == "Direct":
        values = {"properties": b"", "payload": b"", **values}
        if values.get("extension") is not None:
            values["extension"] = frames.Extension(
                **{
                    "path": [],
                    "hops": max(1, len(values["extension"].get("path", []))),
                    **values["extension"],
                }
            )
    return getattr(frames, kind)(**values)


def check(frame: Any, fields: dict[str, Any]) -> None:
    """The frame, or a part of it, says what `fields` name."""
    for name, given in fields.items():
        if isinstance(given, dict) and name in {"extension", "message"}:
            check(getattr(frame, name), given)
        else:
            assert getattr(frame, name) == value(name, given), name


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_golden(case: dict[str, Any]) -> None:
    """The bytes give exactly the frame, or the close code, that the case names."""
    data = raw(case["bytes"])
    limit = case.get("max_frame", limits.LINK_FRAME_BYTES)
    if case.get("incomplete"):
        assert link_frame_at(data, 0, len(data), limit) == 0
        return
    if case.get("at") == "framing":
        with pytest.raises(ProtocolError) as caught:
            link_frame_at(data, 0, len(data), limit)
        assert caught.value.reason_code == case["error"]
        return
    if case.get("at") == "order":
        code = None
        try:
            order.check_order(DOING[(case["role"], case["phase"])], data[0])
        except ProtocolError as error:
            code = error.reason_code
        assert code == case["error"]
        return
    length = link_frame_at(data, 0, len(data), limit)
    assert length == len(data)
    if "error" in case:
        with pytest.raises(ProtocolError, match=r"LINK-|length ends early") as caught:
            decode(data, 0, length)
        assert caught.value.reason_code == case["error"]
        return
    frame = decode(b"\xff" + data + b"\xff", 1, length)
    assert type(frame).__name__ == case["frame"]
    check(frame, case["fields"])
    if not case.get("one_way"):
        assert ENCODERS[case["frame"]](built(case["frame"], case["fields"])) == data
        assert ENCODERS[case["frame"]](frame) == data


def test_every_codec_clause_has_a_case() -> None:
    """Each clause marked for the codec or the order of frames is named by a case."""
    wanted = {name for name, marks in CLAUSES if "[codec]" in marks or "[order]" in marks}
    named = {clause for case in CASES for clause in case["clauses"]}
    assert wanted
    assert wanted - named == set()


def test_every_case_names_a_clause() -> None:
    """Each case names clauses that the document has."""
    known = {name for name, _ in CLAUSES}
    assert all(case["clauses"] for case in CASES)
    assert {clause for case in CASES for clause in case["clauses"]} - known == set()


def test_clauses_are_numbered_without_a_gap() -> None:
    """The clauses count up from LINK-1."""
    assert [name for name, _ in CLAUSES] == [f"LINK-{n}" for n in range(1, len(CLAUSES) + 1)]


def test_case_names_are_unique() -> None:
    """A failing case can be found by its name."""
    names = [case["name"] for case in CASES]
    assert len(set(names)) == len(names)
