"""Text to selector."""

from typing import Final

from vpnrouter.errors import SelectorError
from vpnrouter.limits import SELECTOR_BYTES, SELECTOR_CACHED_LENGTH, SELECTORS_CACHED
from vpnrouter.selectors.build import build
from vpnrouter.selectors.grammar import parse
from vpnrouter.selectors.selector import Selector

_KNOWN: Final[dict[str, Selector]] = {}
"""Selectors by their text: they do not change, and many clients ask with the same few."""


def parse_selector(text: str) -> Selector:
    """The selector that a text describes.

    Raises SelectorError, one line with the position, where the text breaks the grammar of
    docs/selectors.md, compares what can not be equal, names a header that messages do not have here,
    or goes beyond SELECTOR_BYTES, SELECTOR_DEPTH or SELECTOR_NUMBER_LENGTH.
    """
    known = _KNOWN.get(text)
    if known is not None:
        return known
    _check_size(text)
    names, condition = build(parse(text), text)
    selector = Selector(text, names, condition)
    if len(text) <= SELECTOR_CACHED_LENGTH:
        if len(_KNOWN) >= SELECTORS_CACHED:
            _KNOWN.clear()
        _KNOWN[text] = selector
    return selector


def _check_size(text: str) -> None:
    """Raise SelectorError at the character that goes beyond SELECTOR_BYTES."""
    encoded = text[: SELECTOR_BYTES + 1].encode("utf-8", "surrogatepass")
    if len(encoded) > SELECTOR_BYTES:
        kept = encoded[:SELECTOR_BYTES].decode("utf-8", "ignore")
        message = f"expected a selector of at most {SELECTOR_BYTES} bytes, this one is longer"
        raise SelectorError(message, len(kept) + 1)
