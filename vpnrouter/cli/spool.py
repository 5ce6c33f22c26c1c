"""`vpnrouter spool backup|restore|verify`: the message spool as files."""

import typer

from vpnrouter.cli._spool_backup import backup
from vpnrouter.cli._spool_restore import restore
from vpnrouter.cli._spool_verify import verify

group = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
group.command("backup")(backup)
group.command("restore")(restore)
group.command("verify")(verify)
