"""The `vpnrouter` command: a table of commands, each a module that is imported only when it runs.

Data goes to stdout, narration to stderr. Exit codes: 0 done, 1 the thing asked about is not so or
could not be done, 2 wrong use or a refused configuration, 130 interrupted.
"""

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, NamedTuple

import typer

from vpnrouter.build_info import version_line
from vpnrouter.cli._output import print_lines, print_notes
from vpnrouter.errors import ConfigError, OperationError, TopicError, VpnrouterError


class Command(NamedTuple):
    """Where a command lives. `module` has a function `command`, whose docstring is the long help, or a
    `group` of commands.
    """

    module: str
    help: str


COMMANDS: Final[Mapping[str, Command]] = {
    "run": Command("vpnrouter.cli.run", "Serve one router in the foreground."),
    "check": Command("vpnrouter.cli.check", "Check configurations without starting anything."),
    "config": Command("vpnrouter.cli.config", "Show and take back what the API changed."),
    "plan": Command("vpnrouter.cli.plan", "Compare running routers with one mesh file."),
    "apply": Command("vpnrouter.cli.apply", "Make running routers what one mesh file says."),
    "drift": Command("vpnrouter.cli.drift", "Tell whether routers are what one mesh file says."),
    "explain": Command("vpnrouter.cli.explain", "Say where a message goes, and why."),
    "show": Command("vpnrouter.cli.show", "Show what a running router is and does."),
    "tui": Command("vpnrouter.cli.tui", "Look at running routers on a screen."),
    "events": Command("vpnrouter.cli.events", "Show what happened, and follow what happens."),
    "bridge": Command("vpnrouter.cli.bridge", "Enable, disable, pause or reconnect a bridge."),
    "connector": Command(
        "vpnrouter.cli.connector", "Enable, disable, pause or reconnect a connector, or a link."
    ),
    "client": Command("vpnrouter.cli.client", "Disconnect a client."),
    "queue": Command("vpnrouter.cli.queue", "Look into a queue, delete, copy or move messages."),
    "spool": Command("vpnrouter.cli.spool", "Back up, restore and verify the message spool."),
    "pub": Command("vpnrouter.cli.pub", "Publish to an MQTT or AMQP broker."),
    "sub": Command(
        "vpnrouter.cli.sub", "Subscribe at an MQTT or AMQP broker and print what comes."
    ),
    "report": Command("vpnrouter.cli.report", "Report what the topology did, from its traces."),
    "simulate": Command("vpnrouter.cli.simulate", "Make traces of a mesh whose truth is known."),
    "demo": Command("vpnrouter.cli.demo", "Run routers, bridge and report on real flights."),
    "certs": Command("vpnrouter.cli.certs", "Make certificates for a trial of TLS."),
    "hash-password": Command("vpnrouter.cli.hash_password", "Hash a password for a configuration."),
    "completion": Command("vpnrouter.cli.completion", "Print the completion script of a shell."),
}

COMPLETION: Final = "_VPNROUTER_COMPLETE"
"""Environment variable that a shell sets when it wants a line completed: see vpnrouter/cli/completion.py."""

EXIT_FAILED: Final = 1
EXIT_WRONG_USE: Final = 2
EXIT_INTERRUPTED: Final = 130


def main() -> None:
    """Entry point of the `vpnrouter` script."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line (without the program's name) and return its exit code.

    An error raised on purpose becomes lines on stderr. Anything else is a bug and escapes, so that
    its traceback is seen.
    """
    # A shell that completes gives the words of its line in the environment, and no arguments.
    words = _words_to_complete() if COMPLETION in os.environ else arguments
    # No option before the command takes a value: the first word that is no option is the command.
    named = next((word for word in words if not word.startswith("-")), None)
    try:
        application = typer.main.get_command(_application(named))
        application.main(args=list(arguments), prog_name="vpnrouter", complete_var=COMPLETION)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except ConfigError as error:
        print_notes(*error.problems)
        return EXIT_WRONG_USE
    except OperationError as error:
        print_notes(f"vpnrouter: {error.lines[0]}", *error.lines[1:])
        return EXIT_FAILED
    except VpnrouterError as error:
        print_notes(f"vpnrouter: {error}")
        return EXIT_WRONG_USE if isinstance(error, TopicError) else EXIT_FAILED
    return 0


def _application(named: str | None) -> typer.Typer:
    """Build the command line with every command listed and only `named` loaded."""
    application = typer.Typer(
        callback=_top,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name, row in COMMANDS.items():
        if name == named:
            module = importlib.import_module(row.module)
            if hasattr(module, "group"):
                application.add_typer(module.group, name=name, help=row.help)
                continue
            function: Callable[..., object] = module.command
            application.command(name)(function)
        else:
            application.command(name, help=row.help)(_listed_only)
    return application


def _words_to_complete() -> list[str]:
    """The words behind the program's name on the line that a shell wants to have completed."""
    from typer.completion import get_completion_inspect_parameters

    # Its result is for options that this program does not have; it also prepares the completion for each shell.
    get_completion_inspect_parameters()
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    return line.split()[1:]


def _listed_only() -> None:
    """Stand in for a command that this command line does not name; it only shows in the help."""


def _version(value: bool) -> None:
    if value:
        print_lines(version_line())
        raise typer.Exit


def _top(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Say which build this is."
        ),
    ] = False,
) -> None:
    """An open message router: many isolated message VPNs, linked by bridges."""
