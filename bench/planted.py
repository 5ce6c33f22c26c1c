"""Checks that the report finds the planted faults and nothing else: `python -m bench.planted`.

For each seed a mesh is simulated with faults of every kind, its traces are analysed, and the findings are
compared with the truth. All seeds share one Spark session, so that Java starts once.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from vpnrouter.report.engine.progress import NoProgress
from vpnrouter.report.engine.session import spark_session
from vpnrouter.report.jobs import run_jobs
from vpnrouter.report.request import ReportRequest
from vpnrouter.report.traces.inventory import take_inventory
from vpnrouter.simulation.score import LEAST_PRECISION, Score, compare
from vpnrouter.simulation.simulate import Options, all_faults, simulate


def main() -> None:
    """Print a line a seed, then both figures; exit code 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--rows", type=int, default=100_000, help="trace rows of each mesh")
    parser.add_argument("--vpns", type=int, default=160, help="message VPNs of each mesh")
    parser.add_argument("--sample", type=float, default=1.0, help="share of messages traced")
    parser.add_argument("--none", action="store_true", help="plant nothing")
    given = parser.parse_args()
    planted = found = raised = right = 0
    with (
        tempfile.TemporaryDirectory(prefix="vpnrouter-planted-") as folder,
        spark_session("local[*]", log=Path(folder) / "spark.log") as spark,
    ):
        for seed in range(given.first, given.first + given.seeds):
            place = Path(folder) / str(seed)
            truth = simulate(
                Options(
                    vpns=given.vpns,
                    rows=given.rows,
                    sample=given.sample,
                    faults=() if given.none else all_faults(given.vpns),
                    seed=seed,
                    configs=False,
                ),
                place,
            )
            asked = ReportRequest(traces=[str(place / "traces")], output=str(place / "report"))
            analysis, _ = run_jobs(spark, take_inventory(asked.traces), asked, NoProgress())
            score = compare(truth["faults"], truth["consequences"], analysis.tables["findings"])
            planted += score.total.planted
            found += score.total.found
            raised += score.total.raised
            right += score.total.right
            print(f"seed {seed}: {_line(score)}", flush=True)
    recall = found / planted if planted else 1.0
    precision = right / raised if raised else 1.0
    print(f"{planted} faults, {raised} findings: recall {recall:.4f}, precision {precision:.4f}")
    sys.exit(0 if recall >= 1.0 and precision >= LEAST_PRECISION else 1)


def _line(score: Score) -> str:
    wrong = [
        " ".join(f"{name}={value}" for name, value in row.items() if value is not None)
        for row in score.wrong
    ]
    lost = [" ".join(f"{name}={value}" for name, value in row.items()) for row in score.missed]
    total = score.total
    return "; ".join(
        [
            f"{total.found} of {total.planted} found, {total.right} of {total.raised} right",
            *(f"missed {text}" for text in lost),
            *(f"wrong {text}" for text in wrong),
        ]
    )


if __name__ == "__main__":
    main()
