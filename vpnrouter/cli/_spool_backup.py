"""`vpnrouter spool backup CONFIG DIRECTORY`: a copy of a spool, of a running router or a stopped one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vpnrouter.cli._router_access import CaFile, PasswordFile, User, connect
from vpnrouter.cli._spool_place import Config, config_of, is_running, spool_of
from vpnrouter.cli._told import say, say_json

if TYPE_CHECKING:
    from vpnrouter.config.router import RouterConfig


def backup(
    config: Config,
    directory: Annotated[
        Path,
        typer.Argument(help="Where to; it must not be there yet.", show_default=False),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    url: Annotated[
        str,
        typer.Option(
            envvar="VPNROUTER_URL",
            help="The router's http listener, if it runs.",
            show_default="the first one of CONFIG",
        ),
    ] = "",
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Copy the spool of the router that CONFIG describes, as of one moment.

    A running router is asked to do it, through its management, while messages go on; it writes to
    DIRECTORY on its own machine. The spool of a stopped one is opened here. Exit code 0 when the
    copy is complete and on disk, 1 when it could not be made.
    """
    written = config_of(config)
    spool = spool_of(written)
    target = directory.absolute()
    running = is_running(spool)
    if running:
        with connect(url or _listener(written), user, password_file, ca_file) as client:
            client.back_up(str(target))
    else:
        from vpnrouter.spool.rocks_store import RocksStore

        store = RocksStore(spool, create=False)
        try:
            store.backup(target)
        finally:
            store.close()
    if as_json:
        say_json({"directory": str(target), "running": running})
    else:
        how = "while it runs" if running else "stopped"
        say(f"{target}: spool of router {written.router.name}, {how}")


def _listener(config: "RouterConfig") -> str:
    """Where the router's management answers, as far as the configuration tells."""
    for listener in config.listeners:
        address = listener.address
        if listener.enabled and listener.protocol in {"http", "https"} and address.port:
            return f"{listener.protocol}://{address}"
    raise typer.BadParameter(
        "the router runs, and its configuration names no http listener with a port; where is it?",
        param_hint="--url",
    )
