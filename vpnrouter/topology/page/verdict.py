"""What a reader sees first: how the mesh does, and what to change."""

from dataclasses import dataclass
from typing import Final

from vpnrouter.topology.page.contents import Contents
from vpnrouter.topology.page.figures import NONE, count, visible
from vpnrouter.topology.page.kinds import AREAS, area_of, label_of
from vpnrouter.topology.page.places import Places, place_of

FIRST: Final = 6
"""Advice that is open when the page opens."""


@dataclass(frozen=True, kw_only=True)
class Area:
    """How many findings are about one thing, and of which kinds the most are."""

    name: str
    errors: int
    warnings: int
    infos: int
    kinds: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`tone` is error, warning or good; `text` a sentence."""

    tone: str
    text: str
    errors: int
    warnings: int
    infos: int
    areas: list[Area]


@dataclass(frozen=True, kw_only=True)
class Counsel:
    """One piece of advice; `shape` is the id of what it is about in the drawing."""

    rank: int
    action: str
    place: str
    shape: str | None
    topic: str
    advice: str
    evidence: str
    effect: str


def verdict(contents: Contents) -> Verdict:
    """The findings in one sentence and by what they are about."""
    severities = [row["severity"] for row in contents.findings]
    errors, warnings = severities.count("error"), severities.count("warning")
    infos = len(severities) - errors - warnings
    if errors:
        tone, text = "error", f"{_plural(errors, 'error')}, {_plural(warnings, 'warning')}"
    elif warnings:
        tone, text = "warning", f"No errors, {_plural(warnings, 'warning')}"
    else:
        tone, text = "good", "No errors, no warnings"
    return Verdict(
        tone=tone,
        text=text,
        errors=errors,
        warnings=warnings,
        infos=infos,
        areas=[area for area in (_area(contents, name) for name in AREAS) if area is not None],
    )


def counsels(contents: Contents, places: Places) -> list[Counsel]:
    """The advice in its order."""
    ordered = sorted(contents.advice, key=lambda row: (row["rank"] is None, row["rank"] or 0))
    return [
        Counsel(
            rank=at,
            action=visible(row["action"]).replace("_", " ") if row["action"] else NONE,
            place=place_of(row),
            shape=places.shape(row),
            topic=visible(row["topic"]) if row["topic"] else "",
            advice=visible(row["advice"] or ""),
            evidence=visible(row["evidence"] or ""),
            effect=visible(row["effect"] or ""),
        )
        for at, row in enumerate(ordered, 1)
    ]


def _area(contents: Contents, name: str) -> Area | None:
    mine = [row for row in contents.findings if area_of(row["kind"]) == name]
    if not mine:
        return None
    kinds: dict[str, int] = {}
    for row in mine:
        kinds[row["kind"]] = kinds.get(row["kind"], 0) + 1
    severities = [row["severity"] for row in mine]
    errors, warnings = severities.count("error"), severities.count("warning")
    often = sorted(kinds, key=lambda kind: (-kinds[kind], kind))
    return Area(
        name=name,
        errors=errors,
        warnings=warnings,
        infos=len(mine) - errors - warnings,
        kinds=", ".join(f"{label_of(kind)} {count(kinds[kind])}" for kind in often),
    )


def _plural(number: int, noun: str) -> str:
    return f"{count(number)} {noun}" if number == 1 else f"{count(number)} {noun}s"
