"""Goes over the objects of a kind in a configuration, and over what a document says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vpnrouter.settings.kinds import ANY, Form

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vpnrouter.config.problem import Path
    from vpnrouter.settings.kinds import Kind


def objects_in(config: Any, kind: Kind) -> Iterator[tuple[Path, Any]]:  # noqa: ANN401 - models of the kind
    """Yield the path and the model of each object of a kind, in the order of the configuration."""
    holders = [((), config)] if kind.holder is None else objects_in(config, kind.holder)
    for path, holder in holders:
        for key in kind.at:
            holder = getattr(holder, key)  # noqa: PLW2901 - one step further down
        found = holder.items() if kind.form is Form.NAMED else enumerate(holder)
        for name, each in found:
            yield (*path, *kind.at, name), each


def texts_at(data: Any, pattern: tuple[str, ...], path: Path = ()) -> Iterator[tuple[Path, str]]:  # noqa: ANN401 - plain data
    """Yield the path and the text of all that stands at a pattern in a document, also in lists; what has another form
    is passed over.
    """
    if not pattern:
        if isinstance(data, str):
            yield path, data
        elif isinstance(data, (list, tuple)):
            yield from (
                ((*path, at), each) for at, each in enumerate(data) if isinstance(each, str)
            )
        return
    first, *rest = pattern
    steps: list[tuple[str | int, Any]] = []
    if first == ANY and isinstance(data, dict):
        steps = list(data.items())
    elif first == ANY and isinstance(data, list):
        steps = list(enumerate(data))
    elif isinstance(data, dict) and first in data:
        steps = [(first, data[first])]
    for step, each in steps:
        yield from texts_at(each, tuple(rest), (*path, step))
