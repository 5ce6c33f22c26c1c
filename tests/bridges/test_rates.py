import random

import pytest

from vpnrouter import limits
from vpnrouter.bridges.status import LEAST_GAP_NS, BridgeRates, Rate, RateMeter

SECOND = 1_000_000_000


def test_before_the_second_sample() -> None:
    """Nothing can be said of one sample, so all rates are 0."""
    meter = RateMeter()
    assert meter.rates() == ()
    assert meter.bridge_rates() == BridgeRates()
    meter.sample(5 * SECOND, 1_000, 7)
    assert meter.rates() == (Rate(0, 0), Rate(0, 0))


def test_current_and_average() -> None:
    """The current rate is of the last interval, the average of all there is, each count by itself."""
    meter = RateMeter()
    for second, counts in enumerate([(0, 0), (10, 1), (40, 2)]):
        meter.sample(second * SECOND, *counts)
    assert meter.rates() == (Rate(30, 20), Rate(1, 1))


def test_four_counts_of_a_bridge() -> None:
    """Received and sent messages and bytes come back by name."""
    meter = RateMeter()
    meter.sample(0, 0, 0, 0, 0)
    meter.sample(2 * SECOND, 2, 20, 4, 40)
    rates = meter.bridge_rates()
    assert (rates.rx_msg.current, rates.rx_byte.current) == (1, 10)
    assert (rates.tx_msg.average, rates.tx_byte.average) == (2, 20)


def test_the_average_is_of_the_last_minute() -> None:
    """What happened more than a minute ago is not in it."""
    meter = RateMeter()
    meter.sample(0, 0)
    meter.sample(SECOND, 1_000_000)
    for second in range(2, 61):
        meter.sample(second * SECOND, 1_000_000 + 60 * second)
    assert meter.rates() == (Rate(60, 16_727),), "the leap is a minute old, and still in it"
    meter.sample(61 * SECOND, 1_000_000 + 60 * 61)
    meter.sample(62 * SECOND, 1_000_000 + 60 * 62)
    assert meter.rates() == (Rate(60, 60),)


def test_fast_samples_do_not_shorten_the_average() -> None:
    """Sampled ten times as fast, the average still covers a minute."""
    meter = RateMeter()
    meter.sample(0, 0)
    for tenth in range(1, 590):
        meter.sample(tenth * SECOND // 10, 60_000)
    (rate,) = meter.rates()
    assert rate.current == 0
    assert 1_000 <= rate.average <= 1_050


def test_a_count_that_fell_starts_anew() -> None:
    """Counts that begin again give no negative rate."""
    meter = RateMeter()
    meter.sample(0, 100)
    meter.sample(SECOND, 200)
    meter.sample(2 * SECOND, 5)
    assert meter.rates() == (Rate(0, 0),)
    meter.sample(3 * SECOND, 8)
    assert meter.rates() == (Rate(3, 3),)


@pytest.mark.parametrize("gap_ns", [1, SECOND // 100, LEAST_GAP_NS, SECOND, 7 * SECOND])
def test_memory_is_bounded_and_reaches_back(gap_ns: int) -> None:
    """However fast samples come, few are kept, and a steady growth keeps its average."""
    meter = RateMeter()
    now_ns = 0
    for _ in range(10 * limits.RATE_SAMPLES):
        meter.sample(now_ns, now_ns * 1_000 // SECOND)
        now_ns += gap_ns
        assert len(meter._samples) <= limits.RATE_SAMPLES
    if now_ns > 2 * LEAST_GAP_NS:
        (rate,) = meter.rates()
        assert rate.average == rate.current == 1_000
    held_ns = meter._samples[-1][0] - meter._samples[0][0]
    assert held_ns <= 60 * SECOND + gap_ns


def test_jitter_of_the_sampling_is_no_jitter_of_the_rate() -> None:
    """The rate is of the time that passed, not of the seconds that should have."""
    drawn = random.Random(7)
    meter = RateMeter()
    now_ns = 0
    for _ in range(50):
        meter.sample(now_ns, now_ns // 1_000_000)
        now_ns += SECOND + drawn.randrange(SECOND)
    (rate,) = meter.rates()
    assert rate == Rate(1_000, 1_000)
