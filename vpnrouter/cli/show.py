"""`vpnrouter show vpns|clients|subscriptions|queues|bridges|connectors|topology|events [NAME]`: what a running router
is and does.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, Protocol, TextIO

import typer

from vpnrouter import limits
from vpnrouter.cli._completion import names_to_show, vpn_names
from vpnrouter.cli._output import print_json_rows, print_notes
from vpnrouter.cli._router_access import DEFAULT_URL, CaFile, PasswordFile, User, connect
from vpnrouter.cli._show_rows import RowQuery, What
from vpnrouter.settings.kinds import loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vpnrouter.cli._format import RenderBuffer, Row
    from vpnrouter.management.client import ManagementClient

_FAILED: Final = 1

_ONE_LINE: Final = frozenset({What.TOPOLOGY, What.EVENTS})
"""Kinds that have one form only, without --wide, --detail and --stats."""


class _Style(NamedTuple):
    """How to show it."""

    wide: bool
    detail: bool
    stats: bool
    balance: bool


class _Tables(Protocol):
    """Prints rows of one kind."""

    def overview(self, rows: "Sequence[Row]", *, wide: bool = False) -> None:
        """One line each."""

    def detail(self, rows: "Sequence[Row]") -> None:
        """Everything about each."""

    def stats(self, rows: "Sequence[Row]") -> None:
        """Counts and rates."""


WhatOption = Annotated[What, typer.Argument(help="What to show.", show_default=False)]
Name = Annotated[
    str,
    typer.Argument(
        help="Only this one; * stands for any characters.",
        show_default=False,
        autocompletion=names_to_show,
    ),
]
MsgVpn = Annotated[
    str, typer.Option(metavar="VPN", help="Only those in this VPN.", autocompletion=vpn_names)
]
Matching = Annotated[
    str, typer.Option(metavar="TOPIC", help="Only subscriptions that get this topic.")
]
Wide = Annotated[bool, typer.Option("--wide", help="More columns.")]
Detail = Annotated[bool, typer.Option("--detail", help="Everything about each one.")]
Stats = Annotated[bool, typer.Option("--stats", help="Counts, rates and discards.")]
Balance = Annotated[
    bool, typer.Option("--balance", help="Is every message accounted for? Exit code 1 if not.")
]
Count = Annotated[
    int, typer.Option(min=0, help="At most so many; 0 for all, and of events the newest 20.")
]
Watch = Annotated[
    float | None,
    typer.Option("--watch", metavar="SECONDS", min=0.1, help="Show it again and again."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print all attributes as JSON.")]
Url = Annotated[
    list[str] | None,
    typer.Option(
        envvar="VPNROUTER_URL",
        help="The router's http listener; for topology several times.",
        show_default=DEFAULT_URL,
    ),
]


def command(
    what: WhatOption,
    name: Name = "",
    msg_vpn: MsgVpn = "",
    matching: Matching = "",
    wide: Wide = False,
    detail: Detail = False,
    stats: Stats = False,
    balance: Balance = False,
    count: Count = 0,
    watch: Watch = None,
    as_json: AsJson = False,
    url: Url = None,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Show what a running router is and does, as its management API tells.

    Exit code 0 when it was shown, 1 when there is no answer, nothing of that name, or, with
    --balance, a message that is not accounted for. --watch ends by ^C with 0.
    """
    from vpnrouter.cli._topology import show_topology
    from vpnrouter.cli._watch import watch as watched

    urls = url or [DEFAULT_URL]
    style = _Style(wide, detail, stats, balance)
    _check(what, style, matching, urls, as_json=as_json, watching=watch is not None)
    with ExitStack() as stack:
        clients = [
            stack.enter_context(connect(each, user, password_file, ca_file)) for each in urls
        ]
        if what is What.TOPOLOGY:
            show_topology(clients, name, msg_vpn, watch, as_json=as_json)
            return
        query = RowQuery(what, name, msg_vpn, matching, count)
        if watch is not None:
            watched(watch, _redraw(clients[0], query, style))
        elif as_json:
            good = _print_json(_rows(clients[0], query), what)
            if balance and not good:
                raise typer.Exit(_FAILED)
        elif not _show(_rows(clients[0], query), what, style, sys.stdout):
            raise typer.Exit(_FAILED)


def _check(
    what: What,
    style: _Style,
    matching: str,
    urls: list[str],
    *,
    as_json: bool,
    watching: bool,
) -> None:
    """Raise BadParameter for options that do not go together."""
    if matching and what is not What.SUBSCRIPTIONS:
        raise typer.BadParameter("is for subscriptions", param_hint="--matching")
    if style.balance and _is_balanced(what) is None:
        raise typer.BadParameter("is for bridges, connectors and queues", param_hint="--balance")
    if what in _ONE_LINE and any(style):
        raise typer.BadParameter(f"{what} have one form only", param_hint="--wide")
    if len(urls) > 1 and what is not What.TOPOLOGY:
        raise typer.BadParameter("several are for topology", param_hint="--url")
    if watching and as_json:
        raise typer.BadParameter("does not go with --json", param_hint="--watch")


def _rows(client: "ManagementClient", query: RowQuery) -> Iterator[dict[str, Any]]:
    from vpnrouter.cli._show_rows import rows_of

    return rows_of(client, query)


def _tables(what: What, out: "TextIO | RenderBuffer", rows: "Sequence[Row]") -> _Tables:
    """Return what prints rows; one of them is there."""
    from vpnrouter.cli._listing import Listing, Spec, spec_of
    from vpnrouter.cli._tables import CLIENTS, SUBSCRIPTIONS

    kind = what.kind
    if kind is None:
        return Listing(out, CLIENTS if what is What.CLIENTS else SUBSCRIPTIONS)
    found = loaded(kind.tables) if kind.tables else spec_of(kind.one, what.key, rows[0])
    made: _Tables = Listing(out, found) if isinstance(found, Spec) else found(out)
    return made


def _is_balanced(what: What) -> "Callable[[Row], bool] | None":
    """Return what says whether a row accounts for all messages, None for rows that have no balance."""
    found = loaded(what.kind.tables) if what.kind is not None and what.kind.tables else None
    check: Callable[[Row], bool] | None = getattr(found, "is_balanced", None)
    return check


def _show(
    rows: Iterable[dict[str, Any]], what: What, style: _Style, out: "TextIO | RenderBuffer"
) -> bool:
    """Print rows as they come. Returns False if --balance was given and one of them does not balance."""
    each = iter(rows)
    # The tables of bridges and queues want all of them; there are few.
    most = limits.SHOW_BLOCK_ROWS if what.kind is None else None
    tables: Any = None
    good = True
    while block := list(islice(each, most)):
        if what is What.EVENTS:
            _print_events(block, out)
            continue
        if tables is None:
            tables = _tables(what, out, block)
        _print(tables, block, style)
        good = good and not (style.balance and not all(map(tables.is_balanced, block)))
    if tables is None and what is not What.EVENTS:
        print_notes(f"vpnrouter: no {what}")
    elif style.wide and tables.left_out and out is sys.stdout:
        print_notes(
            f"vpnrouter: {tables.left_out} columns have no room here; a pipe or --json gives all"
        )
    return good


def _print(tables: Any, rows: list[dict[str, Any]], style: _Style) -> None:  # noqa: ANN401
    if style.detail:
        tables.detail(rows)
    if style.stats:
        tables.stats(rows)
    if style.balance:
        tables.balance(rows)
    if not (style.detail or style.stats or style.balance):
        tables.overview(rows, wide=style.wide)


def _print_events(rows: list[dict[str, Any]], out: "TextIO | RenderBuffer") -> None:
    from vpnrouter.cli._format import printer_for
    from vpnrouter.cli.events import line_of

    printer = printer_for(out)
    for row in rows:
        printer.print(line_of(row, printer.room))


def _print_json(rows: Iterable[dict[str, Any]], what: What) -> bool:
    """Print a JSON list, object by object as they come. Returns whether all of them balance."""
    is_balanced = _is_balanced(what)
    wrong = 0

    def counted() -> Iterator[dict[str, Any]]:
        nonlocal wrong
        for row in rows:
            yield row
            wrong += is_balanced is not None and not is_balanced(row)

    print_json_rows(counted())
    return not wrong


def _redraw(
    client: "ManagementClient", query: RowQuery, style: _Style
) -> "Callable[[RenderBuffer, float], None]":
    """The function that `--watch` calls for each redraw: it prints as many rows as the terminal shows."""
    from vpnrouter.cli._show_rows import rows_of
    from vpnrouter.cli._watch import Rates, height

    rates = Rates(query.what)

    def redraw(out: "RenderBuffer", now_s: float) -> None:
        most = height()
        fits = query._replace(most=min(query.most or most, most)) if most else query
        rows = list(rows_of(client, fits))
        rates.put(rows, now_s)
        if rows:
            _show(rows, query.what, style, out)
        else:
            out.print(f"no {query.what}")

    return redraw
