"""The overlay on disk: a new one takes the place of the old one as a whole, whatever happens meanwhile.

Written beside it under a hidden name, synced, renamed, and the directory synced: after a crash there is the
old one or the new one. Everything here waits for the disk: call it in a thread.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Final, final

from vpnrouter.errors import OperationError

MODE: Final = 0o600
"""The file may hold secrets."""

Look = tuple[int, int, int]
"""Attributes by which a changed file is recognized: inode, size and time of change."""


@final
class OverlayDisk:
    """The overlay at `path`. `stage`, then `swap` or `drop`. All raise OperationError.

    `look` is that of the file when it was read last, None for no file.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.look: Look | None = None
        self._new = self.path.with_name(f".{self.path.name}.new")
        self._before = self.path.with_name(f".{self.path.name}.before")

    def note(self) -> None:
        """Take the present file for the one that is read next."""
        self.look = self._look()

    def stage(self, text: bytes) -> None:
        """Write a new file beside the old one."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Not into what somebody else put there.
            self._new.unlink(missing_ok=True)
            number = os.open(self._new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
            with os.fdopen(number, "wb") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(number)
        except OSError as error:
            self.drop()
            raise self._failed(error) from error

    @property
    def staged(self) -> Path:
        """Where `stage` writes."""
        return self._new

    def remove(self) -> None:
        """Delete the overlay: the file of the router counts alone then."""
        try:
            self.path.unlink(missing_ok=True)
            self._sync()
        except OSError as error:
            raise self._failed(error) from error

    def drop(self) -> None:
        """Delete the staged file."""
        with contextlib.suppress(OSError):
            self._new.unlink(missing_ok=True)

    def swap(self) -> None:
        """Replace the old file by the staged one.

        Refused where the old one is not the one that was read last: somebody edits it by hand.
        """
        if self._look() != self.look:
            self.drop()
            raise OperationError(
                f"{self.path} was changed by hand; SIGHUP reads it, and then it can be changed from here again"
            )
        try:
            self._keep()
            self._new.replace(self.path)
        except OSError as error:
            self.drop()
            raise self._failed(error) from error
        try:
            self._sync()
        except OSError as error:
            self._put_back()
            raise self._failed(error) from error
        self.note()
        with contextlib.suppress(OSError):
            # A secret that was replaced must not go on standing there.
            self._before.unlink(missing_ok=True)

    def _look(self) -> Look | None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed(error) from error
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _keep(self) -> None:
        self._before.unlink(missing_ok=True)
        if self.look is None:
            return
        try:
            os.link(self.path, self._before)
        except OSError:
            # Not every file system has links.
            shutil.copyfile(self.path, self._before)
            self._before.chmod(MODE)

    def _put_back(self) -> None:
        """Put the file before back, as far as that is possible: the disk has just failed."""
        with contextlib.suppress(OSError):
            if self.look is None:
                self.path.unlink()
            else:
                self._before.replace(self.path)
        with contextlib.suppress(OperationError):
            self.note()

    def _sync(self) -> None:
        number = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)

    def _failed(self, error: OSError) -> OperationError:
        return OperationError(f"cannot write {self.path}: {error.strerror}")
