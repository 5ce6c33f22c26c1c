"""Decoding against the golden packets: what is accepted, what is refused, what is cut short."""

import contextlib
from typing import Any

import pytest

from vpnrouter.errors import ProtocolError
from vpnrouter.limits import MQTT_PACKET_BYTES
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.properties import RULES
from vpnrouter.wire.mqtt.reason import TYPE_NAMES


def test_accepted_frame_decodes_to_its_packet(accepted: Any) -> None:
    """Every golden packet decodes to exactly the fields written beside it."""
    packet = decode(accepted.frame, 0, len(accepted.frame), accepted.level)
    assert packet == accepted.packet
    assert type(packet) is type(accepted.packet)


def test_refused_frame_names_reason_and_clause(refused: Any) -> None:
    """Every golden breach is refused with its reason code; its clause begins the message."""
    with pytest.raises(ProtocolError) as caught:
        decode(refused.frame, 0, len(refused.frame), refused.level)
    assert caught.value.reason_code == refused.reason
    assert str(caught.value).startswith(refused.clause + ":")


def test_frame_decodes_where_it_stands(accepted: Any) -> None:
    """A frame decodes alike in the middle of other bytes."""
    surrounded = b"\xff\x30" + accepted.frame + b"\x00\xff"
    assert decode(surrounded, 2, len(accepted.frame), accepted.level) == accepted.packet


def test_truncated_frame_is_incomplete_or_refused(golden: Any) -> None:
    """The beginning of a golden packet is "more needed" to framing, ProtocolError to decode."""
    frame = golden.frame
    for size in range(len(frame)):
        beginning = frame[:size]
        if not golden.name.startswith("remaining-length"):
            assert frame_at(beginning, 0, size, MQTT_PACKET_BYTES) == 0
        with pytest.raises(ProtocolError):
            decode(beginning, 0, size, golden.level)


def test_shortened_body_is_refused_or_another_packet(golden: Any) -> None:
    """With the length field lowered to fit, a cut body is refused or read, never anything else."""
    frame = golden.frame
    if len(frame) < 3 or frame[1] > 0x7F:
        return
    for size in range(len(frame) - 2):
        shortened = bytes((frame[0], size)) + frame[2 : 2 + size]
        with contextlib.suppress(ProtocolError):
            packet = decode(shortened, 0, len(shortened), golden.level)
            assert packet.packet_type == frame[0] >> 4


def test_frame_longer_than_its_length_field_is_refused(accepted: Any) -> None:
    """Bytes behind the end that the length field gives are no part of the packet."""
    with pytest.raises(ProtocolError, match=r"^MQTT 2\.1\.4:"):
        decode(accepted.frame + b"\x00", 0, len(accepted.frame) + 1, accepted.level)


def test_frame_beyond_its_buffer_is_refused() -> None:
    """A length that reaches beyond the buffer is refused, not read."""
    with pytest.raises(ProtocolError, match=r"^MQTT 2\.1\.1:"):
        decode(b"\xc0\x00", 0, 3, 4)


def test_golden_data_covers_every_packet_at_both_levels(all_accepted: Any) -> None:
    """Each packet type occurs at each level that has it."""
    seen = {(case.packet.packet_type, case.level) for case in all_accepted}
    wanted = {(kind, level) for kind in range(1, len(TYPE_NAMES)) for level in (4, 5)}
    assert seen == (wanted - {(15, 4)}) | {(1, 3)}


def test_golden_data_covers_every_property_in_every_packet(all_accepted: Any) -> None:
    """Each property of the table occurs in each packet that may carry it."""
    seen = set()
    for case in all_accepted:
        packet = case.packet
        if hasattr(packet, "properties"):
            seen |= {(name, packet.packet_type) for name in packet.properties.present()}
        will = getattr(packet, "will", None)
        if will is not None:
            seen |= {(name, 0) for name in will.properties.present()}
    wanted = {
        (rule.name, kind)
        for rule in RULES
        for kind in range(len(TYPE_NAMES))
        if (rule.packets >> kind) & 1
    }
    assert wanted - seen == set()
