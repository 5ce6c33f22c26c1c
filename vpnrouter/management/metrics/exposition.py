"""Writes the page of metrics in portions, between which the router goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, final

import trio

from vpnrouter import limits
from vpnrouter.management.metrics.families import (
    RX,
    TX,
    LeftOutFigures,
    ListenerFigures,
    LoopFigures,
    ProcessFigures,
    RouterFigures,
    SpoolFigures,
    TraceFigures,
    UploadFigures,
    head,
    labelled,
    samples,
    section_of,
)
from vpnrouter.management.metrics.source import OBJECTS, Figures
from vpnrouter.settings.shown import Family

WHOLE: Final = frozenset({"", "direction"})
"""Splits of which each object has as many samples as the others, so that a template can be kept."""


@final
class Sheet:
    """One section: `families` in the order of a row's values, behind `labels` values that are labels."""

    def __init__(self, families: Sequence[Family], labels: int) -> None:
        self._families = families
        self._place = labels
        self._known: list[str] = []
        self._templates: list[str] = []

    def write(
        self, labels: list[str], rows: Sequence[Sequence[object]]
    ) -> Iterator[tuple[Family, str]]:
        """Yield each family with its samples; of each row, `labels` has what it is called."""
        if labels != self._known:
            self._known = labels
            self._templates = [self._template(family) for family in self._families]
        columns = list(zip(*rows, strict=True))
        for place, (family, template) in enumerate(
            zip(self._families, self._templates, strict=True), self._place
        ):
            column = columns[place]
            if family.sparse and not any(column):
                continue
            if family.split == "direction" and template:
                column = tuple([one for pair in column for one in pair])
            if template and None not in column:
                yield family, template % column
            else:
                yield family, samples(family, labels, columns[place])

    def _template(self, family: Family) -> str:
        """Return all samples with places for their values; "" where their number is not known before."""
        if family.sparse or family.split not in WHOLE:
            return ""
        name = family.name
        known = [labels.replace("%", "%%") for labels in self._known]
        if family.split:
            return "".join([f"{name}{labels}{way}}} %s\n" for labels in known for way in (RX, TX)])
        return "".join([f"{name}{labels}}} %s\n" for labels in known])


PORTION_NS: Final = 3_000_000
"""How long work goes on before the router's other tasks have their turn."""

LOOK: Final = 8
"""Rows between two looks at the clock."""

SHEETS: Final = 32
"""Sections whose templates are kept: all of them for whoever sees everything, and for some users who see less."""


class Rows(NamedTuple):
    """Of each object its labels as text, and its numbers."""

    labels: list[str]
    figures: list[Sequence[object]]


SECTIONS: Final = {
    "router": section_of(RouterFigures),
    "process": section_of(ProcessFigures),
    "loop": section_of(LoopFigures),
    "listener": section_of(ListenerFigures),
    "spool": section_of(SpoolFigures),
    "trace": section_of(TraceFigures),
    "trace_upload": section_of(UploadFigures),
    **{kind.section: section for kind, section in OBJECTS.items()},
    "left_out": section_of(LeftOutFigures),
}
"""Everything that a page may have, in its order."""


@final
class Turns:
    """Gives the router's other tasks their turn when this one has had its portion."""

    def __init__(self, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock_ns = clock_ns
        self._until_ns = clock_ns() + PORTION_NS

    @property
    def over(self) -> bool:
        """Whether `give` is due."""
        return self._clock_ns() >= self._until_ns

    async def give(self) -> None:
        """Let other tasks run."""
        await trio.lowlevel.checkpoint()
        self._until_ns = self._clock_ns() + PORTION_NS


@final
class Exposition:
    """Makes pages. Keeps the labels of objects as text between two scrapes."""

    def __init__(self) -> None:
        self._labels: dict[tuple[str, ...], str] = {}
        self._sheets: dict[tuple[str, str], Sheet] = {}
        # One at a time: more would share the loop's time and all be late.
        self.making = trio.Lock()

    async def page(
        self,
        source: Figures,
        router: str,
        sees: Callable[[str], bool] | None,
        *,
        user: str = "",
        openmetrics: bool = False,
    ) -> str:
        """Return everything of a router; with `sees` only what belongs to message VPNs that it is true for.

        `user` tells those apart who see different things.
        """
        if len(self._labels) > limits.METRICS_LABELS:
            self._labels.clear()
        own = "{" + labelled(("router",), (router,))
        writer = _Page(self, own, user, openmetrics=openmetrics)
        if sees is None:
            alone: tuple[tuple[str, Sequence[object] | None], ...] = (
                ("router", source.router()),
                ("process", source.process()),
                ("spool", source.spool()),
                ("trace", source.traces()),
                ("trace_upload", source.trace_uploads()),
            )
            for name, figures in alone:
                if figures is not None:
                    await writer.write(name, Rows([own], [figures]))
            await writer.write_all("loop", source.loop(), limits.METRICS_LABELS)
            await writer.write_all("listener", source.listeners(), limits.METRICS_LABELS)
            sees = _all
        left_out = Rows([], [])
        for kind in OBJECTS:
            rows = source.rows(kind, sees)
            beyond = await writer.write_all(kind.section, rows, kind.metrics_most)
            left_out.labels.append(f'{own},kind="{kind.section}"')
            left_out.figures.append((kind.section, beyond))
        await writer.write("left_out", left_out)
        if openmetrics:
            writer.parts.append("# EOF\n")
        return "".join(writer.parts)

    def sheet(self, user: str, name: str) -> Sheet:
        """Return a writer of a section for a user."""
        cached = self._sheets.get((user, name))
        if cached is None:
            if len(self._sheets) >= SHEETS:
                del self._sheets[next(iter(self._sheets))]
            section = SECTIONS[name]
            cached = Sheet(list(section.families.values()), len(section.labels))
            self._sheets[user, name] = cached
        return cached

    def labels_of(self, own: str, name: str, figures: Sequence[Any]) -> str:
        """Return the labels of an object, which its row begins with."""
        names = SECTIONS[name].labels
        key = (name, *figures[: len(names)])
        known = self._labels.get(key)
        if known is None:
            known = f"{own},{labelled(names, key[1:])}"
            self._labels[key] = known
        return known


@final
class _Page:
    """One page in the making."""

    def __init__(self, exposition: Exposition, own: str, user: str, *, openmetrics: bool) -> None:
        self.parts: list[str] = []
        self._exposition = exposition
        self._own = own
        self._user = user
        self._openmetrics = openmetrics
        self._turns = Turns()

    async def write_all(self, name: str, figures: Iterator[Sequence[Any]], most: int) -> int:
        """Write the rows of objects; return how many there are beyond `most`."""
        rows = Rows([], [])
        beyond = 0
        labels_of = self._exposition.labels_of
        for count, each in enumerate(figures):
            if count >= most:
                beyond += 1
            else:
                rows.labels.append(labels_of(self._own, name, each))
                rows.figures.append(each)
            if count % LOOK == 0 and self._turns.over:
                await self._turns.give()
        await self.write(name, rows)
        return beyond

    async def write(self, name: str, rows: Rows) -> None:
        """Write a section."""
        if not rows.labels:
            return
        for family, text in self._exposition.sheet(self._user, name).write(*rows):
            if text:
                self.parts.append(head(family, openmetrics=self._openmetrics))
                self.parts.append(text)
            if self._turns.over:
                await self._turns.give()


def _all(_: str) -> bool:
    return True
