"""`vpnrouter spool restore CONFIG DIRECTORY`: a backup in the place of a stopped router's spool."""

import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from vpnrouter.cli._spool_place import PRESENT, Config, config_of, held, spool_of
from vpnrouter.cli._told import note, say, say_json
from vpnrouter.errors import OperationError


def restore(
    config: Config,
    directory: Annotated[
        Path, typer.Argument(help="A backup.", exists=True, file_okay=False, show_default=False)
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Replace what is in the spool; it is gone then.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Put a copy of a backup in the place of the spool of the router that CONFIG describes.

    The router must be stopped. The backup is verified first, and stays as it is. Exit code 0 when
    the spool is in place, 1 when not: the backup is damaged, the router runs, or there is a spool
    already and --force is not given.
    """
    written = config_of(config)
    spool = spool_of(written)
    if not (directory / PRESENT).is_file():
        raise OperationError(f"{directory}: there is no backup of a spool")
    if spool.exists() and spool.samefile(directory):
        raise OperationError(f"{directory} is the router's spool and no backup")
    with ExitStack() as stack:
        if spool.is_dir():
            stack.enter_context(held(spool))
            if (spool / PRESENT).exists() and not force:
                raise OperationError(f"{spool}: there is a spool already; --force replaces it")
        from vpnrouter.cli._spool_findings import findings

        problems = findings(directory)
        if problems:
            note(*problems)
            raise OperationError(f"{directory} is damaged; nothing was changed")
        try:
            put(directory, spool, written.router.file_mask)
        except (OSError, shutil.Error) as error:
            raise OperationError(f"cannot restore to {spool}: {error}") from error
    if as_json:
        say_json({"spool": str(spool), "backup": str(directory)})
    else:
        say(f"{spool}: spool of router {written.router.name}, restored from {directory}")


def put(backup: Path, spool: Path, mask: int) -> None:
    """Copy a backup and let the copy take the place of the spool. Raises OSError.

    The copy gets no permissions that are in `mask`. The old spool stays in place until the copy is complete and
    synced. Then it is moved aside for the exchange, and removed afterwards.
    """
    from vpnrouter.spool.rocks_store import COPY_MARK

    fresh, old = spool.with_name(f"{spool.name}.new"), spool.with_name(f"{spool.name}.old")
    if old.exists():
        raise OSError(f"{old} is there, from an attempt that was cut off; look at it first")
    spool.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(backup, fresh)
    # What is restored begins a life of its own: its message ids mean other messages than the original's.
    (fresh / COPY_MARK).touch()
    fresh.chmod(0o777 & ~mask)
    for path in fresh.iterdir():
        path.chmod(0o666 & ~mask)
        _sync(path)
    _sync(fresh)
    if spool.exists():
        spool.rename(old)
    fresh.rename(spool)
    _sync(spool.parent)
    shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
