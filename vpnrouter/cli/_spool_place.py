"""Where a router's spool is, whether a router has it open, and how to read it without changing it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from vpnrouter.errors import OperationError

if TYPE_CHECKING:
    from vpnrouter.config.router import RouterConfig

PRESENT: Final = "CURRENT"
"""A file that each spool has."""

Config = Annotated[Path, typer.Argument(help="The router's YAML file.", show_default=False)]


def config_of(path: Path) -> "RouterConfig":
    """Load a configuration, and set this process's umask to its `router.umask`.

    Raises ConfigError.
    """
    from vpnrouter.config.checks.listeners import close_to_others
    from vpnrouter.config.load import load

    config = load(str(path)).config
    close_to_others(config)
    return config


def spool_of(config: "RouterConfig") -> Path:
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
