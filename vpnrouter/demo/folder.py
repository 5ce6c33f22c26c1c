"""The output directory: a new one, an empty one, or that of an earlier demonstration."""

import contextlib
import fcntl
import shutil
from collections.abc import Iterator
from io import TextIOBase
from pathlib import Path
from typing import Final

from vpnrouter.errors import OperationError

MARKER: Final = ".vpnrouter-demo"
"""File that says that a directory may be overwritten by the next demonstration."""

TRACES: Final = "traces"
REPORT: Final = "report"
ROUTERS: Final = "routers"


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[Path]:
    """The directory, rid of what an earlier run left, and held until the block ends.

    Raises:
        OperationError: something else is in it, another demonstration uses it, or it cannot be made.
    """
    try:
        held = _claim(folder)
    except OSError as error:
        raise OperationError(f"cannot use {folder}: {error.strerror or error}") from error
    with held:
        yield folder.resolve()


def _claim(folder: Path) -> TextIOBase:
    marker = folder / MARKER
    if folder.exists() and not marker.is_file() and any(folder.iterdir()):
        raise OperationError(
            f"{folder} holds something other than an earlier demo: choose another --output"
        )
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as undo:
        held = undo.enter_context(marker.open("a", encoding="utf-8"))
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OperationError(f"another demo is running in {folder}") from None
        for name in (TRACES, REPORT, ROUTERS):
            if (folder / name).exists():
                shutil.rmtree(folder / name)
        (folder / ROUTERS).mkdir()
        undo.pop_all()
    return held
