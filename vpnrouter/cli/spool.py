"""`vpnrouter spool backup|restore|verify`: the message spool as files, of a running router or a stopped one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, final

import typer

from vpnrouter.cli._output import print_json, print_lines, print_notes
from vpnrouter.cli._router_access import CaFile, PasswordFile, User, connect
from vpnrouter.errors import OperationError, SpoolError
from vpnrouter.spool.rocks_store import open_read_only, prefix_only
from vpnrouter.spool.store import Store
from vpnrouter.spool.verify import verify

if TYPE_CHECKING:
    from vpnrouter.config.router import RouterConfig


PRESENT: Final = "CURRENT"
"""A file that each spool has."""

Config = Annotated[Path, typer.Argument(help="The router's YAML file.", show_default=False)]


def config_of(path: Path) -> RouterConfig:
    """Load a configuration, and set this process's umask to its `router.umask`.

    Raises ConfigError.
    """
    from vpnrouter.config.checks.listeners import close_to_others
    from vpnrouter.config.load import load

    config = load(str(path)).config
    close_to_others(config)
    return config


def spool_of(config: RouterConfig) -> Path:
    """The directory of a router's spool."""
    from vpnrouter.config.checks.listeners import SPOOL_FOLDER

    return Path(config.router.data_dir) / SPOOL_FOLDER


@contextmanager
def held(spool: Path) -> Iterator[None]:
    """Keep routers from opening the spool. Raises OperationError when one has it open.

    This is the lock that RocksDB takes: it goes with the process that holds it.
    """
    import fcntl

    try:
        with (spool / "LOCK").open("ab") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OperationError(
                    f"{spool}: a running router has it open; stop that router first"
                ) from None
            yield
    except OSError as error:
        raise OperationError(f"{spool}: {error.strerror or error}") from error


def is_running(spool: Path) -> bool:
    """Whether a running router has the spool open."""
    import fcntl

    try:
        with (spool / "LOCK").open("ab") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    except OSError as error:
        raise OperationError(f"{spool}: {error.strerror or error}") from error
    return False


def findings(directory: Path) -> list[str]:
    """A line for each finding, none if the spool is sound; what cannot be read at all is a finding too."""
    try:
        store = ReadOnlyStore(directory)
    except SpoolError as error:
        return [str(error)]
    try:
        return verify(store)
    except SpoolError as error:
        return [str(error)]
    finally:
        store.close()


@final
class ReadOnlyStore(Store):
    """The files of a store that no router has open. A backup that is only read stays one."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        try:
            self._db = open_read_only(directory)
        except SpoolError:
            raise
        except Exception as error:
            raise SpoolError(f"{directory}: {error}", "corrupt") from error

    def get(self, key: bytes) -> bytes | None:
        """Give the value of `key`, or None. Raises SpoolError where it cannot be read."""
        try:
            value: bytes | None = self._db.get(key)
        except Exception as error:
            raise SpoolError(str(error), "corrupt") from error
        return value

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Give the keys that begin with `prefix`, ascending, with their values.

        Raises SpoolError where they cannot be read.
        """
        try:
            rows = self._db.iter(prefix_only(prefix))
            rows.seek(prefix)
            while rows.valid():
                yield rows.key(), rows.value()
                rows.next()
            rows.status()
        except Exception as error:
            raise SpoolError(str(error), "corrupt") from error

    def close(self) -> None:
        """Close the files."""
        self._db.close()


def backup(
    config: Config,
    directory: Annotated[
        Path,
        typer.Argument(help="Where to; it must not be there yet.", show_default=False),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    url: Annotated[
        str,
        typer.Option(
            envvar="VPNROUTER_URL",
            help="The router's http listener, if it runs.",
            show_default="the first one of CONFIG",
        ),
    ] = "",
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Copy the spool of the router that CONFIG describes, as of one moment.

    A running router is asked to do it, through its management, while messages go on; it writes to
    DIRECTORY on its own machine. The spool of a stopped one is opened here. Exit code 0 when the
    copy is complete and on disk, 1 when it could not be made.
    """
    config_read = config_of(config)
    spool = spool_of(config_read)
    target = directory.absolute()
    running = is_running(spool)
    if running:
        with connect(url or _listener(config_read), user, password_file, ca_file) as client:
            client.back_up(str(target))
    else:
        from vpnrouter.spool.rocks_store import RocksStore

        store = RocksStore(spool, create=False)
        try:
            store.backup(target)
        finally:
            store.close()
    if as_json:
        print_json({"directory": str(target), "running": running})
    else:
        how = "while it runs" if running else "stopped"
        print_lines(f"{target}: spool of router {config_read.router.name}, {how}")


def _listener(config: RouterConfig) -> str:
    """The address of the router's management by its configuration."""
    for listener in config.listeners:
        address = listener.address
        if listener.enabled and listener.protocol in {"http", "https"} and address.port:
            return f"{listener.protocol}://{address}"
    raise typer.BadParameter(
        "the router runs, and its configuration names no http listener with a port; where is it?",
        param_hint="--url",
    )


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
    config_read = config_of(config)
    spool = spool_of(config_read)
    if not (directory / PRESENT).is_file():
        raise OperationError(f"{directory}: there is no backup of a spool")
    if spool.exists() and spool.samefile(directory):
        raise OperationError(f"{directory} is the router's spool and no backup")
    with ExitStack() as stack:
        if spool.is_dir():
            stack.enter_context(held(spool))
            if (spool / PRESENT).exists() and not force:
                raise OperationError(f"{spool}: there is a spool already; --force replaces it")
        from vpnrouter.cli.spool import findings

        problems = findings(directory)
        if problems:
            print_notes(*problems)
            raise OperationError(f"{directory} is damaged; nothing was changed")
        try:
            put(directory, spool, config_read.router.file_mask)
        except (OSError, shutil.Error) as error:
            raise OperationError(f"cannot restore to {spool}: {error}") from error
    if as_json:
        print_json({"spool": str(spool), "backup": str(directory)})
    else:
        print_lines(
            f"{spool}: spool of router {config_read.router.name}, restored from {directory}"
        )


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


def verify_spool(
    place: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG|DIRECTORY",
            help="A router's YAML file, or the directory of a spool or of a backup.",
            show_default=False,
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Read a whole spool or backup and check all that must hold in it. Nothing in it changes.

    The router must be stopped; a running one is backed up, and the backup verified. Exit code 0
    when the spool is sound, 1 when not, or when there is none.
    """
    from vpnrouter.errors import OperationError

    spool = place if place.is_dir() else spool_of(config_of(place))
    if not (spool / PRESENT).is_file():
        raise OperationError(f"{spool}: there is no spool")
    from vpnrouter.cli.spool import findings

    with held(spool):
        problems = findings(spool)
    if as_json:
        print_json({"spool": str(spool), "sound": not problems, "problems": problems})
    else:
        print_notes(*problems)
        print_lines(f"{spool}: {'damaged' if problems else 'sound'}")
    if problems:
        raise typer.Exit(1)


group = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
group.command("backup")(backup)
group.command("restore")(restore)
group.command("verify")(verify_spool)
