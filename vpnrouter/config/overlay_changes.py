"""Tells what an overlay changes of a configuration file, one place at a time, and takes changes out of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from vpnrouter.config.document_values import mask, same
from vpnrouter.config.parse import Document, Plain
from vpnrouter.config.problem import Path, Position, show_path


class OverlayChange(NamedTuple):
    """A place that an overlay changes.

    `before` is what the file has there and `after` what is in force, secrets as `***`; None where there is nothing.
    `file` is None where the file has nothing.
    """

    path: Path
    before: Plain
    after: Plain
    overlay: Position
    file: Position | None

    @property
    def name(self) -> str:
        """The place for people, `msg_vpns.blue.queues.orders`."""
        return show_path(self.path)


def overlay_changes(base: Document, overlay: Document) -> list[OverlayChange]:
    """Return what an overlay changes, in its order: values, objects that it adds, and objects that it removes.

    What the file says by now as well, and what it no longer has to be removed, is no change.
    """
    changes: list[OverlayChange] = []
    _compare(mask(base.data), mask(overlay.data), (), base, overlay, changes)
    return changes


def _compare(
    below: Plain,
    patch: Plain,
    path: Path,
    base: Document,
    overlay: Document,
    changes: list[OverlayChange],
) -> None:
    """Add the changes at `path` and below. It recurses to CONFIG_DEPTH."""
    if not isinstance(patch, dict):
        return
    known = below if isinstance(below, dict) else {}
    for key, after in patch.items():
        place = (*path, key)
        before = known.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            _compare(before, after, place, base, overlay, changes)
            continue
        # A masked secret looks like any other one.
        if same(base.value_of(place), overlay.value_of(place)) or (
            after is None and key not in known
        ):
            continue
        changes.append(
            OverlayChange(
                place,
                before,
                after,
                overlay.key_at(place),
                base.key_at(place) if base.has(place) else None,
            )
        )


def left_of(patch: Plain, gone: Collection[Path]) -> dict[str, Plain]:
    """Return a copy of a patch without what stands at these places, and without mappings that this empties."""
    return _left(patch, (), set(gone)) if isinstance(patch, dict) else {}


def _left(patch: dict[str, Plain], path: Path, gone: set[Path]) -> dict[str, Plain]:
    left: dict[str, Plain] = {}
    for key, value in patch.items():
        place = (*path, key)
        if place in gone:
            continue
        if isinstance(value, dict) and value:
            value = _left(value, place, gone)  # noqa: PLW2901 - what is left of it
            if not value:
                continue
        left[key] = value
    return left
