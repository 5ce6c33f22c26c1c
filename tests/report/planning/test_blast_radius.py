"""What depends on a message VPN, directly and over bridges."""

from __future__ import annotations

from collections.abc import Callable

from vpnrouter.report.planning.blast_radius import blast_radius
from vpnrouter.report.planning.traffic import Traffic
from vpnrouter.report.schema import BLAST_RADIUS


def test_who_depends_on_a_message_vpn(traffic: Callable[..., Traffic]) -> None:
    """Senders are before it on a way, receivers behind it; of a pair with two ways a share leads through; what is
    received where it entered is local.
    """
    made = traffic(
        ["a>b", "b>c", "a>x", "x>c", "d>b"],
        {"a>b": 9, "a>b>c": 9, "a>x": 3, "a>x>c": 3, "d>b": 4},
        received={"a>b": 8, "a>c": 40, "b>b": 20, "d>b": 4},
    )
    clients = [
        {"router": name, "vpn": "v", "count": n} for name, n in (("a", 1), ("b", 2), ("c", 5))
    ]
    rows = blast_radius(made, clients, [])
    assert all(row.keys() == set(BLAST_RADIUS.names) for row in rows)
    names = ("clients", "local_per_s", "senders", "receivers", "vpns", "clients_beyond")
    found = {row["router"]: (*(row[name] for name in names), row["beyond_per_s"]) for row in rows}
    # In four seconds; three quarters of what c gets of a comes through b.
    assert found == {
        "a": (1, 0.0, 0, 3, 3, 7, (8 + 40) / 4),
        "b": (2, 5.0, 2, 1, 3, 6, (8 + 4 + 30) / 4),
        "c": (5, 0.0, 1, 0, 1, 1, 40 / 4),
        "d": (0, 0.0, 0, 1, 1, 2, 4 / 4),
        "x": (0, 0.0, 1, 1, 2, 6, 10 / 4),
    }
    assert [row["router"] for row in rows] == ["a", "b", "c", "x", "d"]
    assert all(row["endpoints"] is None and row["endpoints_beyond"] is None for row in rows)


def test_a_mesh_without_bridges(traffic: Callable[..., Traffic]) -> None:
    """Nothing depends on what nobody reaches."""
    (one, other) = blast_radius(traffic(["a>b"], {}, received={"a>a": 4}), [], [])
    assert (one["router"], one["local_per_s"], one["vpns"], one["clients"]) == ("a", 1.0, 0, None)
    assert (other["router"], other["beyond_per_s"]) == ("b", 0.0)
