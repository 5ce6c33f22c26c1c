"""Where a rule stands: from the names of the core's objects to places in the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vpnrouter.explain.explanation import Rule

if TYPE_CHECKING:
    from vpnrouter.config.load import Loaded
    from vpnrouter.config.problem import Path


def rule(loaded: Loaded | None, path: Path, text: str) -> Rule:
    """The rule `text` at `path` of a configuration; of a default, the place of the object it is of."""
    if loaded is None:
        return Rule(text)
    positions = loaded.positions
    written = positions.has(path)
    at = positions.key_at(path)
    return Rule(text, at.file, at.line, at.column, written)


def shown(loaded: Loaded, path: Path) -> str:
    """`key: value` of an attribute as it is in force."""
    value: Any = loaded.config
    for step in path:
        if isinstance(value, dict) or isinstance(step, int):
            value = value[step]
        else:
            value = getattr(value, step)
    if isinstance(value, bool):
        value = "true" if value else "false"
    return f"{path[-1]}: {value}"


def attribute(loaded: Loaded, path: Path) -> Rule:
    """The rule that an attribute is, as `key: value`."""
    return rule(loaded, path, shown(loaded, path))
