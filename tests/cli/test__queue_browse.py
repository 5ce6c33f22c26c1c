import json
from typing import Any

import pytest

from vpnrouter.cli import app
from vpnrouter.cli.queue import when

BROWSE = ["queue", "browse", "orders"]


def test_table(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a message, the oldest first."""
    assert app.run([*BROWSE, "--count", "2"]) == 0
    titles, *rows = capsys.readouterr().out.splitlines()
    assert titles.split()[:2] == ["Message", "Topic"]
    assert [row.split() for row in rows] == [
        [str(number), f"t/{number}", "1", "4", "0", "2023-11-14T22:13:20Z", "-", "-"]
        for number in (1, 2)
    ]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ([], range(1, 21)),
        (["--count", "1000"], range(1, 26)),
        (["--count", "3", "--after", "20"], range(21, 24)),
        (["--after", "25"], range(0)),
    ],
)
def test_json(
    served: Any, options: list[str], ids: range, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many as were asked for, over as many pages as that takes."""
    assert app.run([*BROWSE, *options, "--json"]) == 0
    assert [row["msgId"] for row in json.loads(capsys.readouterr().out)] == list(ids)


def test_more_than_a_page(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Pages are put together without a message twice or left out."""
    served.still.queues.contents["blue", "orders"] = dict.fromkeys(range(1, 300), b"")
    assert app.run([*BROWSE, "--count", "250", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["msgId"] for row in rows] == list(range(1, 251))


def test_payload(served: Any, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """The bytes alone, whatever they are."""
    served.still.queues.contents["blue", "orders"][3] = b"\0\xff\n"
    assert app.run([*BROWSE, "--payload", "3"]) == 0
    assert capfdbinary.readouterr() == (b"\0\xff\n", b"")


def test_payload_of_no_message(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 and the reason."""
    assert app.run([*BROWSE, "--payload", "99"]) == 1
    assert capsys.readouterr().err.endswith("Could not find match for msg 99 in queue orders\n")


def test_empty_queue(served: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """That is no error; it is said on stderr."""
    assert app.run(["queue", "browse", "dead"]) == 0
    assert capsys.readouterr() == ("", "vpnrouter: no messages in queue dead\n")


def test_when() -> None:
    """Times are UTC, and never is none."""
    assert (when(0), when(86_399)) == ("-", "1970-01-01T23:59:59Z")
