"""What is recorded of messages."""

import itertools
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from vpnrouter import limits
from vpnrouter.trace import events
from vpnrouter.trace.events import EVENT_NAMES, MODE_NAMES
from vpnrouter.trace.recorder import RECORD_BYTES, ROUND_BYTES, Block, Context, Recorder
from vpnrouter.trace.sampler import NEVER, Sampler

Row = dict[str, Any]


WORD = st.integers(0, 2**64 - 1)


SIGNED = st.integers(-(2**63), 2**63 - 1)


TOPICS = [b"", b"a", b"a/b", "ü/☃".encode(), b"x" * 20, b"y" * 30, b"z" * 90]


def decode(block: Block) -> list[Row]:
    """The rows of a block, one by one, with the flush time of their round."""
    topics = sorted(block.topics, key=block.topics.__getitem__)
    assert sorted(block.topics.values()) == list(range(len(topics)))
    rows = []
    for number in range(block.count):
        ts, high, low, message_id, size, since, origin, context, topic = struct.unpack_from(
            "<qQQQqqqII", block.data, number * RECORD_BYTES
        )
        rows.append(
            {
                "context": block.contexts[context],
                "topic": topics[topic],
                "numbers": (ts, high, low, message_id, size, since, origin),
                "flush": None,
            }
        )
    end = 0
    assert len(block.rounds) % ROUND_BYTES == 0
    for at in range(0, len(block.rounds), ROUND_BYTES):
        first, after, flush = struct.unpack_from("<IIq", block.rounds, at)
        assert end <= first <= after <= block.count
        end = after
        for row in rows[first:after]:
            row["flush"] = flush
    return rows


class RecorderMachine(RuleBasedStateMachine):
    """A recorder beside lists of dicts that follow its documentation."""

    BLOCK_RECORDS = 5
    MAX_BLOCKS = 3
    TOPIC_BYTES = 60

    def __init__(self) -> None:
        super().__init__()
        self.recorder = Recorder(self.BLOCK_RECORDS, self.MAX_BLOCKS, self.TOPIC_BYTES)
        self.contexts = [Context(number, "vpn") for number in range(4)]
        self.current: list[Row] = []
        self.held: list[list[Row]] = []
        self.full: list[list[Row]] = []
        self.round: list[Row] | None = None
        self.recorded = 0
        self.dropped = 0

    def _close(self) -> None:
        if self.current:
            (self.full if self.round is None else self.held).append(self.current)
            self.current = []

    @rule(
        which=st.integers(0, 3),
        topic=st.sampled_from(TOPICS),
        numbers=st.tuples(SIGNED, WORD, WORD, WORD, SIGNED, SIGNED, SIGNED),
    )
    def record(self, which: int, topic: bytes, numbers: tuple[int, ...]) -> None:
        """An event is stored, or dropped when too many blocks wait."""
        ts, high, low, message_id, size, since, origin = numbers
        context = self.contexts[which]
        self.recorder.record(
            context,
            ts,
            topic,
            trace_high=high,
            trace_low=low,
            message_id=message_id,
            size=size,
            since_ingress_ns=since,
            origin_ts_ns=origin,
        )
        used = {row["topic"] for row in self.current}
        if used and topic not in used and sum(map(len, used)) + len(topic) > self.TOPIC_BYTES:
            self._close()
        if not self.current and len(self.full) + len(self.held) >= self.MAX_BLOCKS:
            self.dropped += 1
            return
        row = {"context": context, "topic": topic, "numbers": numbers, "flush": None}
        self.current.append(row)
        self.recorded += 1
        if self.round is not None:
            self.round.append(row)
        if len(self.current) == self.BLOCK_RECORDS:
            self._close()

    @rule()
    def begin_round(self) -> None:
        """A round begins; one that has not ended is given up, its rows stay without flush time."""
        self.recorder.begin_round()
        self.full += self.held
        self.held = []
        self.round = []

    @rule(flush=SIGNED)
    def end_round(self, flush: int) -> None:
        """The rows of the round get its flush time; without a round nothing happens."""
        self.recorder.end_round(flush)
        for row in self.round or []:
            row["flush"] = flush
        self.round = None
        self.full += self.held
        self.held = []

    @rule()
    def cut(self) -> None:
        """The current block ends, and a round that has not ended is given up."""
        self.recorder.cut()
        self.full += self.held
        self.held = []
        self.round = None
        self._close()

    @rule(most=st.integers(1, 3))
    def take(self, most: int) -> None:
        """The oldest blocks come out as they were put in."""
        taken = [decode(block) for block in self.recorder.take(most)]
        assert taken == self.full[:most]
        self.full = self.full[most:]

    @invariant()
    def counters_agree(self) -> None:
        """Recorded and dropped events are counted, and the bound holds."""
        assert self.recorder.recorded == self.recorded
        assert self.recorder.dropped == self.dropped
        assert len(self.recorder.full) == len(self.full) <= self.MAX_BLOCKS


TestRecorder = RecorderMachine.TestCase


def put(recorder: Recorder, context: Context, ts_ns: int = 1, topic: bytes = b"t") -> None:
    """Record one event."""
    recorder.record(
        context,
        ts_ns,
        topic,
        trace_high=1,
        trace_low=2,
        message_id=3,
        size=4,
        since_ingress_ns=5,
        origin_ts_ns=6,
    )


def test_nothing_is_allocated_before_the_first_event() -> None:
    """A recorder that records nothing hands over nothing, even when cut."""
    recorder = Recorder()
    recorder.begin_round()
    recorder.end_round(1)
    recorder.cut()
    assert recorder.take() == []
    assert (recorder.recorded, recorder.dropped) == (0, 0)


def test_a_context_registers_once_per_block() -> None:
    """One context used throughout stands once in each block's dictionary."""
    recorder = Recorder(4, 10)
    context = Context(events.INGRESS, "blue", client="c")
    for _ in range(10):
        put(recorder, context)
    recorder.cut()
    blocks = recorder.take()
    assert [block.count for block in blocks] == [4, 4, 2]
    assert [block.contexts for block in blocks] == [[context]] * 3
    assert [block.topics for block in blocks] == [{b"t": 0}] * 3


def test_a_context_may_serve_two_recorders_in_turn() -> None:
    """An index given by one recorder is never mistaken for one of another."""
    first, second = Recorder(4, 4), Recorder(4, 4)
    shared, other = Context(1, "shared"), Context(2, "other")
    put(second, other)
    for recorder in (first, second, first, second):
        put(recorder, shared)
    first.cut()
    second.cut()
    assert [row["context"].vpn for row in decode(first.take()[0])] == ["shared"] * 2
    assert [row["context"].vpn for row in decode(second.take()[0])] == ["other", *["shared"] * 2]


def test_a_round_over_several_blocks_marks_them_all() -> None:
    """Blocks filled within a round are handed over when it ends, with its flush time."""
    recorder = Recorder(2, 10)
    context = Context(events.DELIVER, "blue")
    put(recorder, context, 0)
    recorder.begin_round()
    for ts in range(1, 6):
        put(recorder, context, ts)
    assert recorder.take() == []
    recorder.end_round(77)
    put(recorder, context, 6)
    recorder.cut()
    rows = [row for block in recorder.take() for row in decode(block)]
    assert [row["numbers"][0] for row in rows] == list(range(7))
    assert [row["flush"] for row in rows] == [None, *[77] * 5, None]


def test_a_round_without_events_leaves_no_mark() -> None:
    """Empty rounds cost no memory, however many there are."""
    recorder = Recorder(4, 4)
    put(recorder, Context(0, "blue"))
    for flush in range(1000):
        recorder.begin_round()
        recorder.end_round(flush)
    recorder.cut()
    assert recorder.take()[0].rounds == b""


def test_a_cut_hands_over_what_an_unended_round_holds() -> None:
    """Rounds that recorded nothing need not be ended: a cut holds no block back."""
    recorder = Recorder(2, 10)
    recorder.begin_round()
    for ts in range(3):
        put(recorder, Context(events.DELIVER, "blue"), ts)
    recorder.cut()
    rows = [row for block in recorder.take() for row in decode(block)]
    assert [(row["numbers"][0], row["flush"]) for row in rows] == [(0, None), (1, None), (2, None)]


def test_dropping_ends_when_the_writer_takes_a_block() -> None:
    """Events beyond the bound are counted as dropped; after a take the next ones are stored."""
    recorder = Recorder(2, 2)
    context = Context(0, "blue")
    for ts in range(7):
        put(recorder, context, ts)
    assert (recorder.recorded, recorder.dropped) == (4, 3)
    assert [row["numbers"][0] for row in decode(recorder.take(1)[0])] == [0, 1]
    put(recorder, context, 7)
    recorder.cut()
    rows = [row for block in recorder.take() for row in decode(block)]
    assert [row["numbers"][0] for row in rows] == [2, 3, 7]


def test_a_number_out_of_range_records_no_event() -> None:
    """The event is refused, and those before and after it are stored as if it had not been."""
    recorder = Recorder(2, 4)
    put(recorder, Context(0, "blue"), 1)
    with pytest.raises(OverflowError):
        put(recorder, Context(1, "red"), 2**63, b"other")
    put(recorder, Context(2, "green"), 2)
    assert (recorder.recorded, recorder.dropped) == (2, 0)
    rows = decode(recorder.take()[0])
    assert [(row["context"].vpn, row["topic"]) for row in rows] == [("blue", b"t"), ("green", b"t")]


def test_default_bounds_hold() -> None:
    """One event more than the default bounds allow is dropped; blocks have the default size."""
    recorder = Recorder()
    context = Context(0, "blue")
    room = limits.TRACE_BLOCKS * limits.TRACE_BLOCK_RECORDS
    for _ in range(room):
        put(recorder, context)
    assert recorder.dropped == 0
    put(recorder, context)
    assert recorder.dropped == 1
    assert {block.count for block in recorder.take()} == {limits.TRACE_BLOCK_RECORDS}


def test_topics_of_a_block_are_bounded() -> None:
    """A topic that would pass the default bound of topic bytes begins the next block."""
    recorder = Recorder()
    context = Context(0, "blue")
    count = limits.TRACE_BLOCK_TOPIC_BYTES // 65_536
    for number in range(count + 1):
        put(recorder, context, number, b"%05d" % number + bytes(65_531))
    recorder.cut()
    assert [block.count for block in recorder.take()] == [count, 1]


@pytest.mark.parametrize("arguments", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1 << 32, 1, 1)])
def test_senseless_bounds_are_refused(arguments: tuple[int, int, int]) -> None:
    """Every bound is 1 or more, and a block's records can be counted by four bytes."""
    with pytest.raises(ValueError, match=r"recorder|too many"):
        Recorder(*arguments)


@given(st.lists(st.sampled_from(TOPICS), min_size=1, max_size=50))
def test_topics_come_back_in_order(topics: list[bytes]) -> None:
    """Whatever the bounds split, the topics of all blocks in turn are the topics recorded."""
    recorder = Recorder(7, 100, 64)
    for topic in topics:
        put(recorder, Context(0, "blue"), 1, topic)
    recorder.cut()
    rows = [row for block in recorder.take() for row in decode(block)]
    assert [row["topic"] for row in rows] == topics


def gaps(rate: float, seed: int, count: int) -> list[int]:
    """The first `count` gaps of a sampler."""
    sampler = Sampler(rate, seed)
    drawn = []
    for _ in range(count):
        drawn.append(sampler.left)
        sampler.next()
    return drawn


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.07, 0.3, 0.5, 0.6, 0.9, 0.999])
def test_the_mean_gap_is_the_inverse_of_the_rate(rate: float) -> None:
    """As many messages are sampled as the rate says, within four standard errors."""
    count = 40_000
    widest = 2 / rate - 1
    drawn = gaps(rate, 0xFEED_BEEF_1234, count)
    # A uniform gap of 1 … w has variance (w² - 1)/12; rounding w at random adds less than 1.
    error = ((widest**2 - 1) / 12 + 1) ** 0.5 / count**0.5
    assert sum(drawn) / count == pytest.approx(1 / rate, abs=4 * error)
    assert min(drawn) == 1
    assert max(drawn) <= -(-2 // rate) - 1 + 1


def test_gaps_are_uniform() -> None:
    """Each gap of 1 … 2/rate - 1 is as likely as the others (chi-square, 18 degrees of freedom)."""
    count = 38_000
    drawn = gaps(0.1, 7, count)
    counts = [drawn.count(gap) for gap in range(1, 20)]
    assert sum(counts) == count
    expected = count / 19
    # 42.3 is passed by chance once in a thousand seeds; the seed is fixed.
    assert sum((n - expected) ** 2 / expected for n in counts) < 42.3


def test_a_rate_of_one_samples_every_message() -> None:
    """With 1.0 each gap is 1."""
    assert gaps(1.0, 99, 1000) == [1] * 1000


def test_a_rate_of_zero_samples_none() -> None:
    """With 0.0 the next sampled message never comes, however often the gap is drawn again."""
    assert gaps(0.0, 99, 3) == [NEVER] * 3


def test_equal_seeds_sample_equally_and_others_differently() -> None:
    """The draws are the seed's alone, and neighbouring seeds share no beginning."""
    drawn = [gaps(0.01, seed, 8) for seed in (0, 1, 2, 1 << 33, 1 << 63)]
    assert drawn == [gaps(0.01, seed, 8) for seed in (0, 1, 2, 1 << 33, 1 << 63)]
    assert all(a != b for a, b in itertools.combinations(drawn, 2))


def test_the_smallest_rates_stay_within_machine_words() -> None:
    """A rate below one in 2**28 is taken as one in 2**28."""
    drawn = gaps(1e-300, 5, 2000)
    assert max(drawn) <= 1 << 29
    assert sum(drawn) / 2000 == pytest.approx(1 << 28, rel=0.06)


@pytest.mark.parametrize("rate", [-0.001, 1.001, float("nan")])
def test_a_rate_that_is_no_part_is_refused(rate: float) -> None:
    """Rates are between 0 and 1."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        Sampler(rate, 1)


SHARE = (1 << 32) - 1


def _step(state: int) -> int:
    """One step of the generator on its state, x in the high word, as Marsaglia writes it."""
    x, y = state >> 32, state & SHARE
    t = x ^ (x << 10 & SHARE)
    return y << 32 | (y ^ y >> 10 ^ t ^ t >> 13)


def _product(first: list[int], second: list[int]) -> list[int]:
    """Apply matrix `first` after `second`; columns of bits as integers."""
    product = []
    for column in second:
        image = 0
        for bit in range(64):
            if column >> bit & 1:
                image ^= first[bit]
        product.append(image)
    return product


def _power(exponent: int) -> list[int]:
    """The matrix of `exponent` steps."""
    power = [1 << bit for bit in range(64)]
    square = [_step(1 << bit) for bit in range(64)]
    while exponent:
        if exponent & 1:
            power = _product(square, power)
        square = _product(square, square)
        exponent >>= 1
    return power


def test_the_generator_has_the_full_period() -> None:
    """The step, a linear map, has order 2**64 - 1: no seed but 0 falls into a short cycle."""
    identity = [1 << bit for bit in range(64)]
    full = 2**64 - 1
    assert _power(full) == identity
    for prime in (3, 5, 17, 257, 641, 65_537, 6_700_417):
        assert _power(full // prime) != identity


def test_the_sampler_draws_from_that_generator() -> None:
    """With a gap of one of two (rate 2/3) the draws are the top bits of the generator's words."""
    seed = 0x0123_4567_89AB_CDEF
    state = (seed & SHARE) << 32 | seed >> 32
    for _ in range(16):
        state = _step(state)
    expected = []
    for _ in range(200):
        state = _step(state)
        expected.append(1 + (state & SHARE) * 2 // (SHARE + 1))
    assert gaps(2 / 3, seed, 200) == expected


MODES = ("DIRECT", "NON_PERSISTENT", "PERSISTENT")


def test_every_event_has_the_name_of_its_constant() -> None:
    """EVENT_NAMES holds each event's constant in lower case, at the place of its number."""
    others = {*MODES, "FIRST_WITHOUT_MESSAGE", "UNKNOWN"}
    numbers = {
        name: value
        for name, value in vars(events).items()
        if name.isupper() and isinstance(value, int) and name not in others
    }
    assert [name.lower() for name in sorted(numbers, key=numbers.__getitem__)] == EVENT_NAMES
    assert sorted(numbers.values()) == list(range(len(EVENT_NAMES)))


def test_every_mode_has_the_name_of_its_constant() -> None:
    """MODE_NAMES holds each mode's constant in lower case, at the place of its number."""
    assert [getattr(events, name) for name in MODES] == [0, 1, 2]
    assert [name.lower() for name in MODES] == MODE_NAMES


def test_events_without_message_come_last() -> None:
    """From FIRST_WITHOUT_MESSAGE on stand exactly the link and subscription events."""
    without = EVENT_NAMES[events.FIRST_WITHOUT_MESSAGE :]
    assert without == ["link_up", "link_down", "subscribe", "unsubscribe", "link_rejected"]
