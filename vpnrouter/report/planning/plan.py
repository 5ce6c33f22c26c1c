"""Makes the tables for planning: a mesh without parts of it or with more load, what depends on what, and growth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pyspark.sql import DataFrame

from vpnrouter.limits import REPORT_ROUTE_PAIRS, REPORT_ROUTES
from vpnrouter.report.change.configured import Configured
from vpnrouter.report.planning.blast_radius import blast_radius
from vpnrouter.report.planning.growth import growth, levels, whole_stretches
from vpnrouter.report.planning.questions import Questions
from vpnrouter.report.planning.routes import clients, deliveries, endpoints, published, routes
from vpnrouter.report.planning.traffic import Observed, Traffic
from vpnrouter.report.planning.what_if import what_if
from vpnrouter.report.schema import Rows


class Planned(NamedTuple):
    """Tables by name, and sentences about what they leave out."""

    tables: dict[str, Rows]
    notes: list[str]


def plan(
    digests: Mapping[str, DataFrame],
    tables: Mapping[str, Rows],
    span: tuple[int, int],
    width_ns: int,
    mesh: Configured | None,
    questions: Questions,
) -> Planned:
    """Make the tables for planning from the digests paths, delays, places, usage, endpoints and losses, and from the
    tables nodes, edges and rates.

    `span` is the first and last time observed, nanoseconds since 1970; `width_ns` the length of a stretch. `mesh`
    has the quotas of queues. `questions` are answered alone, if there are any.
    """
    observed = Observed(
        routes(digests["paths"]),
        deliveries(digests["delays"]),
        published(digests["places"]),
        tables["rates"],
    )
    traffic = Traffic(tables["nodes"], tables["edges"], observed, span, width_ns)
    answers = what_if(traffic, questions)
    notes = [*_left_out(observed), *answers.notes]
    made = {
        "what_if": answers.rows,
        "blast_radius": blast_radius(
            traffic, clients(digests["usage"]), endpoints(digests["endpoints"])
        ),
        "growth": growth(
            traffic,
            levels(digests["endpoints"], digests["losses"]),
            {} if mesh is None else mesh.quotas,
            whole_stretches(span, width_ns),
        ),
    }
    return Planned(made, notes)


def _left_out(observed: Observed) -> list[str]:
    notes = []
    if len(observed.routes) >= REPORT_ROUTES:
        notes.append(
            f"planning: of the ways of messages, the {REPORT_ROUTES:,} of most messages count"
        )
    if len(observed.deliveries) >= REPORT_ROUTE_PAIRS:
        notes.append(
            f"planning: of the pairs of message VPNs, the {REPORT_ROUTE_PAIRS:,} with most messages count"
        )
    return notes
