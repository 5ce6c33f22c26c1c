"""Repeats an output for `--watch`, with rates between two redraws."""

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from time import monotonic, sleep
from typing import Any, Final, final

from vpnrouter.cli._format import RX_RATE, TX_RATE, RenderBuffer
from vpnrouter.cli._show_rows import What
from vpnrouter.errors import OperationError

_COUNTED: Final = {
    What.VPNS: ("rxMsgCount", "txMsgCount"),
    What.CLIENTS: ("rxMsgCount", "txMsgCount"),
    What.QUEUES: ("spooledMsgCount", "ackedMsgCount"),
    What.BRIDGES: ("dataRxMsgCount", "dataTxMsgCount"),
}
"""What rates are made of, received and sent; into a queue and out of it."""


@final
class Rates:
    """Adds messages a second to rows of one kind, from their counts at the redraw before."""

    def __init__(self, what: What) -> None:
        self._what = what
        self._before: dict[tuple[str, str], tuple[int, int]] = {}
        self._before_s = 0.0

    def put(self, rows: Sequence[dict[str, Any]], now_s: float) -> None:
        """Set RX_RATE and TX_RATE of each row, None where it was not there before or began anew."""
        counted = _COUNTED.get(self._what)
        if counted is None:
            return
        now: dict[tuple[str, str], tuple[int, int]] = {}
        elapsed_s = now_s - self._before_s
        for row in rows:
            key = (row["msgVpnName"], row[self._what.key])
            counts = (row[counted[0]], row[counted[1]])
            now[key] = counts
            before = self._before.get(key)
            for name, count, earlier in zip(
                (RX_RATE, TX_RATE), counts, before or counts, strict=True
            ):
                known = before is not None and count >= earlier and elapsed_s > 0
                row[name] = (count - earlier) / elapsed_s if known else None
        self._before, self._before_s = now, now_s


def watch(interval_s: float, draw: Callable[[RenderBuffer, float], None]) -> None:
    """Draw again and again until ^C: in place on a terminal, block after block elsewhere.

    `draw` takes where to print and the time (of time.monotonic). When the router does not answer, that is
    shown, and asked again; at the first time it is an error.
    """
    try:
        if sys.stdout.isatty():
            _on_terminal(interval_s, draw)
        else:
            _in_blocks(interval_s, draw)
    except KeyboardInterrupt:
        return


def _on_terminal(interval_s: float, draw: Callable[[RenderBuffer, float], None]) -> None:
    from rich.live import Live

    from vpnrouter.cli._format import console_for

    console = console_for(sys.stdout)
    first = _looked(draw, interval_s, console.room)
    # The whole picture is written over the one before: nothing is cleared, so nothing flickers.
    with Live(
        first.drawn(), console=console, screen=True, auto_refresh=False, vertical_overflow="crop"
    ) as live:
        live.refresh()
        while True:
            sleep(interval_s)
            seen = _looked(draw, interval_s, console.room, again=True)
            live.update(seen.drawn(), refresh=True)


def _in_blocks(interval_s: float, draw: Callable[[RenderBuffer, float], None]) -> None:
    from vpnrouter.cli._format import console_for

    console = console_for(sys.stdout)
    again = False
    while True:
        console.print(_looked(draw, interval_s, None, again=again).drawn())
        console.print()
        sys.stdout.flush()
        again = True
        sleep(interval_s)


def _looked(
    draw: Callable[[RenderBuffer, float], None],
    interval_s: float,
    room: int | None,
    *,
    again: bool = False,
) -> RenderBuffer:
    found = RenderBuffer(room)
    moment = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    found.print(f"{moment}, every {interval_s:g} s; ^C ends")
    try:
        draw(found, monotonic())
    except OperationError as error:
        if not again:
            raise
        found.print(str(error), style="bold red")
    return found


def height() -> int:
    """Rows that fit the terminal below the titles, 0 where there is no terminal."""
    import shutil

    return max(1, shutil.get_terminal_size().lines - 3) if sys.stdout.isatty() else 0
