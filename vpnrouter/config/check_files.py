"""Warns of files of a router that other users of its machine can read or replace."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path as FilePath

from vpnrouter.config.findings import Findings
from vpnrouter.config.overlay_file import DATA_DIR, NAME
from vpnrouter.config.problem import Path
from vpnrouter.config.router import RouterConfig

SPOOL_FOLDER = "spool"
"""The directory of the spool in `router.data_dir`."""

_WRITE = 0o022


def check_files(found: Findings, config: RouterConfig) -> None:
    """Warn of a spool, overlay, traces or private keys whose permissions are wider than `router.umask` allows, and of
    a data directory in which others can replace them.
    """
    mask = config.router.file_mask
    for path, file, bits in _looked_at(config):
        try:
            mode = stat.S_IMODE(FilePath(file).stat().st_mode)
        except (OSError, ValueError):
            # It is not there yet, or is on another machine: opening it will say so.
            continue
        too_many = mode & mask & bits
        if too_many:
            may = "write to" if too_many & _WRITE else "read"
            found.warning(
                path,
                f"{file} has mode {mode:04o}: other users of this machine may {may} it;"
                f" chmod {mode & ~mask:04o}, or another router.umask",
            )


def _looked_at(config: RouterConfig) -> Iterator[tuple[Path, str, int]]:
    """For each file or directory: where it is configured, its path, and the permissions that count."""
    data = FilePath(config.router.data_dir)
    # Files in these directories are protected by them.
    yield DATA_DIR, str(data), _WRITE
    yield DATA_DIR, str(data / SPOOL_FOLDER), 0o077
    yield DATA_DIR, str(data / NAME), 0o077
    if config.trace is not None:
        yield ("trace", "directory"), config.trace.directory, 0o077
    for index, listener in enumerate(config.listeners):
        if listener.tls is not None:
            yield ("listeners", index, "tls", "key"), listener.tls.key, 0o077
    for name, vpn in config.msg_vpns.items():
        for bridge, written in vpn.bridges.items():
            place: Path = ("msg_vpns", name, "bridges", bridge)
            key = written.remote_authentication.client_cert.key
            if key is not None:
                yield (*place, "remote_authentication", "client_cert", "key"), key, 0o077
            for index, remote in enumerate(written.remote_msg_vpns):
                if remote.client_cert is not None and remote.client_cert.key is not None:
                    where = (*place, "remote_msg_vpns", index, "client_cert", "key")
                    yield where, remote.client_cert.key, 0o077


def close_to_others(config: RouterConfig) -> None:
    """Set the umask of this process to `router.umask`, by which new files are for their owner alone."""
    os.umask(config.router.file_mask)
