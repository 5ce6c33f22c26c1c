"""Tables of many rows, block by block."""

import io

from vpnrouter.cli._listing import Column, Listing, Spec

SPEC = Spec(
    title=lambda row: f"Thing {row['name']}",
    columns=(
        Column("Name", lambda row: row["name"]),
        Column("Count", lambda row: str(row["count"]), right=True),
    ),
    wide=(Column("More", lambda row: row["more"]),),
    stats=(("messages", "rx", "tx"), ("waiting", "", "waits"), ("of later", "later", "later")),
    reasons="discarded",
)

ROWS = [{"name": "a", "count": 1, "more": "m"}, {"name": "long name", "count": 22, "more": "n"}]


def test_blocks_stand_below_each_other() -> None:
    """Titles once, and columns that do not get narrower."""
    file = io.StringIO()
    listing = Listing(file, SPEC)
    listing.overview(ROWS)
    listing.overview(ROWS[:1])
    assert [line.rstrip() for line in file.getvalue().splitlines()] == [
        "Name       Count",
        "a              1",
        "long name     22",
        "a              1",
    ]


def test_wide() -> None:
    """More columns."""
    file = io.StringIO()
    Listing(file, SPEC).overview(ROWS, wide=True)
    assert file.getvalue().split()[:3] == ["Name", "Count", "More"]


def test_detail_and_stats() -> None:
    """All attributes; counts both ways, what this router does not tell left out, reasons by name."""
    file = io.StringIO()
    listing = Listing(file, SPEC)
    row = {"name": "a", "rx": 1_000, "tx": 2, "waits": 3, "discarded": {"loop": 4}}
    listing.detail([row])
    listing.stats([row])
    said = [tuple(line.split()) for line in file.getvalue().splitlines()]
    assert ("Thing", "a") in said
    assert ("messages", "1,000", "2") in said
    assert ("waiting", "3") in said
    assert ("discarded:", "loop", "4") in said
    assert not [line for line in said if line[:2] == ("of", "later")]
