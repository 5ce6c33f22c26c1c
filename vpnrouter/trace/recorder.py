"""Trace events as fixed-size binary records in blocks.

What repeats (who, where, why: a `Context`; the topic) is stored once per block and referred to by
index, so that an event costs eight stores of eight bytes. The router's thread records; another
thread takes full blocks and turns them into columns (`vpnrouter.trace.parquet`). The only thing
both threads touch is the list `full`, appended to by one, popped from its front by the other.

Every bound is kept by dropping events, counted in `dropped`: tracing never delays a message.

Columns that are not stored one to one:

* `count`: a row without a trace (both halves of the trace id 0) that concerns a message has in the
  place of the message id how many messages it stands for, 1 or more. Column `count` has that number then,
  and `message_id` is null. On every other row `count` is null and stands for one message.
* `topic_syntax`, `partition`, `parent_span_id`: fields of the `Context`; null where they are "", -1, "".
"""

from __future__ import annotations

from itertools import count
from struct import Struct
from typing import Final, final

from librt.strings import BytesWriter, write_i64_le
from mypy_extensions import i64

from vpnrouter import limits

RECORD_BYTES: Final = 64
"""Size of one record: ts_ns, trace id (high and low half), message id, size, time since ingress,
time of origin (eight bytes each), context and topic index (four bytes each), little-endian."""

ROUND_BYTES: Final = 16
"""Size of one round mark: first record, record after the last (four bytes each), flush time."""

_SMALL: Final = (1 << 62) - 1
"""Below it a number is its own 64 bits, and stays unboxed in a compiled build."""

_pack_round: Final = Struct("<IIq").pack
# A serial names one block of any recorder of the process, so that a context's index of an earlier
# block, or of another recorder, is never taken for an index of this one.
_serials: Final = count(1)


def _checked(number: int) -> i64:
    """Return a number with a sign, as 64 bits."""
    if -_SMALL < number < _SMALL:
        return number
    if number >= 1 << 63 or number < -(1 << 63):
        raise OverflowError(f"{number} has more than 64 bits")
    return number


def _bits(number: int) -> i64:
    """Return a number of 64 bits without sign as the signed one of the same bits."""
    if number < _SMALL:
        if number < 0:
            raise OverflowError(f"{number} is below 0")
        return number
    if number >= 1 << 64:
        raise OverflowError(f"{number} has more than 64 bits")
    return number if number < 1 << 63 else number - (1 << 64)


@final
class Context:
    """What is the same for every event of one kind at one place.

    Made once per publisher, subscriber or bridge and kind of event, then reused. The fields are not
    to be changed once an event was recorded with them: another thread reads them later. An
    empty string stands for "does not apply".

    Args:
        event: number of the event (`vpnrouter.trace.events`).
        vpn: message VPN where it happened.
        mode: number of the delivery mode; not looked at when the event concerns no message.
        client: client id of the publisher or subscriber.
        endpoint: queue or topic endpoint.
        bridge: bridge the message came or goes over.
        peer_router: router at the other end of that bridge.
        peer_vpn: message VPN at the other end of that bridge.
        hops: bridges crossed so far.
        path: VPNs visited so far, "router/vpn>router/vpn", this one not included.
        reason: why, for discards, rejects, demotions and closed links.
        origin_router: router where the message first entered.
        origin_vpn: message VPN where it first entered.
        topic_syntax: dialect of a subscription's filter, "mqtt" or "smf".
        partition: partition of a partitioned queue, 0 or more; -1 for none.
        parent_span_id: of an ingress whose message came with a `traceparent` (W3C Trace Context,
            3.2.2.4) that was taken over: the sender's span, 16 lower-case hexadecimal digits.
    """

    __slots__ = (
        "_index",
        "_serial",
        "bridge",
        "client",
        "endpoint",
        "event",
        "hops",
        "mode",
        "origin_router",
        "origin_vpn",
        "parent_span_id",
        "partition",
        "path",
        "peer_router",
        "peer_vpn",
        "reason",
        "topic_syntax",
        "vpn",
    )

    def __init__(
        self,
        event: int,
        vpn: str,
        mode: int = 0,
        client: str = "",
        endpoint: str = "",
        bridge: str = "",
        peer_router: str = "",
        peer_vpn: str = "",
        hops: int = 0,
        path: str = "",
        reason: str = "",
        origin_router: str = "",
        origin_vpn: str = "",
        topic_syntax: str = "",
        partition: int = -1,
        parent_span_id: str = "",
    ) -> None:
        self.event = event
        self.vpn = vpn
        self.mode = mode
        self.client = client
        self.endpoint = endpoint
        self.bridge = bridge
        self.peer_router = peer_router
        self.peer_vpn = peer_vpn
        self.hops = hops
        self.path = path
        self.reason = reason
        self.origin_router = origin_router
        self.origin_vpn = origin_vpn
        self.topic_syntax = topic_syntax
        self.partition = partition
        self.parent_span_id = parent_span_id
        self._serial = 0
        self._index = 0


@final
class Block:
    """A run of records with the dictionaries they refer to; complete and unchanging once taken.

    `data` holds `count` records of `RECORD_BYTES`, `rounds` marks of `ROUND_BYTES`; `topics` gives
    each topic's index, in order of insertion.
    """

    __slots__ = ("contexts", "count", "data", "rounds", "topics")

    def __init__(self) -> None:
        self.data = b""
        self.count = 0
        self.contexts: list[Context] = []
        self.topics: dict[bytes, int] = {}
        self.rounds = bytearray()


@final
class Recorder:
    """Takes events in the router's thread and hands blocks of them to the writer's.

    `full` and `take()` belong to the writer's thread (and only one), everything else to the
    router's. Memory is allocated when the first event comes: a router that traces nothing holds
    nothing.

    Args:
        block_records: records in one block, 64 bytes each.
        max_blocks: blocks that may wait, the one being filled included; beyond, events are dropped.
        topic_bytes: bytes of distinct topics in one block; beyond, the next block is begun early.

    Raises:
        ValueError: an argument is below 1, or four bytes cannot count a block's records.
    """

    __slots__ = (
        "_at",
        "_block",
        "_end",
        "_held",
        "_in_round",
        "_mark",
        "_out",
        "_round_from",
        "_serial",
        "_topic_bytes",
        "_topics",
        "block_records",
        "dropped",
        "full",
        "max_blocks",
        "recorded",
        "topic_bytes",
    )

    def __init__(
        self,
        block_records: int = limits.TRACE_BLOCK_RECORDS,
        max_blocks: int = limits.TRACE_BLOCKS,
        topic_bytes: int = limits.TRACE_BLOCK_TOPIC_BYTES,
    ) -> None:
        if block_records < 1 or max_blocks < 1 or topic_bytes < 1:
            raise ValueError("a trace recorder needs at least one record, one block and one byte")
        if block_records >= 1 << 32:
            raise ValueError(f"{block_records} records are too many for one trace block")
        self.block_records = block_records
        self.max_blocks = max_blocks
        self.topic_bytes = topic_bytes
        self.recorded = 0
        self.dropped = 0
        self.full: list[Block] = []
        # Blocks filled within a round that has not ended: their times of flush are not known yet.
        self._held: list[Block] = []
        self._in_round = False
        self._mark = 0
        self._round_from = 0
        self._block = Block()
        self._out = BytesWriter()
        self._topics = self._block.topics
        self._topic_bytes = 0
        self._serial = next(_serials)
        self._at = 0
        self._end = 0

    def record(
        self,
        ctx: Context,
        ts_ns: int,
        topic: bytes,
        trace_high: int,
        trace_low: int,
        message_id: int,
        size: int,
        since_ingress_ns: int,
        origin_ts_ns: int,
    ) -> None:
        """Record one event, or drop it when the writer is `max_blocks` behind.

        Args:
            ctx: who, where and why.
            ts_ns: wall clock, nanoseconds since 1970. Of a send (deliver, bridge_send) within a
                round it is when the message was routed: the end of the round moves it on.
            topic: the topic's UTF-8 bytes, or the filter's for subscriptions; empty for none.
            trace_high: high half of the trace id, 0 … 2**64-1; both halves 0 for none.
            trace_low: low half of the trace id.
            message_id: 1 … 2**64-1, or 0 for none. Without a trace id: how many messages the event
                stands for.
            size: payload bytes, or negative for none.
            since_ingress_ns: nanoseconds from the message's entry into this router to `ts_ns`, or
                negative when not known.
            origin_ts_ns: wall clock at the message's first ingress anywhere, or 0 or less for none.

        Raises:
            OverflowError: a number is outside its range. Nothing is recorded then.
        """
        # All conversions first: a number that does not fit leaves nothing half written.
        ts = _checked(ts_ns)
        high = _bits(trace_high)
        low = _bits(trace_low)
        message = _bits(message_id)
        payload = _checked(size)
        since = _checked(since_ingress_ns)
        origin = _checked(origin_ts_ns)
        if self._at == self._end and not self._open():
            self.dropped += 1
            return
        known = self._topics.get(topic)
        if known is None:
            if not self._add_topic(topic):
                self.dropped += 1
                return
            known = len(self._topics) - 1
        if ctx._serial != self._serial:  # noqa: SLF001 - a context's place in the block is ours
            ctx._serial = self._serial  # noqa: SLF001
            ctx._index = len(self._block.contexts)  # noqa: SLF001
            self._block.contexts.append(ctx)
        out = self._out
        write_i64_le(out, ts)
        write_i64_le(out, high)
        write_i64_le(out, low)
        write_i64_le(out, message)
        write_i64_le(out, payload)
        write_i64_le(out, since)
        write_i64_le(out, origin)
        where: i64 = ctx._index  # noqa: SLF001
        what: i64 = known
        write_i64_le(out, what << 32 | where)
        self._at += RECORD_BYTES
        self.recorded += 1
        if self._at == self._end:
            self._close()

    def begin_round(self) -> None:
        """Record the begin of a round of the event loop; an unfinished one is dropped."""
        if self._held:
            self._release()
        self._mark = self.recorded
        self._round_from = self._at
        self._in_round = True

    def end_round(self, flush_ns: int) -> None:
        """Record when the system was given what was sent in this round.

        A round in which nothing was recorded need not be ended.

        Args:
            flush_ns: wall clock, nanoseconds since 1970. `ts_ns` and `since_ingress_ns` of the
                round's sends move on to it when the block is written.
        """
        if not self._in_round:
            return
        self._in_round = False
        if self._mark != self.recorded:
            first = self._round_from // RECORD_BYTES
            for block in self._held:
                block.rounds += _pack_round(first, block.count, flush_ns)
                first = 0
            if self._at != self._end:
                self._block.rounds += _pack_round(first, self._at // RECORD_BYTES, flush_ns)
        if self._held:
            self._release()

    def cut(self) -> None:
        """End the current block although it is not full; nothing happens when it is empty.

        Called in the router's thread between rounds, at flush intervals and when it stops. A round
        that has not ended is given up: nothing is held back that might never be handed over.
        """
        self._in_round = False
        if self._held:
            self._release()
        if self._at > 0:
            self._close()

    def take(self, most: int = 1 << 30) -> list[Block]:
        """Remove and return the oldest `most` full blocks, for the writer's thread."""
        # Two steps, each of them whole under the interpreter lock: what the router's thread
        # appends between them stays for the next call.
        blocks = self.full[:most]
        del self.full[: len(blocks)]
        return blocks

    def _open(self) -> bool:
        """Begin a block. Return False when `max_blocks` are waiting."""
        if len(self.full) + len(self._held) >= self.max_blocks:
            return False
        block = Block()
        self._block = block
        self._out = BytesWriter()
        self._topics = block.topics
        self._topic_bytes = 0
        self._serial = next(_serials)
        self._at = 0
        self._end = self.block_records * RECORD_BYTES
        return True

    def _close(self) -> None:
        """Hand over the current block."""
        self._block.count = self._at // RECORD_BYTES
        self._block.data = self._out.getvalue()
        self._out = BytesWriter()
        self._at = 0
        self._end = 0
        if self._in_round:
            self._held.append(self._block)
        else:
            self.full.append(self._block)
        # Nothing may reach the block handed over, nor keep its memory.
        self._block = Block()
        self._topics = self._block.topics

    def _release(self) -> None:
        """Hand over the blocks of a round."""
        self.full += self._held
        self._held = []

    def _add_topic(self, topic: bytes) -> bool:
        """Give `topic` the next index, in a new block if this one has its fill of topics."""
        if self._topic_bytes + len(topic) > self.topic_bytes and self._at > 0:
            self._close()
            if not self._open():
                return False
        self._topics[topic] = len(self._topics)
        self._topic_bytes += len(topic)
        return True
