"""Real mails as traces: the report has the figures that DuckDB computes, and docs/report-real-data.md tells them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path
from typing import Any, Final

import pytest

from bench.real_traces import Stamp, convert, rows_of, stamps

ROOT: Final = Path(__file__).resolve().parents[3]
MAILS: Final = ROOT / ".peers" / "mails" / "data"
SECOND: Final = 1_000_000_000
FINDINGS: Final = 200
"""Findings of a kind, at most."""

MAIL: Final = """\
Received: from localhost (localhost [127.0.0.1])
\tby mx.example.org (Postfix) with ESMTP id B; Thu, 22 Aug 2002 07:46:38 -0400 (EDT)
Received: from Relay.example.net by mx.example.org with SMTP id A; Thu, 22 Aug 2002 12:46:30 +0100
Received: by localhost with IMAP; Thu, 22 Aug 2002 12:46:20 +0100
Received: (qmail 11764 invoked from network); 22 Aug 2002 11:46:29 -0000
Received: from pc by relay.EXAMPLE.net with smtp; Thu, 22 Aug 2002 13:14:10 +0100
Received: from pc by other.example.net with smtp; in the year 20102
List-Id: A list <ponies.example.net>

Hello.
"""


def test_stamps_of_a_mail() -> None:
    """Relays with a name and a time, the first one first, each of them once in a row: when the mail came there."""
    noon = 1_030_016_790 * SECOND  # 11:46:30 UTC
    assert stamps(Parser().parsestr(MAIL)) == [
        Stamp("relay.example.net", noon + 1_660 * SECOND, "smtp", "pc"),
        Stamp("mx.example.org", noon, "smtp", "relay.example.net"),
    ]


def test_rows_of_a_mail() -> None:
    """What enters is sent on, received and delivered, with the way so far."""
    way = [Stamp(name, at, "smtp", "pc") for at, name in enumerate(("a.org", "b.org", "c.org"))]
    rows = list(rows_of(7, "f" * 32, "direct", 5, way))
    assert [(router, row["event"], row["ts_ns"], row["hops"]) for router, row in rows] == [
        ("a.org", "ingress", 0, 0),
        ("a.org", "bridge_send", 0, 1),
        ("b.org", "bridge_receive", 1, 1),
        ("b.org", "bridge_send", 1, 2),
        ("c.org", "bridge_receive", 2, 2),
        ("c.org", "deliver", 2, 2),
    ]
    paths = [row.get("path") for _, row in rows]
    assert paths == [None, None, "a.org/mail", "a.org/mail", *["a.org/mail>b.org/mail"] * 2]


@dataclass(frozen=True)
class Made:
    """How many mails became traces, and the figures."""

    mails: int
    figures: Any


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, figures_of: Callable[[Path], Any]) -> Made:
    """The report of all mails."""
    if not MAILS.is_dir():
        pytest.skip("the mails are not here: .ci/peers installs them")
    folder = tmp_path_factory.mktemp("mails")
    mails = convert(MAILS, folder / "traces")
    return Made(mails, figures_of(folder))


def clock_pairs(figures: Any) -> list[dict[str, Any]]:
    """Pairs of relays with mails in one direction only, the first of which came before it entered: the worst first."""
    rows: list[dict[str, Any]] = figures.query(
        "select entry_router as router, router as peer_router, -ns / 1e9 as seconds from fastest as one"
        " where ns <= -25_000_000 and not exists (from fastest as back"
        " where back.router = one.entry_router and back.entry_router = one.router)"
        " order by seconds desc, one.entry_router, one.router"
    )
    return rows


def came_back(figures: Any) -> dict[tuple[str, ...], int]:
    """How often a mail came to a relay where it had been, by the relays in between, from the first of these on."""
    rounds: dict[tuple[str, ...], int] = {}
    for row in figures.query("select path, router from trace where event = 'bridge_receive'"):
        way = [place.removesuffix("/mail") for place in row["path"].split(">")]
        if row["router"] in way:
            again = way[len(way) - 1 - way[::-1].index(row["router"]) :]
            start = again.index(min(again))
            cycle = (*again[start:], *again[:start])
            rounds[cycle] = rounds.get(cycle, 0) + 1
    return rounds


@pytest.mark.long
@pytest.mark.spark
def test_each_figure_is_that_of_duckdb(
    made: Made, compare_all: Callable[[Any], dict[str, int]]
) -> None:
    """Also those of clocks that are wrong by years, and of relays that are met twice."""
    counts = compare_all(made.figures)
    # Mails have no links, no losses and no providers.
    assert {name for name, count in counts.items() if not count} == {
        "links",
        "discards",
        "providers",
    }
    assert sum(counts.values()) > 100_000


@pytest.mark.long
@pytest.mark.spark
def test_wrong_clocks_and_loops_are_found(made: Made) -> None:
    """The worst clocks are told first, those that moved too, and each mail that came back is in a loop."""
    found = made.figures.told("findings")
    told = [row for row in found if row["kind"] == "clock_skew" and row["severity"] == "warning"]
    pairs = clock_pairs(made.figures)
    assert [row["value"] for row in told] == [row["seconds"] for row in pairs[:FINDINGS]]
    worst = [(row["router"], row["peer_router"]) for row in told[:20]]
    assert worst == [(row["router"], row["peer_router"]) for row in pairs[:20]]
    rounds = came_back(made.figures)
    loops = [row for row in found if row["kind"] == "loop"]
    assert sorted(row["messages"] for row in loops) == sorted(rounds.values())
    # Where a message and an answer are under way for less than no time, a clock was set or drifts.
    moved = {row["router"] for row in found if row["kind"] == "clock_moved"}
    impossible = made.figures.query("select router, other from compared where error_ns < 0")
    assert moved == {"mta21.bigpong.com", "phobos.labs.netnoteinc.com"}
    assert moved == {end for pair in impossible for end in pair.values() if end in moved}
    assert all(moved & set(pair.values()) for pair in impossible)


@pytest.mark.long
@pytest.mark.spark
def test_the_page_tells_these_figures(made: Made) -> None:
    """Each row of the page's tables of figures is computed here, from the mails and not from the report."""
    figures = made.figures
    text = (ROOT / "docs" / "report-real-data.md").read_text(encoding="utf-8")
    [totals] = figures.query(
        "select count(*) as rows, count(distinct router) as relays,"
        " count(*) filter (event = 'bridge_receive') as crossings from trace"
    )
    [steps] = figures.query("select count(*) as bridges from edges")
    [longest] = figures.query("select max(hops) as hops from lengths")
    rounds = came_back(figures)
    often = max(rounds, key=lambda cycle: rounds[cycle])
    pairs = clock_pairs(figures)
    lines = [
        f"| mails that a relay with a name and a time has stamped | {made.mails:,} |",
        f"| trace rows | {totals['rows']:,} |",
        f"| relays: routers and message VPNs | {totals['relays']:,} |",
        f"| steps from a relay to another one: bridges | {steps['bridges']:,} |",
        f"| mails over these steps: crossings | {totals['crossings']:,} |",
        f"| most steps of a mail | {longest['hops']} |",
        f"| mails that came back to a relay, on {len(rounds)} ways round | {sum(rounds.values())} |",
        f"| of these on the way {' > '.join((*often, often[0]))} | {rounds[often]} |",
        f"| pairs of relays where a mail arrived before it entered, and none went the other way | {len(pairs):,} |",
        f"| the same by more than an hour | {sum(row['seconds'] > 3_600 for row in pairs):,} |",
        f"| the worst: the clock of {pairs[0]['router']} was ahead by | {pairs[0]['seconds'] / 86_400:,.1f} days |",
    ]
    for name in (
        "xent.com > dogma.slashnull.org",
        "mandark.labs.netnoteinc.com > dogma.slashnull.org",
    ):
        [row] = figures.query(
            "select latency_samples, sorted_ns from edge_latencies"
            " where from_router || ' > ' || to_router = ? and bridge = 'esmtp'",
            name,
        )
        middle = row["sorted_ns"][(len(row["sorted_ns"]) - 1) // 2] / SECOND
        lines.append(f"| {name}, median of {row['latency_samples']:,} mails | {middle:,.0f} s |")
    table = text.partition("| what | figure |\n|---|---|\n")[2].partition("\n\n")[0]
    assert table.splitlines() == lines
