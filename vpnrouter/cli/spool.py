"""`vpnrouter spool backup|restore|verify|repair`: the message spool as files, of a running router or a stopped one."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from vpnrouter.cli._output import print_json, print_lines, print_notes
from vpnrouter.cli._router_access import CaFile, PasswordFile, User, connect
from vpnrouter.errors import OperationError
from vpnrouter.spool.read_only_store import findings
from vpnrouter.spool.repair import salvage
from vpnrouter.spool.rocks_store import RocksStore
from vpnrouter.spool.store_files import COPY_MARK, has_store, irregular, store_files
from vpnrouter.spool.write_ahead_log import MARK, lock_directory

if TYPE_CHECKING:
    from vpnrouter.cli._spool_losses import Lost
    from vpnrouter.config.router import RouterConfig


_LOCKS: Final = frozenset({"LOCK", MARK})

_NO_LOCKS: Final = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
"""Errors of a file system that cannot lock a directory."""

_OPENED: Final = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

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
def held(spool: Path, *, may_be_damaged: bool = False) -> Iterator[None]:
    """Keep routers from opening the spool. Raises OperationError when one has it open.

    These are the locks that RocksDB and the router take: they go with the process that holds them. In a spool that may
    be damaged names may stand for anything: what is no regular file cannot be locked, but the directory is.
    """
    with ExitStack() as stack:
        try:
            if not may_be_damaged:
                refuse_irregular(spool)
            try:
                stack.callback(os.close, lock_directory(spool))
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
                refuse_irregular(spool, _LOCKS, "; remove it, when no router runs")
            others = irregular(spool)
            if "LOCK" not in others and (spool / "LOCK").exists():
                lock = os.open(spool / "LOCK", _OPENED)
                stack.callback(os.close, lock)
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if MARK not in others and (spool / MARK).exists():
                mark = os.open(spool / MARK, _OPENED)
                stack.callback(os.close, mark)
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OperationError(
                f"{spool}: a running router has it open; stop that router first"
            ) from None
        except OSError as error:
            # Nobody has a spool open on a file system that is read-only.
            if error.errno != errno.EROFS:
                raise OperationError(f"{spool}: {error.strerror or error}") from error
        yield


def refuse_irregular(
    directory: Path, names: Collection[str] | None = None, remedy: str = ""
) -> None:
    """Raise OperationError if a name of a store's file stands for something else, such as a link or a pipe.

    `names` are those that count, None for all; `remedy` is added to what is told.
    """
    try:
        found = [
            line for name, line in irregular(directory).items() if names is None or name in names
        ]
    except OSError as error:
        raise OperationError(f"{directory}: {error.strerror or error}") from error
    if found:
        raise OperationError(f"{directory}: {found[0]}{remedy}")


def is_running(spool: Path) -> bool:
    """Whether a running router has the spool open."""
    if spool.is_dir() or spool.exists():
        refuse_irregular(spool)
    try:
        lock = os.open(spool / "LOCK", _OPENED)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise OperationError(f"{spool}: {error.strerror or error}") from error
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        raise OperationError(f"{spool}: {error.strerror or error}") from error
    finally:
        os.close(lock)
    return False


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
    if not has_store(directory):
        raise OperationError(f"{directory}: there is no backup of a spool")
    refuse_irregular(directory)
    if spool.exists() and spool.samefile(directory):
        raise OperationError(f"{directory} is the router's spool and no backup")
    with ExitStack() as stack:
        if spool.is_dir():
            stack.enter_context(held(spool, may_be_damaged=True))
            if has_store(spool) and not force:
                raise OperationError(f"{spool}: there is a spool already; --force replaces it")
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
    fresh, old = spool.with_name(f"{spool.name}.new"), spool.with_name(f"{spool.name}.old")
    if old.exists():
        raise OSError(f"{old} is there, from an attempt that was cut off; look at it first")
    spool.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    for name in store_files(backup):
        copy_regular(backup / name, fresh / name)
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


def copy_regular(source: Path, target: Path) -> None:
    """Copy a regular file, and nothing else, whatever has taken its name meanwhile. Raises OSError."""
    opened = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(opened, "rb") as file, target.open("wb") as copy:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(f"{source} is not a regular file")
        shutil.copyfileobj(file, copy, _PORTION_BYTES)


_PORTION_BYTES: Final = 1_048_576


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
    spool = place if place.is_dir() else spool_of(config_of(place))
    if not has_store(spool):
        raise OperationError(f"{spool}: there is no spool")
    with held(spool):
        problems = findings(spool)
    if as_json:
        print_json({"spool": str(spool), "sound": not problems, "problems": problems})
    else:
        print_notes(*problems)
        print_lines(f"{spool}: {'damaged' if problems else 'sound'}")
    if problems:
        raise typer.Exit(1)


def repair(
    config: Config,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what is lost. Nothing changes.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Let the router that CONFIG describes go on with what can be read of a damaged spool.

    The router must be stopped. What can be read is copied into a new spool, which takes the place of the damaged one;
    that is kept beside it. There must be room for the copy. What is lost is told, by message VPN and queue where that
    is known. Exit code 0 when the spool is sound, or is now; 1 when nothing can be done.
    """
    from vpnrouter.cli._spool_losses import lost_rows

    config_read = config_of(config)
    spool = spool_of(config_read)
    if not has_store(spool):
        raise OperationError(f"{spool}: there is no spool")
    fresh = spool.with_name(f"{spool.name}.new")
    with held(spool, may_be_damaged=True):
        problems = findings(spool)
        lost: list[Lost] = []
        aside = None
        if problems:
            try:
                losses = salvage(spool, spool.with_name(f"{spool.name}.repair"), fresh)
                lost = lost_rows(losses, fresh)
                problems += losses.lines
                if dry_run:
                    shutil.rmtree(fresh)
                else:
                    aside = _exchange(spool, fresh, config_read.router.file_mask)
            except (OSError, shutil.Error) as error:
                raise OperationError(f"cannot repair {spool}: {error}") from error
    if as_json:
        rows = [row.row() for row in lost]
        print_json(
            {"spool": str(spool), "problems": problems, "lost": rows, "aside": str(aside or "")}
        )
        return
    print_notes(*problems)
    for row in lost:
        print_lines(row.text())
    if not problems:
        print_lines(f"{spool}: sound, nothing to repair")
    elif aside is None:
        effect = "a repair loses what is listed" if lost else "a repair loses nothing"
        print_lines(f"{spool}: nothing was changed; {effect}")
    else:
        effect = "without what is listed as lost" if lost else "with everything"
        print_lines(f"{spool}: repaired, {effect}; the damaged spool is kept in {aside}")


def _exchange(spool: Path, fresh: Path, mask: int) -> Path:
    """Let a repaired spool take the place of the damaged one; return where that is now. Raises OSError."""
    named = f"{spool.name}.damaged-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    aside = spool.with_name(named)
    count = 1
    while aside.exists():
        count += 1
        aside = spool.with_name(f"{named}-{count}")
    fresh.chmod(0o777 & ~mask)
    for path in fresh.iterdir():
        path.chmod(0o666 & ~mask)
        _sync(path)
    _sync(fresh)
    spool.rename(aside)
    fresh.rename(spool)
    _sync(spool.parent)
    return aside


group = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
group.command("backup")(backup)
group.command("restore")(restore)
group.command("verify")(verify_spool)
group.command("repair")(repair)
