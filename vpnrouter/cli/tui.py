"""`vpnrouter tui`: what routers are and do, in the terminal."""

import os
import sys
from typing import Annotated

import typer

from vpnrouter.cli._router_access import DEFAULT_URL, CaFile, PasswordFile, User, password_of

Urls = Annotated[
    list[str] | None,
    typer.Option(
        "--url",
        help="A router's http listener; repeated for several routers. VPNROUTER_URL, else"
        f" {DEFAULT_URL}.",
        show_default=False,
    ),
]


def command(
    url: Urls = None,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Show what routers are and do, live: trouble first, then message VPNs, bridges, queues, clients.

    It talks to the management API only, as the given user. `?` shows the keys.
    """
    if not _has_terminal():
        raise typer.BadParameter("it needs a terminal; vpnrouter show prints the same")
    password = password_of(user, password_file)
    from vpnrouter.management.client import ManagementClient
    from vpnrouter.tui.api import RouterApi
    from vpnrouter.tui.app import TerminalInterface
    from vpnrouter.tui.explainer import explainer_of

    authorities = "" if ca_file is None else str(ca_file)
    urls = list(dict.fromkeys(url or [os.environ.get("VPNROUTER_URL", DEFAULT_URL)]))
    try:
        apis = [RouterApi(each, user, password, ca_file=authorities) for each in urls]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--url") from error

    def clients() -> list[ManagementClient]:
        return [ManagementClient(each, user, password, ca_file=authorities) for each in urls]

    TerminalInterface(apis, explainer=explainer_of(clients)).run()


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()
