"""The `select` of a request: which attributes the rows of the answer have.

select=bridgeName,inbound*      these alone
select=-average*                all but these
select=rx*,-rxByte*             these without those
"""

from collections.abc import Collection

from vpnrouter import limits
from vpnrouter.management.faults import invalid
from vpnrouter.management.where import matches


def parse_select(text: str, known: Collection[str]) -> frozenset[str] | None:
    """The names selected, None for all; raises RequestError for a pattern that fits no attribute."""
    if not text:
        return None
    patterns = text.split(",")
    if len(patterns) > limits.MANAGEMENT_SELECTED:
        raise invalid(f"select: more than {limits.MANAGEMENT_SELECTED} names")
    chosen: set[str] = set()
    dropped: set[str] = set()
    for written in patterns:
        pattern = written.removeprefix("-")
        found = {name for name in known if matches(pattern, name)}
        if not found:
            raise invalid(f"select: there is no attribute {pattern}")
        (dropped if written.startswith("-") else chosen).update(found)
    if all(written.startswith("-") for written in patterns):
        chosen = set(known)
    return frozenset(chosen - dropped)
