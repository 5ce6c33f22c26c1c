"""A selector that is ready to be asked."""

from collections.abc import Mapping
from typing import Final, final

from vpnrouter.selectors.conditions import Condition
from vpnrouter.selectors.truth import TRUE

HEADERS: Final = frozenset({"JMSCorrelationID", "JMSDestination", "JMSReplyTo", "JMSType"})
"""Names that stand for a part of the message itself and never for a user property."""


@final
class Selector:
    """What `parse_selector` makes of a text; it does not change.

    `text` is the text as it was written, `names` the identifiers in it: those of the properties
    that `matches` looks at.
    """

    __slots__ = ("_condition", "names", "text")

    def __init__(self, text: str, names: frozenset[str], condition: Condition) -> None:
        self.text = text
        self.names = names
        self._condition = condition

    def matches(self, properties: Mapping[str, str]) -> bool:
        """True when the condition holds of a message; unknown is no match.

        `properties` holds the message's user properties by name, for a repeated name the first
        value, and under the names of HEADERS those parts of the message that it has.
        """
        return self._condition.test(properties) == TRUE

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"
