"""`vpnrouter queue browse|purge|delete-msg|copy|move|replay`: the messages in the queues of a running router."""

import typer

from vpnrouter.cli._queue_browse import browse
from vpnrouter.cli._queue_delete import delete_msg, purge
from vpnrouter.cli._queue_put import copy, move
from vpnrouter.cli._queue_replay import replay

group = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
group.command("browse")(browse)
group.command("purge")(purge)
group.command("delete-msg")(delete_msg)
group.command("copy")(copy)
group.command("move")(move)
group.command("replay")(replay)
