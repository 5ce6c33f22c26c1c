"""Requests to HTTP servers as h11 reads them, and when they are tried again."""

from __future__ import annotations

import email.utils
from typing import Any
from urllib.parse import unquote, urlsplit

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.connectors.http.pace import (
    JITTER_PARTS,
    TROUBLED,
    Pace,
    date_s,
    draw_of,
    pause_ns,
    retry_after_ns,
)
from vpnrouter.connectors.http.requests import RequestWriter, identity_of, properties_of
from vpnrouter.connectors.http.templates import (
    as_topic,
    header_text,
    parse_header,
    parse_path,
)
from vpnrouter.connectors.settings import RequestSettings
from vpnrouter.core.message import Message
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.publish_block import message_block

ANY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
TOPICS = ANY.filter(lambda text: text != "").map(
    lambda text: text.replace("+", "-").replace("#", "-")
)


def read(data: bytes) -> tuple[Any, bytes]:
    """A request as h11 reads it, which must be one and no more: itself and its body."""
    server = h11.Connection(h11.SERVER)
    server.receive_data(data)
    request = server.next_event()
    body = b""
    while not isinstance(event := server.next_event(), h11.EndOfMessage):
        assert isinstance(event, h11.Data), event
        body += event.data
    assert server.trailing_data == (b"", False)
    return request, body


def written(request: RequestSettings, message: Message, message_id: int = 7) -> bytes:
    """The bytes of a request."""
    writer = RequestWriter(request, "h:1", "Bearer t", identity_of(b"\x01\x02", "blue", "c/l"))
    head = writer.head_for(message.topic)
    properties = properties_of(message.block)
    return writer.request(head, message, properties, message.topic, message_id) + message.payload


@given(
    topic=TOPICS,
    payload=st.binary(max_size=50),
    value=ANY,
    content_type=ANY,
    correlation=st.binary(max_size=20),
)
def test_nothing_gets_out_of_its_place(
    topic: str, payload: bytes, value: str, content_type: str, correlation: bytes
) -> None:
    """Whatever a message says, the request has the headers, the path and the body that it should have."""
    filter_ = parse_filter("#", MQTT)
    request = RequestSettings(
        parse_path("/b", filter_, "h/{1}?t={1}"),
        headers=[
            ("X-V", parse_header("v={property:p};")),
            ("X-C", parse_header("{correlation_data}")),
            ("X-T", parse_header("{topic}")),
        ],
    )
    block = message_block(
        Properties(
            content_type=content_type,
            correlation_data=correlation,
            user_properties=[("p", value), ("p", "second")],
        )
    )
    message = Message(topic.encode(), payload, block)
    if {".", ".."} & set(topic.split("/")) or topic.startswith("$"):
        # A wildcard takes no topic that begins with $ (MQTT-4.7.2-1).
        assert request.path.target(topic) == ""
        return
    found, body = read(written(request, message))
    headers = dict(found.headers)
    names = {b"host", b"authorization", b"user-agent", b"message-topic", b"content-type"}
    names |= {b"idempotency-key", b"x-v", b"content-length"}
    assert names <= set(headers) <= names | {b"x-c", b"x-t"}
    assert len(found.headers) == len(headers)
    assert body == payload
    target = urlsplit("http://h" + found.target.decode())
    assert target.path.startswith("/b/h/")
    assert unquote(target.path) == f"/b/h/{topic}"
    assert unquote(target.query) == f"t={topic}"
    assert unquote(headers[b"x-v"].decode()) == f"v={value.strip(' ')};"
    assert unquote(headers[b"message-topic"].decode()) == topic.strip(" ")


@given(text=ANY)
def test_header_text_is_bounded_and_decodes(text: str) -> None:
    """The text in a header decodes to what it was made of, without blanks at its ends; a long one is cut."""
    assert unquote(header_text(text)) == text.strip(" ")
    assert len(header_text(text * 1_000)) <= limits.HTTP_VALUE_BYTES
    unquote(header_text("\u20ac" * limits.HTTP_VALUE_BYTES), errors="strict")


@pytest.mark.parametrize(
    ("source", "address", "topic", "target"),
    [
        ("a/*/c/>", "/x/{2}/{1}", "a/b/c/d/e", "/x/d/e/b"),
        ("a/x*", "{1}", "a/xyz", "/yz"),
        ("a/*", "/q?one={1}&two=%20", "a/b c&d=e", "/q?one=b%20c%26d%3De&two=%20"),
        (">", "/fixed", "a/b", "/fixed"),
        (">", "AS_SOURCE", "a/%/\u00e9", "/a/%25/%C3%A9"),
        ("a/*", "/x/{1}", "a/..", ""),
        ("a/*", "/x/.{1}", "a/.", ""),
        ("a/*", "/x/{1}{1}", "a/.", ""),
        ("a/*", "/x?{1}", "a/..", "/x?.."),
        (">", "AS_SOURCE", "a/../b", ""),
        (">", "AS_SOURCE", "a/" + "b" * limits.HTTP_TARGET_BYTES, ""),
    ],
)
def test_paths(source: str, address: str, topic: str, target: str) -> None:
    """Captures are encoded for where they stand; what would lead elsewhere, or is too long, has no path."""
    filter_ = parse_filter(source, SMF)
    template = as_topic("", filter_) if address == "AS_SOURCE" else parse_path("", filter_, address)
    assert template.target(topic) == target


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("", "empty"),
        ("/a b", "percent-encode"),
        ("/a\r\nX: 1", "percent-encode"),
        ("/%zz", "percent-encode"),
        ("/a#b", "percent-encode"),
        ("/{2}", "wildcard"),
        ("/{0}", "wildcard"),
        ("/{x}", "no number"),
        ("/{1", "without its }"),
        ("/1}", "without its {"),
        ("/a/../b", "segment"),
    ],
)
def test_bad_paths(address: str, why: str) -> None:
    """An address that is no path is refused with the reason."""
    with pytest.raises(ValueError, match=why):
        parse_path("", parse_filter("a/*", SMF), address)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a\r\nb", "cannot carry"),
        ("\u00e9", "cannot carry"),
        (" a", "a space"),
        ("{payload}", "none of"),
        ("{property:}", "none of"),
        ("{topic", "without its }"),
        ("x" * (limits.HTTP_VALUE_BYTES + 1), "more than"),
    ],
)
def test_bad_headers(text: str, why: str) -> None:
    """A header value that none can have is refused with the reason."""
    with pytest.raises(ValueError, match=why):
        parse_header(text)


def test_own_headers_take_the_place_of_others() -> None:
    """A header that the link names is not there twice; one that becomes empty is left out."""
    request = RequestSettings(
        as_topic("", parse_filter("#", MQTT)),
        headers=[
            ("content-type", parse_header("text/x")),
            ("Message-Topic", parse_header("")),
            ("User-Agent", parse_header("me")),
            ("Idempotency-Key", parse_header("{property:k}")),
        ],
    )
    found, _ = read(written(request, Message(b"t", b"")))
    assert dict(found.headers) == {
        b"host": b"h:1",
        b"authorization": b"Bearer t",
        b"content-type": b"text/x",
        b"user-agent": b"me",
        b"content-length": b"0",
    }


def test_identities_differ() -> None:
    """Links, message VPNs and stores give a message names of their own, which stay."""
    names = [
        identity_of(store, vpn, link)
        for store in (b"\x01", b"\x02")
        for vpn in ("a", "b")
        for link in ("c/l", "c/m")
    ]
    assert len(set(names)) == len(names)
    assert identity_of(b"\x01", "a", "c/l") == names[0]


# -- when it is tried again ----------------------------------------------------------------------


def test_pauses_grow() -> None:
    """Each pause is twice the one before, within its jitter, up to the most; draws differ."""
    for tries in range(1, 100):
        length = min(SECOND_NS << min(tries - 1, 40), 60 * SECOND_NS)
        for draw in (0, JITTER_PARTS // 2, JITTER_PARTS - 1):
            assert length * 3 // 4 <= pause_ns(tries, SECOND_NS, 60 * SECOND_NS, draw)
            assert pause_ns(tries, SECOND_NS, 60 * SECOND_NS, draw) < length * 5 // 4 + 2
    draws = [draw_of(message_id, 1, 5) for message_id in range(1_000)]
    assert 0 <= min(draws) < 20
    assert JITTER_PARTS - 20 < max(draws) < JITTER_PARTS
    assert len(set(draws)) > 400


@given(at_s=st.integers(0, 4_102_444_800), now_s=st.integers(1_700_000_000, 1_900_000_000))
def test_dates(at_s: int, now_s: int) -> None:
    """A date of HTTP is read as the standard library writes it."""
    assert date_s(email.utils.formatdate(at_s, usegmt=True), now_s) == at_s


NOW_NS = 1_700_000_000 * SECOND_NS


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (b"0", 0),
        (b"120", 120),
        (b" 7 ", 7),
        (b"3600", 3_600),
        (b"3601", 3_600),
        (b"9" * 100, 3_600),
        (b"Tue, 14 Nov 2023 22:13:30 GMT", 10),
        (b"Tuesday, 14-Nov-23 22:13:30 GMT", 10),
        (b"Tue Nov 14 22:13:30 2023", 10),
        (b"Sun, 06 Nov 1994 08:49:37 GMT", 0),
        (b"Sunday, 06-Nov-94 08:49:37 GMT", 0),
        (b"Sun, 06 Nov 2094 08:49:37 GMT", 3_600),
        (b"", -1),
        (b"-1", -1),
        (b"1.5", -1),
        (b"soon", -1),
        (b"Sun, 99 Nov 1994 08:49:37 GMT", -1),
        (b"Sun, 06 Nix 1994 08:49:37 GMT", -1),
        (b"Sun, 06 Nov 1994 08:61:37 GMT", -1),
        (b"Sun, 06 Nov 1994 08:49:37 CET", -1),
        (b"Sun, 06 Nov \xff 08:49:37 GMT", -1),
    ],
)
def test_retry_after(text: bytes, seconds: int) -> None:
    """Retry-After is seconds or a date in any of three forms, is bounded, and anything else says nothing."""
    wanted = seconds * SECOND_NS if seconds >= 0 else -1
    assert retry_after_ns(text, NOW_NS) == wanted


@given(text=st.binary(max_size=60))
def test_retry_after_of_anything(text: bytes) -> None:
    """Whatever a server says, the time is within its bounds."""
    assert -1 <= retry_after_ns(text, NOW_NS) <= limits.HTTP_RETRY_AFTER_S * SECOND_NS


def test_trouble() -> None:
    """After so many failures in a row one request goes at a time, after growing pauses; one answer ends that."""
    pace = Pace(SECOND_NS, 60 * SECOND_NS, 16)
    for _ in range(TROUBLED - 1):
        pace.failed(1, 0, 0)
    assert not pace.troubled
    assert pace.until_ns == 0
    pauses = []
    now_ns = 0
    for _ in range(12):
        pace.failed(1, now_ns, JITTER_PARTS // 2)
        assert (pace.troubled, pace.most) == (True, 1)
        pauses.append(pace.until_ns - now_ns)
        now_ns = pace.until_ns
    assert pauses == [min(1 << number, 60) * SECOND_NS for number in range(12)]
    assert pace.answered()
    assert (pace.troubled, pace.most, pace.failures) == (False, 16, 0)
    assert not pace.answered()


def test_fewer_at_a_time() -> None:
    """Each failure halves how many are under way at a time, and each answer lets one more go."""
    pace = Pace(SECOND_NS, SECOND_NS, 16)
    pace.failed(1, 0, 0)
    pace.failed(1, 0, 0)
    assert pace.most == 4
    pace.answered()
    assert pace.most == 5
    for _ in range(20):
        pace.answered()
    assert pace.most == 16
