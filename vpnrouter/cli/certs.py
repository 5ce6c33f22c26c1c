"""`vpnrouter certs --output DIR`: an authority and certificates for a trial of TLS."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from vpnrouter import limits
from vpnrouter.cli._told import say, say_json
from vpnrouter.errors import OperationError

if TYPE_CHECKING:
    from vpnrouter.cli._trial_authority import Written

_NAME: Final = re.compile(r"[A-Za-z0-9_@+-][A-Za-z0-9._@+-]*")
"""A name is a common name and a file name."""

_HOSTS: Final = ("localhost", "127.0.0.1", "::1")


def command(
    output: Annotated[
        Path,
        typer.Option(
            help="Directory for the files; made when missing.", file_okay=False, show_default=False
        ),
    ],
    name: Annotated[
        list[str] | None,
        typer.Option(help="Issue a router's certificate. May stand several times."),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            help="Host name or address that the routers are reached under. May stand several times."
            f" Without it: {', '.join(_HOSTS)}."
        ),
    ] = None,
    client: Annotated[
        list[str] | None,
        typer.Option(help="Issue a certificate for this client username. May stand several times."),
    ] = None,
    revoke: Annotated[
        list[Path] | None,
        typer.Option(
            help="Put this certificate of the authority on its revocation list. May stand several"
            " times.",
            dir_okay=False,
        ),
    ] = None,
    days: Annotated[
        int, typer.Option(min=1, max=3650, help="Days that the certificates are good for.")
    ] = 365,
    force: Annotated[
        bool, typer.Option("--force", help="Replace certificates that are there.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the files as JSON.")] = False,
) -> None:
    """Make certificates for a trial of TLS.

    Makes an authority (ca.pem, ca.key, crl.pem) in the directory, or uses the one that is there, and
    issues NAME.pem with NAME.key for each --name and --client. Private keys are not encrypted: an
    authority for lasting use belongs elsewhere. Prints the files written. Exit code 1: a file is there
    already, or cannot be used or written.
    """
    servers, clients = name or [], client or []
    _check_names([*servers, *clients])
    from datetime import UTC, datetime

    from vpnrouter.cli._trial_authority import TrialAuthority, general_name

    hosts = [general_name(one) for one in host or _HOSTS]
    if not force:
        # Told before anything is written.
        for wanted in (*servers, *clients):
            for path in (output / f"{wanted}.pem", output / f"{wanted}.key"):
                if path.exists():
                    raise OperationError(f"{path} is there already; --force replaces it")
    try:
        output.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OperationError(f"cannot make {output}: {error.strerror}") from error
    authority = TrialAuthority(output, datetime.now(UTC).replace(microsecond=0))
    written = authority.save()
    for wanted in servers:
        written += authority.server(wanted, hosts, days, force=force)
    for wanted in clients:
        written += authority.client(wanted, days, force=force)
    if revoke or not (output / "crl.pem").exists():
        written = [one for one in written if not one.path.endswith("crl.pem")]
        written.append(authority.revoke(revoke or []))
    _show(written, as_json=as_json)


def _check_names(names: list[str]) -> None:
    """Refuse what cannot be a file and a common name, or would be one file twice."""
    seen: set[str] = {"ca", "crl"}
    for name in names:
        if not _NAME.fullmatch(name) or len(name) > limits.COMMON_NAME_LENGTH:
            raise typer.BadParameter(
                f"{name!r}: a name has 1 to {limits.COMMON_NAME_LENGTH} of A-Z a-z 0-9 . _ @ + -"
            )
        if name.lower() in seen:
            raise typer.BadParameter(f"{name!r}: the name is taken, and so are its files")
        seen.add(name.lower())


def _show(written: "list[Written]", *, as_json: bool) -> None:
    if as_json:
        from dataclasses import asdict

        say_json([asdict(one) for one in written], 2)
        return
    rows = [("file", "what", "until"), *((one.path, one.purpose, one.ends) for one in written)]
    # No table of rich's: it would break paths at the width of the terminal.
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for path, what, until in rows:
        say(f"{path:{widths[0]}}  {what:{widths[1]}}  {until}".rstrip())
