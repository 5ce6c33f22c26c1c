"""`vpnrouter run CONFIG`: serve one router in the foreground."""

from pathlib import Path
from typing import Annotated

import typer

from vpnrouter.cli._output import print_notes


def command(
    config: Annotated[Path, typer.Argument(help="The router's YAML file.", show_default=False)],
    no_overlay: Annotated[
        bool,
        typer.Option(
            "--no-overlay",
            help="Leave out what was changed by the management API, and let nobody change it.",
        ),
    ] = False,
) -> None:
    """Serve the router that CONFIG describes until SIGTERM or SIGINT; SIGHUP reads CONFIG again.

    What was changed by the management API lies over CONFIG in overlay.yaml of the router's data directory.

    Prints one line on stdout when every listener is bound:
    ready router=NAME mqtt=HOST:PORT link=HOST:PORT, with repeated keys for several listeners.
    """
    from vpnrouter.config.load import load

    loaded = load(str(config), overlay=not no_overlay)
    for warning in loaded.warnings:
        print_notes(warning)
    if loaded.overlay is not None:
        print_notes(
            f"vpnrouter: {loaded.overlay.file} lies over {config}: what was changed by the management API counts more"
            " than the file; --no-overlay leaves it out"
        )
    from vpnrouter.server.run import StartFiles, run

    run(StartFiles(str(config), loaded, not no_overlay))
