"""Makes and counts many PUBLISH frames at once, for load generators.

Receivers under load see long runs of frames that agree in type and length. `PublishCounter` checks such a run column by
column (every stride-th byte) instead of frame by frame: where the first byte and the length field repeat at every
stride, each repeat is the start of a frame of that same size, by induction from the first.
"""

from typing import Final, final

from vpnrouter.limits import MQTT_PACKET_BYTES
from vpnrouter.wire.mqtt.encode import publish_prefix
from vpnrouter.wire.mqtt.fields import frame_at, read_varint

STAMP_BYTES: Final = 16
"""Bytes of each payload that are kept when stamps are asked for."""

_FIRST_WINDOW: Final = 8
"""Frames compared at once when a run begins; four times as many after each window that holds."""


def burst(topic: bytes, payloads: list[bytes], level: int) -> bytes:
    """One QoS 0 PUBLISH for each payload, in order, without properties. `level` is 4 or 5."""
    parts: list[bytes] = []
    prefix = b""
    size = -1
    for payload in payloads:
        if len(payload) != size:
            size = len(payload)
            prefix = publish_prefix(topic, size, level)
        parts.append(prefix)
        parts.append(payload)
    return b"".join(parts)


@final
class PublishCounter:
    """Counts PUBLISH frames of QoS 0 and 1 in what a subscriber receives, whatever way it is cut.

    `total` counts them since the start, `others` the packets of any other kind (QoS 2 among them).
    `last_payload` is the payload of the last one counted. With `stamps`, `stamp_list` collects the
    first 16 bytes of each payload (fewer when it is shorter) until the caller clears it. `level`, 4
    or 5, says whether properties stand before the payload. Topics are not looked at.
    """

    __slots__ = (
        "_held",
        "_need",
        "_parts",
        "last_payload",
        "level",
        "max_packet",
        "others",
        "stamp_list",
        "stamps",
        "total",
    )

    def __init__(
        self, level: int = 4, stamps: bool = False, max_packet: int = MQTT_PACKET_BYTES
    ) -> None:
        self.level = level
        self.stamps = stamps
        self.max_packet = max_packet
        self.total = 0
        self.others = 0
        self.last_payload = b""
        self.stamp_list: list[bytes] = []
        self._parts: list[bytes] = []
        self._held = 0
        self._need = 0

    def feed(self, data: bytes) -> int:
        """Take received bytes; the number of QoS 0 and 1 PUBLISH frames they complete.

        Raises ProtocolError as `frame_at` does; the counter is of no use after that.
        """
        if self._held:
            # A large frame comes in many pieces: joining them at each would be quadratic.
            self._parts.append(data)
            self._held += len(data)
            if self._held < self._need:
                return 0
            data = b"".join(self._parts)
            self._parts = []
            self._held = 0
        return self._scan(data)

    def _scan(self, data: bytes) -> int:
        end = len(data)
        pos = 0
        counted = 0
        last = -1
        while True:
            size = frame_at(data, pos, end, self.max_packet)
            if size == 0:
                break
            first = data[pos]
            if first >> 4 != 3 or first & 0x04:
                self.others += 1
                pos += size
                continue
            run = 1
            following = pos + size
            if (
                following + size <= end
                and data[following] == first
                and data[following + 1] == data[pos + 1]
            ):
                run = _run_length(data, pos, size, end)
            if self.stamps:
                self._stamp(data, pos, size, run)
            counted += run
            last = pos + (run - 1) * size
            pos += run * size
        if last >= 0:
            start, stop = self._payload(data, last)
            self.last_payload = data[start:stop]
            self.total += counted
        if pos < end:
            self._hold(data, pos, end)
        return counted

    def _hold(self, data: bytes, pos: int, end: int) -> None:
        self._parts = [data[pos:end] if pos else data]
        self._held = end - pos
        self._need = self._held + 1
        if self._held >= 5:
            length, start = read_varint(data, pos + 1, end)
            self._need = start - pos + length

    def _payload(self, data: bytes, pos: int) -> tuple[int, int]:
        """Where the payload of the whole PUBLISH frame at `pos` begins and ends."""
        end = len(data)
        length, at = read_varint(data, pos + 1, end)
        stop = at + length
        if length < 2:
            return stop, stop
        at += 2 + ((data[at] << 8) | data[at + 1])
        if data[pos] & 0x02:
            at += 2
        if self.level == 5 and at < stop:
            properties, at = read_varint(data, at, stop)
            at += properties
        return min(at, stop), stop

    def _stamp(self, data: bytes, pos: int, size: int, run: int) -> None:
        stamp_list = self.stamp_list
        for _ in range(run):
            start, stop = self._payload(data, pos)
            stamp_list.append(data[start : min(stop, start + STAMP_BYTES)])
            pos += size


def _run_length(data: bytes, pos: int, size: int, end: int) -> int:
    """How many whole frames of this size, first byte and length field stand in a row from `pos`."""
    fit = (end - pos) // size
    columns = 2
    while data[pos + columns - 1] & 0x80:
        columns += 1
    run = 1
    window = _FIRST_WINDOW
    while run < fit:
        count = min(window, fit - run)
        start = pos + run * size
        stop = start + count * size
        agreed = count
        for column in range(columns):
            seen = data[start + column : stop : size]
            agreed = min(agreed, count - len(seen.lstrip(data[pos + column : pos + column + 1])))
        run += agreed
        if agreed < count:
            break
        window *= 4
    return run
