"""Message selectors: conditions on a message's properties, the SQL-92 subset of Jakarta Messaging.

`parse_selector` makes a `Selector` of a text, `Selector.matches` asks it about one message, and METER counts
what that cost. The language is that of Jakarta Messaging 3.1, 3.8.1; docs/selectors.md has it with our own rules.
"""

from vpnrouter.selectors.build import parse_selector
from vpnrouter.selectors.conditions import HEADERS, METER, Selector, Text

__all__ = ["HEADERS", "METER", "Selector", "Text", "parse_selector"]
