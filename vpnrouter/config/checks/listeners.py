"""Checks listeners and the files of a router: addresses, TLS, and who may read what."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Final

from vpnrouter.config.overlay import DATA_DIR, NAME
from vpnrouter.config.problem import Path
from vpnrouter.config.problem_list import ProblemList
from vpnrouter.config.router import RouterConfig
from vpnrouter.settings.address import Address
from vpnrouter.settings.listener import (
    AMQP_PROTOCOLS,
    CLIENT_PROTOCOLS,
    TLS_PROTOCOLS,
    Listener,
)

SPOOL_FOLDER = "spool"
"""The directory of the spool in `router.data_dir`."""

_WRITE = 0o022


def check_files(problems: ProblemList, config: RouterConfig) -> None:
    """Warn of a spool, overlay, traces or private keys whose permissions are wider than `router.umask` allows, and of
    a data directory in which others can replace them.
    """
    mask = config.router.file_mask
    for path, file, bits in _private_files(config):
        try:
            mode = stat.S_IMODE(FilePath(file).stat().st_mode)
        except (OSError, ValueError):
            # It is not there yet, or is on another machine: opening it will say so.
            continue
        too_many = mode & mask & bits
        if too_many:
            may = "write to" if too_many & _WRITE else "read"
            problems.warning(
                path,
                f"{file} has mode {mode:04o}: other users of this machine may {may} it;"
                f" chmod {mode & ~mask:04o}, or another router.umask",
            )


def _private_files(config: RouterConfig) -> Iterator[tuple[Path, str, int]]:
    """Yield for each file or directory where it is configured, its path, and the permissions that count."""
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
        for bridge, configured in vpn.bridges.items():
            place: Path = ("msg_vpns", name, "bridges", bridge)
            key = configured.remote_authentication.client_cert.key
            if key is not None:
                yield (*place, "remote_authentication", "client_cert", "key"), key, 0o077
            for index, remote in enumerate(configured.remote_msg_vpns):
                if remote.client_cert is not None and remote.client_cert.key is not None:
                    where = (*place, "remote_msg_vpns", index, "client_cert", "key")
                    yield where, remote.client_cert.key, 0o077


def close_to_others(config: RouterConfig) -> None:
    """Set the umask of this process to `router.umask`; by default new files are for their owner only."""
    os.umask(config.router.file_mask)


_ANY: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - what to look for, nothing is bound


def check_listeners(problems: ProblemList, config: RouterConfig) -> None:
    """Check all listeners of a configuration."""
    if not config.listeners:
        if not problems.is_configured(("listeners",)) or problems.is_whole(("listeners",)):
            problems.key_warning(("listeners",), "none, so nobody can connect to this router")
        return
    bound: list[tuple[Address, Path]] = []
    for index, listener in enumerate(config.listeners):
        path = ("listeners", index)
        _check_msg_vpn(problems, path, listener, config)
        _check_tls(problems, path, listener)
        _check_management(problems, path, listener, config)
        if listener.failover_servers and listener.protocol not in AMQP_PROTOCOLS:
            problems.key_error(
                (*path, "failover_servers"), f"clients of {listener.protocol} cannot be told"
            )
        if not listener.enabled:
            continue
        address = listener.address
        for other, place in bound:
            if _collide(address, other):
                at = problems.document.value_at(place)
                problems.error(
                    (*path, "bind"), f"{address} is already bound by the listener at {at}"
                )
                break
        bound.append((address, path))
    _check_client_certificates(problems, config)
    _check_authorities(problems, config)


def _check_msg_vpn(
    problems: ProblemList, path: Path, listener: Listener, config: RouterConfig
) -> None:
    if listener.msg_vpn is None:
        if listener.protocol in CLIENT_PROTOCOLS:
            for name in config.msg_vpns:
                if "@" in name:
                    problems.key_warning(
                        ("msg_vpns", name),
                        "user@vpn cannot name a message VPN with @, so a listener must name it",
                    )
        return
    place = (*path, "msg_vpn")
    if listener.protocol not in CLIENT_PROTOCOLS:
        problems.key_error(place, f"a listener for {listener.protocol} serves all message VPNs")
    elif not problems.is_configured(("msg_vpns", listener.msg_vpn)):
        problems.error(place, f"there is no message VPN {listener.msg_vpn}")


def _check_tls(problems: ProblemList, path: Path, listener: Listener) -> None:
    if listener.tls is None:
        if listener.protocol in TLS_PROTOCOLS and problems.is_whole(path):
            problems.error(
                path, f"protocol {listener.protocol} needs tls: {{certificate: …, key: …}}"
            )
        return
    place = (*path, "tls")
    if listener.protocol not in TLS_PROTOCOLS:
        problems.key_error(
            place, f"protocol {listener.protocol} is not encrypted; {listener.protocol}s is"
        )
        return
    problems.readable((*place, "certificate"), listener.tls.certificate)
    problems.readable((*place, "key"), listener.tls.key)
    problems.readable((*place, "client_ca"), listener.tls.client_ca)
    problems.readable((*place, "client_crl"), listener.tls.client_crl)
    if listener.tls.client_crl is not None and not problems.is_configured((*place, "client_ca")):
        problems.error((*place, "client_crl"), "needs client_ca beside it")


def _check_client_certificates(problems: ProblemList, config: RouterConfig) -> None:
    """Check that a message VPN that takes client certificates has a listener that requests them."""
    places = [("listeners",), *(("listeners", index) for index in range(len(config.listeners)))]
    if not all(problems.is_whole(place) for place in places):
        return
    asking = [
        listener
        for listener in config.listeners
        if listener.enabled and listener.tls is not None and listener.tls.client_ca is not None
    ]
    taking = [
        name for name, vpn in config.msg_vpns.items() if vpn.authentication.client_cert.enabled
    ]
    for name in taking:
        place = ("msg_vpns", name, "authentication", "client_cert")
        served = [listener for listener in asking if listener.msg_vpn in (None, name)]
        if not served:
            problems.key_warning(
                place,
                "no listener of this message VPN asks for client certificates (tls: {client_ca: …})",
            )
        elif (
            config.msg_vpns[name].authentication.client_cert.ca is None
            and not problems.is_configured((*place, "ca"))
            and len(taking) > 1
            and any(listener.msg_vpn is None for listener in served)
        ):
            problems.key_warning(
                place,
                "without ca a certificate that is meant for another message VPN of the same listener"
                " logs in here as well, if its name is a client username of both",
            )


def _check_authorities(problems: ProblemList, config: RouterConfig) -> None:
    """Check that the authorities of a message VPN can be read where client certificates log in."""
    for name, vpn in config.msg_vpns.items():
        rules = vpn.authentication.client_cert
        if rules.ca is None:
            continue
        place = ("msg_vpns", name, "authentication", "client_cert", "ca")
        if not rules.enabled:
            if problems.is_whole(place[:-1]):
                problems.warning(place, "has no effect without enabled: true")
            continue
        reported = len(problems.problems)
        problems.readable(place, rules.ca)
        if len(problems.problems) == reported and not _holds_certificates(rules.ca):
            problems.error(place, f"{rules.ca} holds no certificates")


def _holds_certificates(file: str) -> bool:
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(file)
    except (OSError, ValueError):
        return False
    return context.cert_store_stats()["x509"] > 0


def _check_management(
    problems: ProblemList, path: Path, listener: Listener, config: RouterConfig
) -> None:
    """Check that the API stays on this machine if it has no users, since it is open to everybody then."""
    if listener.protocol not in ("http", "https") or config.management.users:
        return
    if problems.is_configured(("management", "users")) or _is_loopback(listener.address.host):
        return
    problems.error(
        (*path, "bind"),
        f"{listener.address.host} is no loopback address; that needs management: {{users: …}}",
    )


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _collide(one: Address, other: Address) -> bool:
    """Return whether the system refuses to bind both. Port 0 never collides."""
    if one.port != other.port or one.port == 0:
        return False
    if one.host.lower() == other.host.lower():
        return True
    same_family = (":" in one.host) == (":" in other.host)
    return same_family and (one.host in _ANY or other.host in _ANY)
