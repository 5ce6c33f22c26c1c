"""Raises the process's limit of file descriptors, and keeps one descriptor in reserve."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits

if TYPE_CHECKING:
    import socket


_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

_ROOM: Final = 262_144
"""Descriptors that get their place in the kernel's table at the start: 8 bytes each."""


def raise_limit() -> int:
    """Raise the soft limit of open files towards the hard one. Returns how many may be open now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard
    if hard == resource.RLIM_INFINITY or hard > 2 * limits.OPEN_CONNECTIONS:
        wanted = 2 * limits.OPEN_CONNECTIONS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # Some systems have a bound of their own below the hard limit.
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    most = wanted if soft == resource.RLIM_INFINITY else soft
    _make_room(most)
    return most


def _make_room(most: int) -> None:
    """Let the kernel make its table of `most` descriptors at once.

    It doubles the table when that is full, and in a process with threads whoever opens a descriptor then waits up
    to 20 ms.
    """
    with suppress(OSError), Path(os.devnull).open("rb") as null:
        os.close(fcntl.fcntl(null, fcntl.F_DUPFD_CLOEXEC, min(most, _ROOM) - 1))


def is_shortage(error: OSError) -> bool:
    """True when the system had no descriptor or memory left."""
    return error.errno in _SHORTAGES


@final
class SpareDescriptor:
    """One unused descriptor. When no other is left, it is released so that a waiting connection can be closed.

    Otherwise connections would wait in the kernel, without an answer, until a descriptor is free.
    """

    def __init__(self) -> None:
        self._fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def refuse(self, sock: socket.socket) -> None:
        """Accept and close the connection that waits at `sock`, which does not block."""
        self.close()
        with suppress(OSError):
            sock.accept()[0].close()
        with suppress(OSError):
            self._fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Give the descriptor back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
