"""A message's properties as one block: validated, split, put together again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt.properties import (
    Properties,
    decode_properties,
    encode_block,
)
from vpnrouter.wire.mqtt.publish_block import (
    message_block,
    payload_format_holds,
    publish_block_with,
    split_publish_properties,
)
from vpnrouter.wire.mqtt.reason import PUBLISH

EXPIRY = bytes.fromhex("020000003c")
ALIAS = bytes.fromhex("230007")
IDENTIFIER = bytes.fromhex("0b8001")
USER_B = bytes.fromhex("26000162000131")
USER_A = bytes.fromhex("26000161000132")
FORMAT = bytes.fromhex("0101")


def read_field(field: bytes) -> Properties:
    """The properties of a length-prefixed field, which must be legal in a PUBLISH."""
    props, end = decode_properties(field, 0, len(field), PUBLISH)
    assert end == len(field)
    return props


def test_empty_block() -> None:
    """No properties: an empty block, no alias, no expiry."""
    assert split_publish_properties(b"xx", 1, 1) == (b"", 0, -1)


def test_what_belongs_to_the_connection_is_taken_out() -> None:
    """Alias and identifiers go, wherever they stand; the rest keeps its bytes and order."""
    raw = IDENTIFIER + USER_B + ALIAS + EXPIRY + IDENTIFIER + USER_A + IDENTIFIER
    assert split_publish_properties(b"--" + raw + b"--", 2, 2 + len(raw)) == (
        USER_B + EXPIRY + USER_A,
        7,
        60,
    )


def test_block_of_nothing_but_connection_matters_is_empty() -> None:
    """An alias alone leaves no block."""
    assert split_publish_properties(ALIAS, 0, 3) == (b"", 7, -1)


def test_clients_may_not_send_subscription_identifiers() -> None:
    """MQTT-3.3.4-6, when the caller says that a client sent it."""
    with pytest.raises(ProtocolError, match=r"^MQTT-3\.3\.4-6:") as caught:
        split_publish_properties(IDENTIFIER, 0, 3, from_client=True)
    assert caught.value.reason_code == 0x82
    assert split_publish_properties(IDENTIFIER, 0, 3) == (b"", 0, -1)


PIECES = [
    EXPIRY,
    ALIAS,
    IDENTIFIER,
    USER_A,
    USER_B,
    FORMAT,
    bytes.fromhex("03000174"),
    bytes.fromhex("08000172"),
    bytes.fromhex("090002ff00"),
]


@given(st.binary(max_size=40) | st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join))
def test_split_judges_as_decoding_does(raw: bytes) -> None:
    """Any bytes are refused by both with one reason, or accepted by both with equal results."""
    field = bytes((len(raw),)) + raw
    try:
        props, _ = decode_properties(field, 0, len(field), PUBLISH)
    except ProtocolError as error:
        with pytest.raises(ProtocolError) as caught:
            split_publish_properties(raw, 0, len(raw))
        assert caught.value.reason_code == error.reason_code  # noqa: PT017
        return
    block, alias, expiry = split_publish_properties(raw, 0, len(raw))
    assert alias == (props.topic_alias or 0)
    assert expiry == (
        -1 if props.message_expiry_interval is None else props.message_expiry_interval
    )
    props.topic_alias = None
    props.subscription_identifiers = []
    assert read_field(publish_block_with(block)) == props


def test_untouched_block_gets_its_length_alone() -> None:
    """Without changes the block goes out as it came in."""
    assert publish_block_with(b"") == b"\x00"
    assert publish_block_with(USER_B + EXPIRY) == bytes((12,)) + USER_B + EXPIRY
    assert publish_block_with(USER_A * 20) == b"\x8c\x01" + USER_A * 20


def test_expiry_is_replaced_in_its_place() -> None:
    """MQTT-3.3.2-6: the received value less the time waited, everything else unaltered."""
    field = publish_block_with(USER_B + EXPIRY + USER_A, message_expiry_s=5)
    assert field == bytes((19,)) + USER_B + bytes.fromhex("0200000005") + USER_A


def test_expiry_is_found_behind_every_kind_of_property() -> None:
    """Strings, binary data, pairs and numbers before it are stepped over, whatever they hold."""
    before = encode_block(
        Properties(payload_format_indicator=1, content_type="\x02", correlation_data=b"\x02" * 9)
    )
    field = publish_block_with(before + USER_B + EXPIRY, message_expiry_s=0)
    assert field[1:] == before + USER_B + bytes.fromhex("0200000000")


def test_expiry_is_added_where_there_was_none() -> None:
    """A lifetime the router gives a message reaches the subscriber."""
    assert read_field(publish_block_with(USER_A, message_expiry_s=9)) == Properties(
        message_expiry_interval=9, user_properties=[("a", "2")]
    )


def test_alias_and_identifiers_are_added_behind() -> None:
    """What belongs to the new connection follows the message's own properties."""
    field = publish_block_with(USER_A, topic_alias=7, subscription_identifiers=[128, 1])
    assert field[1:] == USER_A + ALIAS + IDENTIFIER + b"\x0b\x01"


def test_will_properties_become_a_message_block() -> None:
    """The delay stays behind; what a PUBLISH carries goes along."""
    props = Properties(
        will_delay_interval=5,
        content_type="t",
        topic_alias=3,
        subscription_identifiers=[1],
        user_properties=[("a", "2")],
    )
    assert message_block(props) == bytes.fromhex("03000174") + USER_A
    assert message_block(Properties()) == b""


@pytest.mark.parametrize(
    ("block", "payload", "holds"),
    [
        (b"", b"\xff", True),
        (b"\x01\x00", b"\xff", True),
        (FORMAT, b"text", True),
        (FORMAT, "é✈".encode(), True),
        (FORMAT, b"\xff", False),
        (USER_A + FORMAT, b"\xed\xa0\x80", False),
    ],
)
def test_payload_format_is_judged_when_claimed(block: bytes, payload: bytes, holds: bool) -> None:
    """Only a payload said to be UTF-8 text is looked at."""
    assert payload_format_holds(block, payload) is holds
