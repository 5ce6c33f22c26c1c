"""Three-valued logic: numbers in the order in which AND is the least and OR the greatest."""

from typing import Final

FALSE: Final = 0
UNKNOWN: Final = 1
TRUE: Final = 2
# NOT is TRUE minus the value: it exchanges the ends and leaves UNKNOWN where it is.


def truth(holds: bool) -> int:
    """TRUE or FALSE."""
    return TRUE if holds else FALSE


def read_flag(text: str) -> int:
    """What a property's text says: TRUE or FALSE in any case of letters, UNKNOWN for all else."""
    size = len(text)
    if size == 4 and text.lower() == "true":
        return TRUE
    if size == 5 and text.lower() == "false":
        return FALSE
    return UNKNOWN
