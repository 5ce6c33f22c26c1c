from hypothesis import given, settings
from hypothesis import strategies as st

from vpnrouter.bridges.counters import Counters
from vpnrouter.core.discard_reasons import LOOP_DETECTED, REASONS, TRANSMIT_CONGESTION


def test_messages_and_control_are_counted_apart() -> None:
    """Data and control add up to all frames and bytes, each way; logins are a part of control."""
    counters = Counters()
    assert counters.last_data_rx_ns == counters.last_data_tx_ns == -1
    counters.data_rx(10, 1_000, 5)
    counters.data_tx(3, 300, 7)
    counters.control_rx(40, login=True)
    counters.control_rx(10)
    counters.control_tx(20, login=True)
    assert (counters.rx_msg_count, counters.rx_byte_count) == (12, 1_050)
    assert (counters.tx_msg_count, counters.tx_byte_count) == (4, 320)
    assert (counters.login_rx_msg_count, counters.login_tx_msg_count) == (1, 1)
    assert (counters.last_data_rx_ns, counters.last_data_tx_ns) == (5, 7)


def test_discards_are_by_reason() -> None:
    """The total is the sum over the named reasons, and each direction has its own."""
    counters = Counters()
    counters.discard_rx(LOOP_DETECTED, 3)
    counters.discard_tx(TRANSMIT_CONGESTION)
    assert counters.discarded_rx.counts == {LOOP_DETECTED: 3}
    assert (counters.discarded_rx_msg_count, counters.discarded_tx_msg_count) == (3, 1)


@settings(max_examples=60, deadline=None)
@given(
    fates=st.lists(st.sampled_from(["delivered", "waiting", *REASONS]), max_size=60),
)
def test_the_balance_tells_a_message_that_went_missing(fates: list[str]) -> None:
    """Accounted for, the imbalance is 0 in both directions; one message more is exactly 1."""
    counters = Counters()
    for fate in fates:
        counters.data_rx(1, 10, 0)
        counters.offered_tx_msg_count += 1
        if fate == "delivered":
            counters.delivered_rx_msg_count += 1
            counters.data_tx(1, 10, 0)
        elif fate != "waiting":
            counters.discard_rx(fate)
            counters.discard_tx(fate)
    waiting = fates.count("waiting")
    assert counters.rx_imbalance(waiting) == counters.tx_imbalance(waiting) == 0
    counters.data_rx(1, 10, 0)
    counters.offered_tx_msg_count += 1
    assert counters.rx_imbalance(waiting) == counters.tx_imbalance(waiting) == 1


def test_sums() -> None:
    """Adding takes every count of both, and the later time of a last message."""
    one, other = Counters(), Counters()
    for counters, factor in ((one, 1), (other, 10)):
        counters.data_rx(factor, 2 * factor, 3 * factor)
        counters.data_tx(4 * factor, 5 * factor, 6 * factor)
        counters.control_rx(7 * factor, login=True)
        counters.control_tx(8 * factor, login=True)
        counters.discard_rx("msg-too-big", 9 * factor)
        counters.discard_tx("loop-detected", factor)
        counters.delivered_rx_msg_count += factor
        counters.offered_tx_msg_count += factor
    one.add(other)
    assert (one.data_rx_msg_count, one.data_rx_byte_count, one.last_data_rx_ns) == (11, 22, 30)
    assert (one.data_tx_msg_count, one.data_tx_byte_count, one.last_data_tx_ns) == (44, 55, 60)
    assert (one.control_rx_msg_count, one.control_rx_byte_count) == (2, 77)
    assert (one.control_tx_msg_count, one.control_tx_byte_count) == (2, 88)
    assert (one.login_rx_msg_count, one.login_tx_msg_count) == (2, 2)
    assert (one.discarded_rx_msg_count, one.discarded_tx_msg_count) == (99, 11)
    assert (one.delivered_rx_msg_count, one.offered_tx_msg_count) == (11, 11)
