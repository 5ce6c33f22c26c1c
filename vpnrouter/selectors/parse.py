"""Text to selector."""

from typing import Any

from vpnrouter.errors import SelectorError
from vpnrouter.limits import SELECTOR_BYTES
from vpnrouter.selectors.build import build
from vpnrouter.selectors.expected import unexpected
from vpnrouter.selectors.grammar import parser
from vpnrouter.selectors.selector import Selector


def parse_selector(text: str) -> Selector:
    """The selector that a text describes.

    Raises SelectorError, one line with the position, where the text breaks the grammar of
    docs/selectors.md, compares what can not be equal, names a header that messages do not have here,
    or goes beyond SELECTOR_BYTES, SELECTOR_DEPTH or SELECTOR_NUMBER_LENGTH.
    """
    _check_size(text)
    # Not at the top: it is the first use that loads lark.
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    try:
        tree = parser().parse(text)
    except UnexpectedCharacters as error:
        at = error.pos_in_stream or 0
        found = text[at]
    except UnexpectedToken as error:
        token = error.token
        at = len(text) if token.type == "$END" else token.start_pos or 0
        found = "" if token.type == "$END" else str(token)
    else:
        names, condition = build(tree, text)
        return Selector(text, names, condition)
    raise SelectorError(unexpected(found, _accepted(text[:at])), at + 1)


def _accepted(before: str) -> frozenset[str]:
    """The terminals that may follow a text.

    Found out anew: with the unexpected one in sight, the parser has already closed what it could.
    """
    steps: Any = parser().parse_interactive(before)
    steps.exhaust_lexer()
    return frozenset(steps.accepts())


def _check_size(text: str) -> None:
    """Raise SelectorError at the character that goes beyond SELECTOR_BYTES."""
    encoded = text[: SELECTOR_BYTES + 1].encode("utf-8", "surrogatepass")
    if len(encoded) > SELECTOR_BYTES:
        kept = encoded[:SELECTOR_BYTES].decode("utf-8", "ignore")
        message = f"expected a selector of at most {SELECTOR_BYTES} bytes, this one is longer"
        raise SelectorError(message, len(kept) + 1)
