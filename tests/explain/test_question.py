"""Wrong questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from explain_asking import ask

from vpnrouter.config.router import Loaded
from vpnrouter.errors import OperationError, TopicError
from vpnrouter.explain.request import (
    Subscriber,
    UsageError,
    parse_place,
    parse_property,
    parse_subscriber,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def test_wrong_questions(pair: Callable[..., list[Loaded]]) -> None:
    """One clear error each."""
    mesh = pair()
    with pytest.raises(UsageError, match="no configuration describes router x; known: core, edge"):
        ask(mesh, at=("x", "blue"))
    with pytest.raises(UsageError, match="router edge has no message VPN red; it has: blue"):
        ask(mesh, at=("edge", "red"))
    with pytest.raises(TopicError):
        ask(mesh, "a/#")
    with pytest.raises(UsageError, match="the mesh has no message VPN edge/red"):
        ask(mesh, subscribers=(Subscriber("edge", "red", (("#", 0),)),))
    with pytest.raises(UsageError, match="size"):
        ask(mesh, size=-1)
    for text in ("\udcff", "x" * 65_536, "\0"):
        with pytest.raises(UsageError, match="a name or property"):
            ask(mesh, properties=(("name", text),))
    with pytest.raises(UsageError, match="mode"):
        ask(mesh, mode="fast")
    with pytest.raises(OperationError, match="both describe router edge"):
        ask([mesh[0], mesh[0]])
    with pytest.raises(TopicError):
        parse_subscriber("edge/blue=a/#/b")
    for text in ("edge", "/blue", "edge/"):
        with pytest.raises(UsageError):
            parse_place(text)
    with pytest.raises(UsageError):
        parse_property("=x")
