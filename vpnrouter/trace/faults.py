"""Why trace events are lost or files are not removed, in words for people and scripts."""

import errno
from typing import Final

BUFFER_FULL: Final = "buffer-full"
"""Dropped by the recorder: the writer was behind."""

DISK_FULL: Final = "disk-full"
PERMISSION: Final = "permission"
IO_ERROR: Final = "io-error"
INTERNAL_ERROR: Final = "internal-error"

_REASONS: Final = {
    errno.ENOSPC: DISK_FULL,
    errno.EDQUOT: DISK_FULL,
    errno.EFBIG: DISK_FULL,
    errno.EACCES: PERMISSION,
    errno.EPERM: PERMISSION,
    errno.EROFS: PERMISSION,
}


def reason_of(error: Exception) -> str:
    """The name of what went wrong: one of the last four above."""
    if isinstance(error, OSError):
        return _REASONS.get(error.errno or 0, IO_ERROR)
    return INTERNAL_ERROR
