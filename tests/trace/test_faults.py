import errno

import pytest

from vpnrouter.trace.schema import (
    DISK_FULL,
    INTERNAL_ERROR,
    IO_ERROR,
    PERMISSION,
    reason_of,
)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.ENOSPC, ""), DISK_FULL),
        (OSError(errno.EDQUOT, ""), DISK_FULL),
        (PermissionError(errno.EACCES, ""), PERMISSION),
        (OSError(errno.EROFS, ""), PERMISSION),
        (OSError(errno.EIO, ""), IO_ERROR),
        (OSError("no number"), IO_ERROR),
        (ValueError(), INTERNAL_ERROR),
    ],
)
def test_every_error_has_a_name(error: Exception, reason: str) -> None:
    """The system's number decides; what is no error of the system is a defect."""
    assert reason_of(error) == reason
