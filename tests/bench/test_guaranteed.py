import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from bench.guaranteed_amqp import AmqpIn, AmqpOut, content, method, short
from bench.guaranteed_body import BODY_BYTES, FILLER, QUEUE, TOPIC, faults, keys
from bench.guaranteed_flow import Flow
from bench.guaranteed_jetstream import JetStreamIn, JetStreamOut
from bench.guaranteed_mqtt import MqttIn, MqttOut, consumer, producer
from bench.guaranteed_stores import NAMES, SYNCED, by_name
from bench.guaranteed_trials import TRIALS
from bench.ours import ready_addresses, ready_line
from bench.processes import running
from vpnrouter.limits import MQTT_PACKET_BYTES
from vpnrouter.wire.mqtt import Publish, frame_at
from vpnrouter.wire.mqtt.decode import decode


def messages(data: bytes) -> list[Publish]:
    """What the project's own codec reads."""
    found: list[Publish] = []
    place = 0
    while size := frame_at(data, place, len(data), MQTT_PACKET_BYTES):
        packet = decode(data, place, size, 4)
        assert isinstance(packet, Publish)
        found.append(packet)
        place += size
    assert place == len(data)
    return found


def test_what_was_consumed_once_and_in_order_has_no_fault() -> None:
    """Two publishers, two consumers: each consumer sees rising numbers of each publisher."""
    first = np.concatenate([keys(0, 0, 2), keys(1, 0, 1)])
    second = np.concatenate([keys(1, 1, 1), keys(0, 2, 1)])
    assert faults({0: 3, 1: 2}, [first, second]) == []


def test_loss_repetition_strangers_and_disorder_are_told_apart() -> None:
    """Each of the four is a fault of its own."""
    assert faults({0: 3}, [keys(0, 0, 2)]) == ["1 acknowledged messages never consumed"]
    assert faults({0: 1}, [keys(0, 0, 1), keys(0, 0, 1)]) == ["1 messages consumed more than once"]
    assert faults({0: 1}, [keys(0, 0, 2)]) == ["1 messages consumed that nobody sent"]
    assert faults({0: 2}, [keys(0, 0, 2)[::-1]]) == ["1 messages consumed out of order"]
    assert faults({0: 1}, []) == ["1 acknowledged messages never consumed"]


@pytest.mark.parametrize("qos", [1, 2])
def test_a_burst_is_valid_mqtt(qos: int) -> None:
    """Identifiers go on from 65,535 with 1, keys tell publisher and number, payloads have 256 bytes."""
    out = MqttOut(3, qos)
    found = messages(out.frames(65533, 4))
    assert [message.packet_id for message in found] == [65534, 65535, 1, 2]
    assert {message.qos for message in found} == {qos}
    assert {message.topic for message in found} == {TOPIC.encode()}
    assert [int.from_bytes(message.payload[:8], "big") for message in found] == list(
        keys(3, 65533, 4)
    )
    assert {len(message.payload) for message in found} == {BODY_BYTES}


def test_acknowledgements_count_wherever_the_stream_is_cut() -> None:
    """Three PUBACKs, one byte at a time."""
    out = MqttOut(0, 1)
    out.frames(0, 3)
    data = b"\x40\x02\x00\x01\x40\x02\x00\x02\x40\x02\x00\x03"
    assert sum(out.confirmed(data[at : at + 1])[0] for at in range(len(data))) == 3


@pytest.mark.parametrize("data", [b"\x40\x02\x00\x02", b"\x30\x02\x00\x01", b"\x50\x02\x00\x01"])
def test_what_acknowledges_nothing_is_refused(data: bytes) -> None:
    """Another order, another packet, a PUBREC at QoS 1."""
    out = MqttOut(0, 1)
    out.frames(0, 2)
    with pytest.raises(ValueError, match="acknowledge"):
        out.confirmed(data)


def test_at_qos_2_only_the_last_step_acknowledges() -> None:
    """PUBREC is answered with PUBREL, PUBCOMP counts; both may come mixed."""
    out = MqttOut(0, 2)
    out.frames(0, 2)
    assert out.confirmed(b"\x50\x02\x00\x01") == (0, b"\x62\x02\x00\x01")
    assert out.confirmed(b"\x70\x02\x00\x01\x50\x02\x00\x02") == (1, b"\x62\x02\x00\x02")
    assert out.confirmed(b"\x70\x02\x00\x02") == (1, b"")


@pytest.mark.parametrize("cut", [1, 100, 278, 400])
def test_an_mqtt_consumer_reads_what_a_publisher_sent(cut: int) -> None:
    """Keys and PUBACKs are the same wherever the stream is cut; marked repetitions are counted."""
    data = bytearray(MqttOut(2, 1).frames(10, 2))
    data[0] |= 0x08
    reader = MqttIn()
    first, some = reader.deliveries(bytes(data[:cut]))
    second, more = reader.deliveries(bytes(data[cut:]))
    assert [*first, *second] == list(keys(2, 10, 2))
    assert some + more == b"\x40\x02\x00\x0b\x40\x02\x00\x0c"
    assert reader.doubtful == 1


def test_another_payload_or_packet_is_no_delivery() -> None:
    """One changed byte of the compared message shows."""
    data = bytearray(MqttOut(0, 1).frames(0, 1))
    data[-1] ^= 1
    with pytest.raises(ValueError, match="payload"):
        MqttIn().deliveries(bytes(data))
    data[0] = 0xD0
    with pytest.raises(ValueError, match="no delivery"):
        MqttIn().deliveries(bytes(data))


def confirm(tag: int, multiple: int, number: int = 80) -> bytes:
    """basic.ack, or basic.nack with number 120."""
    return method(1, (60, number), struct.pack(">QB", tag, multiple))


def test_confirms_count_once_in_any_order() -> None:
    """Alone, for all up to a tag, and both about the same messages."""
    out = AmqpOut(0)
    out.frames(0, 6)
    assert out.confirmed(confirm(3, 0))[0] == 1
    assert out.confirmed(confirm(2, 1) + confirm(2, 0))[0] == 2
    whole = confirm(5, 1)
    assert out.confirmed(whole[:9])[0] == 0
    assert out.confirmed(whole[9:])[0] == 2
    assert out.confirmed(confirm(6, 0))[0] == 1


def test_a_refused_message_is_no_confirm() -> None:
    """basic.nack has the same length and another number."""
    out = AmqpOut(0)
    out.frames(0, 1)
    with pytest.raises(ValueError, match="no confirm"):
        out.confirmed(confirm(1, 0, 120))


def test_an_amqp_consumer_acknowledges_all_it_has_got() -> None:
    """One cumulative acknowledgement for two messages, cut in the middle of the third."""
    frames = []
    for tag in (1, 2, 3):
        words = short("c") + struct.pack(">QB", tag, 0) + short("") + short(QUEUE)
        body = content().replace(bytes(8) + FILLER, struct.pack(">Q", tag + 6) + FILLER)
        frames.append(method(1, (60, 60), words) + body)
    data = b"".join(frames)
    got, answer = AmqpIn().deliveries(data[:-20])
    assert list(got) == [7, 8]
    assert answer == confirm(2, 1)


def test_a_stream_acknowledges_in_json() -> None:
    """Whole acknowledgements count, pings are answered, errors are not acknowledgements."""
    out = JetStreamOut(0)
    data = b'MSG _INBOX.bench.0 0 26\r\n{"stream":"BENCH","seq":1}\r\n'
    assert out.confirmed(data + b"PING\r\n" + data[:30]) == (1, b"PONG\r\n")
    assert out.confirmed(data[30:]) == (1, b"")
    with pytest.raises(ValueError, match="no acknowledgement"):
        out.confirmed(b'MSG _INBOX.bench.0 0 9\r\n{"error":{}}\r\n')


@pytest.mark.parametrize(("cumulative", "acks"), [(True, 1), (False, 2)])
def test_a_jetstream_client_acknowledges_by_reply_subjects(cumulative: bool, acks: int) -> None:
    """Head lines of any length; the last reply stands for all where this is allowed."""
    body = bytes(7) + b"\x05" + FILLER
    data = b"".join(
        b"MSG spool.bench 1 $JS.ACK.%d 256\r\n%s\r\n" % (number, body) for number in (9, 10)
    )
    reader = JetStreamIn(cumulative=cumulative)
    got, answer = reader.deliveries(data + b"PING\r\nMSG spool")
    assert list(got) == [5, 5]
    assert answer.count(b"PUB $JS.ACK.") == acks
    assert answer.startswith(b"PONG\r\n")
    assert answer.endswith(b"PUB $JS.ACK.10 0\r\n\r\n")


def test_a_flow_loads_exactly_what_it_is_told_and_loses_nothing(tmp_path: Path) -> None:
    """Two publishers and two consumers with a broker that does no work: 3,217 messages, each once."""
    command = [sys.executable, "-m", "bench.guaranteed_acker"]
    log = tmp_path / "log"
    with running(command, core=None, log=log) as process:
        address = ready_addresses(ready_line(process, log))["mqtt"]
        consumers = [consumer(address, f"c{number}", "all") for number in range(2)]
        flow = Flow([producer(address, number, 100) for number in range(2)], consumers)
        try:
            flow.load(3217)
            assert flow.settle() == []
            assert flow.sent == flow.acked == flow.consumed == 3217
        finally:
            flow.close()


def test_trials_name_known_brokers() -> None:
    """`--only` can name each trial; ours takes part in all, and goals name who takes part."""
    names = [trial.name for trial in TRIALS]
    assert len(set(names)) == len(names)
    for trial in TRIALS:
        assert trial.stores[0] == "ours"
        assert set(trial.stores) <= set(NAMES)
        for goal in trial.figures.goals:
            assert goal.versus in {None, SYNCED, "disk"}


def test_every_broker_says_what_it_syncs_and_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker that is not there is left out with the name of its Debian package."""
    monkeypatch.setattr("shutil.which", lambda *_words, **_options: None)
    for name in NAMES:
        store = by_name(name)
        assert store.name == name
        assert store.syncs
        assert name == "ours" or "Debian package" in store.missing()
