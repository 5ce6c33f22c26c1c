import json
from pathlib import Path

import pytest

from bench.ours import ready_addresses
from bench.percentiles import median_of, percentile, summary
from bench.results import Report, disturbance, summary_line, table, verdict, write
from bench.rounds import alternate, order
from bench.scenarios import SCENARIOS, Goal, Row

ONE_TO_ONE = next(scenario for scenario in SCENARIOS if scenario.name == "one-to-one")


def report() -> Report:
    """A report of two contenders and two rounds."""
    rows: dict[str, list[Row]] = {
        "ours": [{"rate": 6e6, "faults": []}, {"rate": 8e6, "faults": []}],
        "nats": [{"rate": 2e6, "faults": []}, {"rate": 2e6, "faults": ["3 messages lost"]}],
    }
    return Report(
        kind="direct",
        started="2026-01-02T03:04:05Z",
        machine={"cpus": 2},
        settings={"rounds": 2},
        versions={"ours": "1", "nats": "2"},
        warnings=[],
        scenarios={"one-to-one": table(ONE_TO_ONE, rows)},
    )


@pytest.mark.parametrize(
    ("share", "expected"), [(0.5, 50), (0.99, 99), (0.999, 100), (0.001, 1), (1.0, 100)]
)
def test_percentiles_are_values_that_were_measured(share: float, expected: int) -> None:
    """Nearest rank: of 1..100 the p99 is 99 and the p99.9 is 100."""
    assert percentile(range(1, 101), share) == expected


def test_a_summary_is_in_microseconds() -> None:
    """Ages in nanoseconds become percentiles in microseconds; without ages there are none."""
    assert summary([3000, 1000, 2000]) == {
        "p50_us": 2.0,
        "p99_us": 3.0,
        "p999_us": 3.0,
        "max_us": 3.0,
        "count": 3,
    }
    assert summary([]) == {"count": 0}


def test_a_median_counts_rows_that_have_the_field() -> None:
    """A failed round has no figure and pulls no median down."""
    assert median_of([{"rate": 1.0}, {}, {"rate": 3.0}, {"rate": 9.0}]) == {"rate": 3.0}


def test_each_round_begins_with_another_contender() -> None:
    """Nobody always runs first."""
    assert [order("abc", number) for number in range(4)] == [
        ["a", "b", "c"],
        ["b", "c", "a"],
        ["c", "a", "b"],
        ["a", "b", "c"],
    ]


def test_a_failure_of_one_contender_is_its_fault_only() -> None:
    """An exception becomes a fault in that row, and everybody else is measured."""

    def measure(name: str) -> Row:
        if name == "b":
            raise ConnectionError("gone")
        return {"rate": 1.0, "faults": []}

    rows = alternate("ab", 2, measure, str, lambda _name, _row: None)
    assert [row["faults"] for row in rows["b"]] == [["failed: ConnectionError: gone"]] * 2
    assert [row["rate"] for row in rows["a"]] == [1.0, 1.0]


def test_ratios_and_verdicts_come_from_medians() -> None:
    """Median 7 against 2 is 3.5: meets 3 times nats; without mosquitto nothing is claimed."""
    figures = report().scenarios["one-to-one"]
    assert figures.ratios == {"nats": 3.5}
    met = {goal.text: goal.met for goal in figures.goals}
    assert met == {"≥ 3 × nats": True, "≥ 12 × mosquitto": None}
    assert figures.faults == {"nats": ["round 2: 3 messages lost"]}


def test_a_disturbed_run_is_told_by_its_worst_median() -> None:
    """What others took of the broker's core shows, and the ratio per CPU second leaves it out."""
    rows: dict[str, list[Row]] = {
        "ours": [{"rate": 2e6, "rate_per_core": 8e6, "others_busy": 0.75, "faults": []}],
        "nats": [{"rate": 2e6, "rate_per_core": 2e6, "others_busy": 0.0, "faults": []}],
    }
    figures = table(ONE_TO_ONE, rows)
    assert disturbance(figures) == 0.75
    assert figures.ratios == {"nats": 1.0}
    assert figures.ratios_per_core == {"nats": 4.0}


def test_a_goal_at_most_is_met_from_below() -> None:
    """Latency and memory goals are upper bounds, with or without a peer."""
    medians = {"ours": {"p99_us": 50.0}, "nats": {"p99_us": 40.0}}
    assert verdict(Goal("p99_us", at_most=1, versus="nats"), medians).met is False
    assert verdict(Goal("p99_us", at_most=60), medians).met is True
    medians["ours"]["p99_us"] = -50.0
    assert verdict(Goal("p99_us", at_most=1, versus="nats"), medians).met is None


def test_what_is_written_can_be_read_again(tmp_path: Path) -> None:
    """The JSON file holds schema, machine, settings and every row; the summary is one line."""
    path = write(report(), tmp_path)
    assert path.name == "direct-20260102T030405Z.json"
    read = json.loads(path.read_text(encoding="utf-8"))
    assert read["schema"] == "vpnrouter-bench/1"
    assert {"kind", "started", "machine", "settings", "versions", "warnings"} <= read.keys()
    figures = read["scenarios"]["one-to-one"]
    assert figures.keys() == {
        "title",
        "rows",
        "medians",
        "ratios",
        "ratios_per_core",
        "goals",
        "faults",
        "notes",
    }
    assert len(figures["rows"]["nats"]) == 2
    assert list(tmp_path.glob("*.tmp")) == []
    assert (tmp_path / "summary.md").read_text(encoding="utf-8") == summary_line(report())
    assert "3.50 × nats" in summary_line(report())


def test_the_ready_line_tells_the_first_address_of_each_key() -> None:
    """Repeated keys and IPv6 are understood; anything else than a ready line is refused."""
    line = "ready router=edge mqtt=127.0.0.1:1883 mqtt=127.0.0.1:1884 link=[::1]:55555\n"
    assert ready_addresses(line) == {"mqtt": ("127.0.0.1", 1883), "link": ("::1", 55555)}
    with pytest.raises(RuntimeError):
        ready_addresses("Error: address in use\n")


def test_scenarios_have_their_own_names() -> None:
    """`--only` can name each of them."""
    names = [scenario.name for scenario in SCENARIOS]
    assert len(set(names)) == len(names)
