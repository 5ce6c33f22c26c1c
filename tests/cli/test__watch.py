"""Looking again and again."""

import sys
from typing import Any

import pytest

from vpnrouter.cli import _watch
from vpnrouter.cli._format import RX_RATE, TX_RATE, RenderBuffer
from vpnrouter.cli._show_rows import What
from vpnrouter.cli._watch import Rates, height, watch
from vpnrouter.errors import OperationError


def row(received: int, sent: int, name: str = "c") -> dict[str, Any]:
    """A client."""
    return {"msgVpnName": "v", "clientName": name, "rxMsgCount": received, "txMsgCount": sent}


def rated(rates: Rates, now_s: float, *rows: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Rates of each row."""
    rates.put(rows, now_s)
    return [(each[RX_RATE], each[TX_RATE]) for each in rows]


def test_rates_between_looks() -> None:
    """None at the first look, for a new one, and where counts began anew."""
    rates = Rates(What.CLIENTS)
    assert rated(rates, 1.0, row(10, 0)) == [(None, None)]
    assert rated(rates, 3.0, row(110, 1), row(5, 5, "new")) == [(50.0, 0.5), (None, None)]
    assert rated(rates, 4.0, row(3, 2)) == [(None, 1.0)]


def test_no_rates_of_subscriptions() -> None:
    """They have no counts."""
    rows = [{"name": "x"}]
    Rates(What.SUBSCRIPTIONS).put(rows, 1.0)
    assert rows == [{"name": "x"}]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses; the third is interrupted."""
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(_watch, "sleep", sleep)
    return pauses


def test_block_after_block(looks: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    """On a pipe; ^C ends it without a word, and a router that is away for a while does not."""
    drawn: list[float] = []

    def draw(out: RenderBuffer, now_s: float) -> None:
        drawn.append(now_s)
        if len(drawn) == 2:
            raise OperationError("no answer")
        out.print(f"look {len(drawn)}")

    watch(0.5, draw)
    assert looks == [0.5, 0.5, 0.5]
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if line and "^C ends" not in line] == [
        "look 1",
        "no answer",
        "look 3",
    ]


def test_an_error_at_the_first_look(looks: list[float]) -> None:
    """Whoever mistyped something need not watch."""

    def draw(out: RenderBuffer, now_s: float) -> None:
        raise OperationError("no answer")

    with pytest.raises(OperationError):
        watch(0.5, draw)


def test_in_place_on_a_terminal(
    looks: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other screen is used and left again; the picture is written over, never cleared line by line."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "10")
    assert height() == 7
    watch(0.5, lambda out, _: out.print("x"))
    said = capsys.readouterr().out
    assert said.count("\x1b[?1049h") == said.count("\x1b[?1049l") == 1
    assert said.count("\x1b[H") >= 3
    assert "\x1b[2K" not in said


def test_height_of_a_pipe() -> None:
    """Everything fits."""
    assert height() == 0
