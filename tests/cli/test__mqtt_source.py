"""What is published."""

import os
import random
import re

import pytest

from vpnrouter.cli._mqtt_link import stamp_of
from vpnrouter.cli.pub import Lines, Messages, Random, Same
from vpnrouter.errors import OperationError


def test_one_and_the_same() -> None:
    """The same object again, so that its frame is made once; as many as were asked for."""
    messages = Messages("t", Same(b"x"), count=2)
    first = messages.take(0)
    assert first == (b"t", b"x")
    assert messages.take(0) is first
    with pytest.raises(EOFError):
        messages.take(0)


def test_the_template() -> None:
    """Three words are filled in, and nothing else in braces."""
    payload = Same(b'{"n": {seq}, "at": "{time}", "ns": {time_ns}, "{other}": {}}')
    messages = Messages("t/{seq}", payload, count=0, template=True)
    messages.take(0)
    topic, filled = messages.take(0) or (b"", b"")
    assert topic == b"t/2"
    form = rb'\{"n": 2, "at": "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "ns": \d{19}, "\{other\}": \{\}\}'
    assert re.fullmatch(form, filled)


def test_random_payloads_of_a_size() -> None:
    """Each another one, all of the size, with a stamp too."""
    messages = Messages("t", Random(64, random.Random(7)), count=0)
    _, first = messages.take(0) or (b"", b"")
    _, second = messages.take(0) or (b"", b"")
    assert (len(first), len(second)) == (64, 64)
    assert first != second
    stamped = Messages("t", Random(64, random.Random(7)), stamp=True).take(0) or (b"", b"")
    assert len(stamped[1]) == 64
    assert stamp_of(stamped[1])


def test_lines_as_they_come() -> None:
    """A line is a message when it is whole; None meanwhile; the rest counts at the end."""
    inside, outside = os.pipe()
    lines = Lines(inside, 100)
    os.write(outside, b"one\r\ntw")
    assert lines.take(0) == b"one"
    assert lines.take(0) is None
    os.write(outside, b"o\n\nrest")
    os.close(outside)
    assert [lines.take(1), lines.take(1)] == [b"two", b""]
    found = lines.take(1)
    assert (lines.take(1) if found is None else found) == b"rest"
    with pytest.raises(EOFError):
        lines.take(1)
    os.close(inside)


def test_a_line_without_an_end() -> None:
    """It is not read into memory without end."""
    inside, outside = os.pipe()
    os.write(outside, b"x" * 101)
    with pytest.raises(OperationError, match="longer than 100 bytes"):
        Lines(inside, 100).take(0)
    os.close(inside)
    os.close(outside)
