"""Compares a report's findings with the faults that were planted.

A finding is right if a fault or a consequence of one agrees with it in kind and in each of the fields FIELDS that the
fault states. A fault is found if at least one finding agrees with it. Findings of severity info may find a fault and
are never wrong.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from vpnrouter.errors import OperationError

FIELDS: Final = ("router", "vpn", "peer_router", "peer_vpn", "bridge", "client", "topic")

LEAST_RECALL: Final = 1.0
LEAST_PRECISION: Final = 0.98
"""What a report must reach."""

_ALL: Final = "all"

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Tally:
    """One kind: faults `planted` and `found`, findings `raised` and `right`."""

    kind: str
    planted: int
    found: int
    raised: int
    right: int

    @property
    def recall(self) -> float:
        """Share of the faults that were found; 1 when there are none."""
        return self.found / self.planted if self.planted else 1.0

    @property
    def precision(self) -> float:
        """Share of the findings that are right; 1 when there are none."""
        return self.right / self.raised if self.raised else 1.0


@dataclass(frozen=True)
class Score:
    """The verdict: all kinds together, each kind, faults missed, findings that are wrong."""

    total: Tally
    kinds: tuple[Tally, ...]
    missed: tuple[Row, ...]
    wrong: tuple[Row, ...]

    @property
    def good(self) -> bool:
        """Whether recall and precision are what they must be."""
        return self.total.recall >= LEAST_RECALL and self.total.precision >= LEAST_PRECISION

    def as_json(self) -> dict[str, Any]:
        """Return the verdict as plain data for JSON, with recall and precision."""
        return {
            "good": self.good,
            "recall": self.total.recall,
            "precision": self.total.precision,
            "kinds": [
                {**vars(kind), "recall": kind.recall, "precision": kind.precision}
                for kind in self.kinds
            ],
            "missed": list(self.missed),
            "wrong": list(self.wrong),
        }


def read(truth: Path, report: Path) -> Score:
    """Return the score of the report in directory `report` against the file `truth`.

    Raises:
        OperationError: one of them cannot be read.
    """
    known = _json(truth)
    findings = _json(report / "findings.json")
    if not isinstance(known, dict) or "faults" not in known:
        raise OperationError(f"{truth} is no truth of a simulation")
    if not isinstance(findings, list):
        raise OperationError(f"{report / 'findings.json'} is no list of findings")
    return compare(known["faults"], known.get("consequences", []), findings)


def compare(faults: Sequence[Row], consequences: Sequence[Row], findings: Iterable[Row]) -> Score:
    """Return the score of `findings`, rows of the report's table of that name."""
    rows = list(findings)
    raised = [row for row in rows if row.get("severity") != "info"]
    agreed: dict[str, list[Row]] = {}
    for row in (*faults, *consequences):
        agreed.setdefault(row["kind"], []).append(row)
    right = [any(_agrees(one, row) for one in agreed.get(row["kind"], ())) for row in raised]
    matched = [any(_agrees(fault, row) for row in rows) for fault in faults]
    names = sorted({row["kind"] for row in (*faults, *raised)})
    kinds = tuple(
        _tally(
            name,
            [done for fault, done in zip(faults, matched, strict=True) if fault["kind"] == name],
            [done for row, done in zip(raised, right, strict=True) if row["kind"] == name],
        )
        for name in names
    )
    return Score(
        total=_tally(_ALL, matched, right),
        kinds=kinds,
        missed=tuple(fault for fault, done in zip(faults, matched, strict=True) if not done),
        wrong=tuple(row for row, done in zip(raised, right, strict=True) if not done),
    )


def _tally(kind: str, found: Sequence[bool], right: Sequence[bool]) -> Tally:
    return Tally(kind, len(found), sum(found), len(right), sum(right))


def _agrees(fault: Row, finding: Row) -> bool:
    return fault["kind"] == finding["kind"] and all(
        finding.get(name) == fault[name] for name in FIELDS if fault.get(name) is not None
    )


def _json(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OperationError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise OperationError(f"{path} is no JSON: {error}") from error
