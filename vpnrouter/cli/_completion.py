"""Completion of names that a running router knows: quick, and silent where it does not answer."""

import re
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import typer

from vpnrouter import limits
from vpnrouter.cli._show_rows import What

if TYPE_CHECKING:
    from vpnrouter.management.client import ManagementClient

PATIENCE_S: Final = 0.7
"""Seconds to wait for a router that does not answer."""

_HARMLESS: Final = re.compile(r"[\w./@#+~=-]+", re.ASCII)
"""Names made of these are offered. A shell evaluates what it is given here, and clients name themselves."""


def names_to_show(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of objects of the kind that `show` was given."""
    what = ctx.params.get("what")
    return names(What(what), ctx.params, incomplete) if what else []


def bridge_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of bridges."""
    return names(What.BRIDGES, ctx.params, incomplete)


def connector_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of connectors."""
    return names(What.CONNECTORS, ctx.params, incomplete)


def client_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of clients."""
    return names(What.CLIENTS, ctx.params, incomplete)


def queue_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of queues."""
    return names(What.QUEUES, ctx.params, incomplete)


def vpn_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of message VPNs."""
    return names(What.VPNS, ctx.params, incomplete)


def names(what: What, given: dict[str, Any], incomplete: str) -> list[str]:
    """Names that begin with `incomplete`, from the router that the options in `given` name; none where a request is
    not answered within PATIENCE_S.
    """
    if what in {What.EVENTS, What.SUBSCRIPTIONS, What.TOPOLOGY}:
        return []
    # An error message would appear in the middle of the command line that is being typed.
    try:
        found = _requested(given, incomplete, what)
    except Exception:  # noqa: BLE001
        return []
    return sorted({name for name in found if _HARMLESS.fullmatch(name)})


def _requested(given: dict[str, Any], incomplete: str, what: What) -> list[str]:
    from vpnrouter.cli._router_access import DEFAULT_URL
    from vpnrouter.management.client import ManagementClient

    if given.get("user"):
        return []  # its password would have to be asked for
    url = given.get("url") or DEFAULT_URL
    ca_file = given.get("ca_file")
    with ManagementClient(
        url if isinstance(url, str) else url[0],
        ca_file=str(ca_file) if ca_file else "",
        patience_s=PATIENCE_S,
    ) as client:
        rows = (row[what.key] for row in _rows(client, what, given, incomplete))
        fitting = (name for name in rows if name.startswith(incomplete))
        return list(islice(fitting, limits.SHOW_COMPLETIONS))


def _rows(
    client: "ManagementClient", what: What, given: dict[str, Any], incomplete: str
) -> Iterable[dict[str, Any]]:
    msg_vpn = str(given.get("msg_vpn") or "")
    kind = what.kind
    if kind is not None and kind.is_of_vpn:
        return client.objects(kind.collection, msg_vpn)
    match what:
        case What.VPNS:
            return client.msg_vpns()
        case _:
            begins = "" if not incomplete or "," in incomplete else f"clientName=={incomplete}*"
            return client.clients(msg_vpn, limit=limits.SHOW_COMPLETIONS, where=begins)
