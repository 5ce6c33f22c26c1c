"""`vpnrouter queue replay NAME`: give a queue once more what the replay log has."""

from typing import Annotated, Final

import typer

from vpnrouter.cli._queue_place import MsgVpn, Name, find
from vpnrouter.cli._router_access import DEFAULT_URL, CaFile, PasswordFile, Url, User, connect
from vpnrouter.cli._told import say, say_json

SECOND_NS: Final = 1_000_000_000


def replay(
    name: Name,
    begin: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="TIME",
            help="What was published since then: 2026-01-31T12:00:00Z, or 2026-01-31 (UTC).",
        ),
    ] = "",
    after: Annotated[
        int, typer.Option(metavar="ID", min=0, help="What was published behind this message.")
    ] = 0,
    log: Annotated[
        str, typer.Option(metavar="LOG", help="The replay log; otherwise whichever there is.")
    ] = "",
    cancel: Annotated[
        bool, typer.Option("--cancel", help="End the replay that runs instead.")
    ] = False,
    msg_vpn: MsgVpn = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    url: Url = DEFAULT_URL,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Start a replay: an exclusive queue gets once more what was logged for it.

    Without --from and --after all of it. What the replay brings comes ahead of all that waits. Exit
    code 0 when it has begun, 1 when it was refused.
    """
    if bool(begin) + bool(after) + cancel > 1:
        raise typer.BadParameter("only one of them", param_hint="--from, --after, --cancel")
    from_time = _seconds(begin) if begin else 0
    with connect(url, user, password_file, ca_file) as client:
        place = find(client, name, msg_vpn)
        if cancel:
            client.cancel_replay(place, name)
        else:
            client.start_replay(place, name, log, from_time, after)
    if as_json:
        say_json({"msgVpnName": place, "queueName": name, "cancelled": cancel})
    else:
        what = "ended the replay" if cancel else "began a replay"
        say(f"{what} to queue {name} in message VPN {place}")


def _seconds(text: str) -> int:
    from vpnrouter.core.guaranteed.replay import parse_moment

    try:
        return max(1, parse_moment(text) // SECOND_NS)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--from") from error
