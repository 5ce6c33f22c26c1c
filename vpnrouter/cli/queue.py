"""`vpnrouter queue browse|purge|delete-msg|copy|move|replay`: the messages in a queue of a running router."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from vpnrouter.cli._completion import queue_names
from vpnrouter.cli._confirm import agreed
from vpnrouter.cli._output import print_bytes, print_json, print_lines, print_notes
from vpnrouter.cli._router_access import (
    DEFAULT_URL,
    CaFile,
    PasswordFile,
    Url,
    User,
    connect,
    msg_vpn_of,
    msg_vpn_option,
)
from vpnrouter.text import counted
from vpnrouter.units import SECOND_NS

Name = Annotated[
    str, typer.Argument(help="The queue.", show_default=False, autocompletion=queue_names)
]

MsgVpn = Annotated[str, msg_vpn_option("queue")]

MsgIds = Annotated[
    list[int] | None,
    typer.Option("--msg-id", metavar="ID", help="Only this message; may be given several times."),
]


COUNT: Final = 20


def browse(
    name: Name,
    msg_vpn: MsgVpn = "",
    count: Annotated[int, typer.Option(min=1, help="Messages to show.")] = COUNT,
    after: Annotated[int, typer.Option(metavar="ID", min=0, help="Begin behind this message.")] = 0,
    payload: Annotated[
        int | None,
        typer.Option(
            metavar="ID", min=0, help="Write the payload of this message and nothing else."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all attributes as JSON.")] = False,
    url: Url = DEFAULT_URL,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Show the messages of a queue, the oldest first. They stay there, and consumers notice nothing.

    Exit code 0 when they were shown, also when there are none, 1 when there is no such queue or
    message.
    """
    with connect(url, user, password_file, ca_file) as client:
        place = msg_vpn_of(client.queues(msg_vpn), "queue", name, msg_vpn)
        if payload is not None:
            from vpnrouter.cli.sub import shown_payload

            found = client.payload(place, name, payload)
            # Control characters must not reach a terminal.
            print_bytes(shown_payload(found) if sys.stdout.isatty() else found)
            return
        rows = client.msgs(place, name, count, after)
    if as_json:
        print_json(rows, 2)
    elif not rows:
        print_notes(f"vpnrouter: no messages in queue {name}")
    else:
        from vpnrouter.cli._listing import Listing
        from vpnrouter.cli._tables import MSGS

        Listing(sys.stdout, MSGS).overview(rows)


def purge(
    name: Name,
    msg_vpn: MsgVpn = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    url: Url = DEFAULT_URL,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Delete all messages of a queue but those that a consumer holds.

    Exit code 0 when they are gone, also from the disk, 1 when that could not be done or was not
    wanted.
    """
    with connect(url, user, password_file, ca_file) as client:
        place = msg_vpn_of(client.queues(msg_vpn), "queue", name, msg_vpn)
        question = f"Delete all messages of queue {name} in message VPN {place}?"
        if not yes and not agreed(question):
            raise typer.Abort
        count = client.delete_msgs(place, name)
    _print_deleted(as_json, count)


def delete_msg(
    name: Name,
    msg_ids: Annotated[
        list[int], typer.Argument(metavar="ID...", help="The messages.", show_default=False)
    ],
    msg_vpn: MsgVpn = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    url: Url = DEFAULT_URL,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Delete messages of a queue by their ids, as `queue browse` shows them.

    Exit code 0 when all of them were there and are gone, 1 when not.
    """
    with connect(url, user, password_file, ca_file) as client:
        place = msg_vpn_of(client.queues(msg_vpn), "queue", name, msg_vpn)
        count = client.delete_msgs(place, name, msg_ids)
    _print_deleted(as_json, count)
    if count < len(set(msg_ids)):
        raise typer.Exit(1)


def _print_deleted(as_json: bool, count: int) -> None:
    if as_json:
        print_json({"msgCount": count})
    else:
        print_lines(f"deleted {counted(count, 'message')}")


To = Annotated[str, typer.Argument(help="The queue to put them into.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def copy(
    name: Name,
    to: To,
    msg_id: MsgIds = None,
    msg_vpn: MsgVpn = "",
    as_json: AsJson = False,
    url: Url = DEFAULT_URL,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Put the messages of a queue, or those named, into another queue as well.

    Without --msg-id all but those that a consumer holds. Exit code 0 when the other queue has them,
    1 when it did not take all.
    """
    _put(
        name,
        to,
        msg_id,
        msg_vpn=msg_vpn,
        as_json=as_json,
        url=url,
        user=user,
        password_file=password_file,
        ca_file=ca_file,
        move=False,
    )


def move(
    name: Name,
    to: To,
    msg_id: MsgIds = None,
    msg_vpn: MsgVpn = "",
    as_json: AsJson = False,
    url: Url = DEFAULT_URL,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Put the messages of a queue, or those named, into another queue instead: each is in one of both.

    For example vpnrouter queue move '#DEAD_MSG_QUEUE' orders once what kept them from being consumed
    is put right. Without --msg-id all but those that a consumer holds. Exit code 0 when the other
    queue has them, 1 when it did not take all.
    """
    _put(
        name,
        to,
        msg_id,
        msg_vpn=msg_vpn,
        as_json=as_json,
        url=url,
        user=user,
        password_file=password_file,
        ca_file=ca_file,
        move=True,
    )


def _put(
    name: str,
    to: str,
    msg_ids: list[int] | None,
    msg_vpn: str,
    as_json: bool,
    url: str,
    user: str,
    password_file: Path | None,
    ca_file: Path | None,
    *,
    move: bool,
) -> None:
    with connect(url, user, password_file, ca_file) as client:
        place = msg_vpn_of(client.queues(msg_vpn), "queue", name, msg_vpn)
        count = client.put_msgs(place, name, to, msg_ids, move=move)
    if as_json:
        print_json({"msgCount": count})
    else:
        print_lines(f"{'moved' if move else 'copied'} {counted(count, 'message')} to {to}")
    if msg_ids and count < len(set(msg_ids)):
        raise typer.Exit(1)


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
        place = msg_vpn_of(client.queues(msg_vpn), "queue", name, msg_vpn)
        if cancel:
            client.cancel_replay(place, name)
        else:
            client.start_replay(place, name, log, from_time, after)
    if as_json:
        print_json({"msgVpnName": place, "queueName": name, "cancelled": cancel})
    else:
        what = "ended the replay" if cancel else "began a replay"
        print_lines(f"{what} to queue {name} in message VPN {place}")


def _seconds(text: str) -> int:
    from vpnrouter.core.guaranteed.replay import parse_moment

    try:
        return max(1, parse_moment(text) // SECOND_NS)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--from") from error


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
