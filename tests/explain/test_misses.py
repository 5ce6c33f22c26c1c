"""Who does not get it, told and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explain_asking import ask, steps

from vpnrouter.config.router import Loaded
from vpnrouter.explain.request import ENDPOINT

if TYPE_CHECKING:
    from collections.abc import Callable


def test_many_misses_are_counted(pair: Callable[..., list[Loaded]]) -> None:
    """Twenty of a kind; `all_misses` tells all."""
    queues = "    queues: {" + ", ".join(f"q{at}: {{}}" for at in range(50)) + "}\n"
    mesh = pair(queues)
    few = [one for one in steps(ask(mesh)) if one.kind == ENDPOINT]
    assert len(few) == 20
    assert [one for one in steps(ask(mesh)) if "30 queue or topic endpoints more" in one.text]
    assert len([one for one in steps(ask(mesh, all_misses=True)) if one.kind == ENDPOINT]) == 50
