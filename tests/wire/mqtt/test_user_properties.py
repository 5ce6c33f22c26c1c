"""A message's properties by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.errors import ProtocolError
from vpnrouter.wire.mqtt.properties import Properties, selector_properties
from vpnrouter.wire.mqtt.publish_block import message_block


def test_topic_alone() -> None:
    """A message without properties has its topic."""
    assert selector_properties("a/é".encode(), b"") == {"JMSDestination": "a/é"}


def test_headers_and_user_properties() -> None:
    """Content type, response topic and correlation data stand under their JMS names."""
    block = message_block(
        Properties(
            payload_format_indicator=1,
            message_expiry_interval=60,
            content_type="text/plain",
            response_topic="reply/here",
            correlation_data="né".encode(),
            user_properties=[("a", "1"), ("", "empty name")],
        )
    )
    assert selector_properties(b"t", block) == {
        "JMSDestination": "t",
        "JMSType": "text/plain",
        "JMSReplyTo": "reply/here",
        "JMSCorrelationID": "né",
        "a": "1",
        "": "empty name",
    }


def test_first_of_a_repeated_property_counts() -> None:
    """Later ones do not hide it."""
    block = message_block(Properties(user_properties=[("a", "1"), ("b", "2"), ("a", "3")]))
    assert selector_properties(b"t", block) == {"JMSDestination": "t", "a": "1", "b": "2"}


@pytest.mark.parametrize("before", [b"", bytes.fromhex("03000174")])
def test_user_property_is_no_header(before: bytes) -> None:
    """A publisher can not set a header by a user property of its name, wherever it stands."""
    user = message_block(
        Properties(
            user_properties=[
                (name, "forged")
                for name in ("JMSType", "JMSDestination", "JMSReplyTo", "JMSCorrelationID")
            ]
        )
    )
    headers = {"JMSDestination": "t"} | ({"JMSType": "t"} if before else {})
    assert selector_properties(b"t", before + user) == headers
    assert selector_properties(b"t", user + before) == headers


def test_correlation_data_that_is_no_text() -> None:
    """Bytes that are not UTF-8 are as if they were not there; what follows is still read."""
    block = message_block(Properties(correlation_data=b"\xff\x00", user_properties=[("a", "1")]))
    assert selector_properties(b"t", block) == {"JMSDestination": "t", "a": "1"}


@given(
    st.lists(
        st.tuples(
            st.text("ab", max_size=2),
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5),
        )
    )
)
def test_as_the_properties_object(pairs: list[tuple[str, str]]) -> None:
    """Any list of pairs comes back as the dictionary of it, read from its end."""
    found = selector_properties(b"t", message_block(Properties(user_properties=pairs)))
    assert found == {"JMSDestination": "t"} | dict(reversed(pairs))


@pytest.mark.parametrize("block", ["26000161", "2600016100", "0200", "ff", "11000000ff", "030001"])
def test_block_that_was_never_checked(block: str) -> None:
    """Cut short or with what no PUBLISH has, it is malformed and nothing worse."""
    with pytest.raises(ProtocolError) as caught:
        selector_properties(b"t", bytes.fromhex(block))
    assert caught.value.reason_code == 0x81
