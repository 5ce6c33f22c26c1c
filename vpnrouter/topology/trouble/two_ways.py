"""Rule: messages come into a VPN over two bridges."""

from typing import Final

from vpnrouter.topology.findings import INFO, WARNING, Finding
from vpnrouter.topology.tables import Rows
from vpnrouter.topology.trouble.excuses import Excuses
from vpnrouter.topology.trouble.words import counted

_DISCARDED: Final = INFO
"""How bad it is that the second copies were all discarded: a ring is often there on purpose."""


def two_ways(doubles: Rows, excuses: Excuses) -> list[Finding]:
    """`doubles` of `duplicates.doubles_by_place` in, a `two_ways` for each pair of bridges out.

    Info, and one a VPN, where it discarded the copies, as it does with Direct messages: then the second way
    is there for the day on which the first breaks. None where the messages came around a loop.
    """
    by_vpn: dict[tuple[str, str], Rows] = {}
    for row in doubles:
        if row["kind"] == "two_ways":
            by_vpn.setdefault((row["router"], row["vpn"]), []).append(row)
    found = []
    for (router, vpn), rows in by_vpn.items():
        copies = sum(row["copies"] for row in rows)
        if excuses.by_loop(router, vpn, copies):
            continue
        if excuses.by_discards(router, vpn, copies):
            found.append(_discarded(router, vpn, rows, copies))
            continue
        found += [
            Finding(
                kind="two_ways",
                severity=WARNING,
                router=router,
                vpn=vpn,
                messages=row["messages"],
                value=float(row["copies"]),
                first_ns=row["first_ns"],
                last_ns=row["last_ns"],
                detail=f"{counted(row['messages'], 'message')} came to {router}/{vpn} both over"
                f" {row['who']} and over {row['other']}, and nobody discarded the second copy.",
            )
            for row in rows
        ]
    return found


def _discarded(router: str, vpn: str, rows: Rows, copies: int) -> Finding:
    worst = max(rows, key=lambda row: row["copies"])
    return Finding(
        kind="two_ways",
        severity=_DISCARDED,
        router=router,
        vpn=vpn,
        messages=sum(row["messages"] for row in rows),
        value=float(copies),
        first_ns=min(row["first_ns"] for row in rows),
        last_ns=max(row["last_ns"] for row in rows),
        detail=f"{copies:,} times a message came to {router}/{vpn} a second time, most often over"
        f" {worst['who']} and over {worst['other']}, and was discarded there: the way is spare.",
    )
