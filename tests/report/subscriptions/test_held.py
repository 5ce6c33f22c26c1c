"""Which subscriptions were held, and for how long."""

from typing import Any

from vpnrouter.report.subscriptions.held import held


def test_times_and_dialects(mesh: Any) -> None:
    """Each subscription has one row, whatever came and went; gaps do not count."""
    start = mesh.span[0]
    mesh.sub("r/v", "stays", "a/+", None, since=100)
    mesh.sub("r/v", "goes", "a/b", since=100, until=300)
    mesh.sub("r/v", "goes", "keeps", since=100)
    mesh.sub("r/v", "back", "x", since=0, until=100)
    mesh.sub("r/v", "back", "x", since=500)
    mesh.state("unsubscribe", "r/v", "older", "y", 400, "mqtt")
    mesh.sub("r/v", "#bridge/q/v/b", "!a/*", None, since=200)
    mesh.sub("r/v", "shared", "$share/g/a/#", since=0)
    mesh.sub("r/v", "queue", "$queue/q1", since=0)
    mesh.sub("r/v", "crashed", "z", since=100)
    mesh.sub("r/v", "crashed", "z", since=200)
    # A router that stops takes all the clients with it; what one had given up before is not current.
    mesh.sub("r/v", "ends", "early", since=0, until=500)
    mesh.sub("r/v", "ends", "late1", since=0, until=999)
    mesh.sub("r/v", "ends", "late2", since=0, until=999.5)
    rows = held(mesh.digests()["states"], mesh.span).collect()

    def second(time_ns: int | None) -> float | None:
        return None if time_ns is None else (time_ns - start) / 1e9

    found = {
        (row["client"], row["filter"]): (
            row["syntax"],
            second(row["since_ns"]),
            second(row["until_ns"]),
            row["held_ns"] / 1e9,
            row["current"],
        )
        for row in rows
    }
    assert found == {
        ("stays", "a/+"): ("mqtt", 100, None, 900, True),
        ("goes", "a/b"): ("mqtt", 100, 300, 200, False),
        ("goes", "keeps"): ("mqtt", 100, None, 900, True),
        ("back", "x"): ("mqtt", 0, None, 600, True),
        ("older", "y"): ("mqtt", 0, 400, 400, True),
        ("#bridge/q/v/b", "!a/*"): ("smf", 200, None, 800, True),
        ("shared", "$share/g/a/#"): ("mqtt", 0, None, 1000, True),
        ("crashed", "z"): ("mqtt", 100, None, 900, True),
        ("ends", "early"): ("mqtt", 0, 500, 500, False),
        ("ends", "late1"): ("mqtt", 0, 999, 999, True),
        ("ends", "late2"): ("mqtt", 0, 999.5, 999.5, True),
    }
    flags = {row["filter"]: (row["text"], row["exception"]) for row in rows}
    assert flags["!a/*"] == ("a/*", True)
    assert flags["$share/g/a/#"] == ("a/#", False)
