"""Answers the explain screen from the routers' live configurations."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from io import StringIO
from typing import Final, NamedTuple

from rich.console import Console

from vpnrouter.management.client import ManagementClient

WIDTH: Final = 400
"""Columns of a line; longer ones are folded. The screen cuts what does not fit."""


class Question(NamedTuple):
    """A message of `mode` (`direct` or `persistent`) on `topic`, published in a VPN of a router by its name."""

    router: str
    msg_vpn: str
    topic: str
    mode: str


Explainer = Callable[[Question], Awaitable[Sequence[str]]]
"""Lines of the explanation; raises VpnrouterError for why there is none, in one line."""


def explainer_of(clients: Callable[[], Sequence[ManagementClient]]) -> Explainer:
    """Explains over the routers that `clients` opens. It works in a thread: keys are not kept waiting."""

    async def explained(question: Question) -> Sequence[str]:
        return await asyncio.to_thread(_explain, clients, question)

    return explained


def _explain(clients: Callable[[], Sequence[ManagementClient]], question: Question) -> list[str]:
    # It brings the router's data plane: only who asks for it pays.
    from vpnrouter.explain.explain import explain
    from vpnrouter.explain.live import live_mesh
    from vpnrouter.explain.render import tree
    from vpnrouter.explain.request import ExplainRequest as Asked

    with ExitStack() as stack:
        live = live_mesh([stack.enter_context(client) for client in clients()])
    asked = Asked(question.router, question.msg_vpn, question.topic, question.mode)
    buffer = StringIO()
    console = Console(file=buffer, width=WIDTH, no_color=True, force_terminal=False)
    console.print(tree(explain(live.mesh, asked, live)))
    return [line.rstrip() for line in buffer.getvalue().splitlines()]
