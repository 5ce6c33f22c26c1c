"""Where a rule stands, also one that is not written."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import Loaded

from vpnrouter.explain.mesh_index import attribute, rule


def test_written_and_default(pair: Callable[..., list[Loaded]]) -> None:
    """The line of the key; of a default that of the object."""
    loaded = pair()[0]
    path = ("msg_vpns", "blue", "authentication", "basic", "enabled")
    found = attribute(loaded, path)
    assert (found.text, found.line, found.written) == ("enabled: false", 5, True)
    assert found.place == f"{loaded.positions.file}:5"
    missing = attribute(loaded, ("msg_vpns", "blue", "max_msg_size"))
    assert (missing.text, missing.line, missing.written) == ("max_msg_size: 10000000", 4, False)
    assert attribute(loaded, ("listeners", 0, "protocol")).text == "protocol: link"
    assert rule(None, (), "x").place == ""
