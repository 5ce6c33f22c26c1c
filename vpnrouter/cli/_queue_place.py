"""Which queue a command means."""

from typing import TYPE_CHECKING, Annotated

import typer

from vpnrouter.cli._completed import queue_names, vpn_names
from vpnrouter.errors import OperationError

if TYPE_CHECKING:
    from vpnrouter.management.client import ManagementClient

Name = Annotated[
    str, typer.Argument(help="The queue.", show_default=False, autocompletion=queue_names)
]

MsgVpn = Annotated[
    str,
    typer.Option(
        metavar="VPN",
        help="Its message VPN; needed where several have a queue of that name.",
        autocompletion=vpn_names,
    ),
]

MsgIds = Annotated[
    list[int] | None,
    typer.Option("--msg-id", metavar="ID", help="Only this message; may be given several times."),
]


def find(client: "ManagementClient", name: str, msg_vpn: str) -> str:
    """The message VPN of the queue `name`. Raises OperationError where there is none, or several are."""
    rows = client.queues(msg_vpn)
    found = [row["msgVpnName"] for row in rows if row["queueName"] == name]
    if not found:
        where = f" in message VPN {msg_vpn}" if msg_vpn else ""
        have = ", ".join(dict.fromkeys(row["queueName"] for row in rows)) or "none"
        raise OperationError(f"there is no queue {name}{where}; there are: {have}")
    if len(found) > 1:
        raise OperationError(
            f"message VPNs {', '.join(found)} each have a queue {name}; --msg-vpn says which"
        )
    return str(found[0])
