"""Attributes that a request selects of the rows of its answer.

select=bridgeName,inbound*      these alone
select=-average*                all but these
select=rx*,-rxByte*             these without those
"""

from __future__ import annotations

from collections.abc import Collection

from vpnrouter import limits
from vpnrouter.management.answers.conditions import matches
from vpnrouter.management.answers.rows import Row
from vpnrouter.management.errors import invalid


def parse_select(text: str, attributes: Collection[str]) -> frozenset[str] | None:
    """Return the names selected, None for all; raises RequestError for a pattern that fits no attribute."""
    if not text:
        return None
    patterns = text.split(",")
    if len(patterns) > limits.MANAGEMENT_SELECTED:
        raise invalid(f"select: more than {limits.MANAGEMENT_SELECTED} names")
    chosen: set[str] = set()
    dropped: set[str] = set()
    for pattern_text in patterns:
        pattern = pattern_text.removeprefix("-")
        names = {name for name in attributes if matches(pattern, name)}
        if not names:
            raise invalid(f"select: there is no attribute {pattern}")
        (dropped if pattern_text.startswith("-") else chosen).update(names)
    if all(pattern_text.startswith("-") for pattern_text in patterns):
        chosen = set(attributes)
    return frozenset(chosen - dropped)


def cut(row: Row, selected: frozenset[str] | None) -> Row:
    """Return a row with the selected attributes alone, all of them for None."""
    # What is no attribute of the kind, such as the remotes inside a bridge, goes with "all" alone.
    if selected is None:
        return row
    return {name: value for name, value in row.items() if name in selected}
