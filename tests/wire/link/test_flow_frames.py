import re
from pathlib import Path

from vpnrouter.wire.link import frames

DOC = (Path(__file__).parents[3] / "docs/link-protocol.md").read_text(encoding="utf-8")


def test_every_frame_type_has_the_number_of_the_document() -> None:
    """The table of LINK-5 and the constants say the same."""
    rows = re.findall(r"^\| 0x([0-9a-f]{2}) \| ([A-Z_]+) \| \w+ \| LINK-\d+ \|$", DOC, re.MULTILINE)
    told = {name: int(number, 16) for number, name in rows}
    known = vars(frames)
    assert told == {name: known.get(name) for name in told}
    assert len(set(told.values())) == len(told)


def test_flags_are_apart() -> None:
    """Each flag of a message is a bit of its own."""
    flags = (
        frames.REDELIVERED,
        frames.PERSISTENT,
        frames.DMQ_ELIGIBLE,
        frames.EXACTLY_ONCE,
    )
    assert sum(flags) == frames.MESSAGE_FLAGS == 0b1111
