"""Lines to stderr that never make the router wait."""

import io
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TextIO

import pytest

from vpnrouter import limits
from vpnrouter.server.events.log import LogWriter


@pytest.fixture
def pipe() -> Iterator[tuple[int, TextIO]]:
    """The end to read of a pipe, and the other one as the stream to write to."""
    reading, writing = os.pipe()
    stream = os.fdopen(writing, "w", encoding="utf-8")
    yield reading, stream
    os.close(reading)
    with suppress(BrokenPipeError):
        stream.close()


def test_lines_are_written_at_once(pipe: tuple[int, TextIO]) -> None:
    """Whoever reads has each line when it was written."""
    reading, stream = pipe
    writer = LogWriter(lambda: stream)
    writer.write("one")
    writer.write("zwei ä")
    assert os.read(reading, 100).decode() == "one\nzwei ä\n"
    assert (writer.waiting, writer.lost) == (0, 0)


def test_nobody_reads(pipe: tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch) -> None:
    """A full pipe stalls nobody: lines wait, then are lost and counted, and come in order later."""
    monkeypatch.setattr(limits, "EVENT_LINES_WAITING", 500)
    reading, stream = pipe
    writer = LogWriter(lambda: stream)
    began = time.monotonic()
    written = 3_000
    for number in range(written):
        writer.write(f"{number:06} {'x' * 500}")
    assert time.monotonic() - began < 5
    assert writer.waiting == 500
    assert writer.lost > 0
    assert writer.take_lost() == 0
    found = b""
    while writer.waiting:
        found += os.read(reading, 1 << 20)
        writer.drain()
    os.set_blocking(reading, False)
    try:
        while True:
            found += os.read(reading, 1 << 20)
    except BlockingIOError:
        pass
    numbers = [int(line[:6]) for line in found.decode().splitlines()]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) + writer.take_lost() == written
    assert writer.take_lost() == 0


def test_the_reader_is_gone(pipe: tuple[int, TextIO]) -> None:
    """A closed pipe costs the lines and nothing else."""
    reading, stream = pipe
    os.dup2(os.open(os.devnull, os.O_RDONLY), reading)
    writer = LogWriter(lambda: stream)
    for _ in range(3):
        writer.write("x")
    assert writer.take_lost() == 3


def test_streams_in_memory_and_none() -> None:
    """What has no descriptor is written to; without a stream nothing happens."""
    memory = io.StringIO()
    writer = LogWriter(lambda: memory)
    writer.write("x")
    assert memory.getvalue() == "x\n"
    assert not writer.is_terminal
    LogWriter(lambda: None).write("x")
    memory.close()
    writer.write("y")
    assert writer.take_lost() == 1
