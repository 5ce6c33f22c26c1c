"""Bring a running router from the configuration in force to another one, and check first whether it can be.

A document that a router might go over to: made into an overlay, validated, checked, compared.

Takes a second for a large configuration, holds nothing of the router and waits for nothing: it runs in a
thread beside the router.
"""

from __future__ import annotations

import zlib
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple, final

import trio

from vpnrouter.beside import beside
from vpnrouter.config.diff import changes, reuse
from vpnrouter.config.document_values import compact, copy_plain, unmask
from vpnrouter.config.effects import describe
from vpnrouter.config.listeners import server_certificate
from vpnrouter.config.load import combine, read
from vpnrouter.config.locations import location_problems
from vpnrouter.config.model import changed
from vpnrouter.config.overlay import difference, fill_nulls, text_of
from vpnrouter.config.parse import parse
from vpnrouter.config.problem import Path, Position, Problem, show_path
from vpnrouter.config.router import RouterConfig
from vpnrouter.errors import OperationError
from vpnrouter.server.apply.assemble import read_authorities, take_authorities, vpn_of
from vpnrouter.server.apply.changes import (
    ListenerChange,
    change_bridges,
    change_message_vpn,
    remove_message_vpn,
    rename_outward,
)
from vpnrouter.server.bridges.flows import BridgeFlows
from vpnrouter.server.bridges.runner import BridgeRunner
from vpnrouter.server.events.event_context import raise_named
from vpnrouter.server.net.reactor import flush_ready
from vpnrouter.settings.schema import Effect

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.bridges.link_registry import LinkRegistry
    from vpnrouter.config.effects import Change
    from vpnrouter.config.load import Reading
    from vpnrouter.config.locations import Locations
    from vpnrouter.config.parse import Document, Plain
    from vpnrouter.config.router import Loaded
    from vpnrouter.server.net.dial import Connector
    from vpnrouter.server.net.listeners import ListenerSet
    from vpnrouter.server.spool.spool_service import SpoolService
    from vpnrouter.settings.endpoint import GuaranteedMsging


class PackedDocument(NamedTuple):
    """A document as it is kept: its digest, and JSON in zlib's format."""

    digest: str
    raw: bytes

    def unpacked(self) -> Plain:
        """The document, decompressed."""
        import json

        return json.loads(zlib.decompress(self.raw))


def pack_document(document: Plain) -> PackedDocument:
    """A document to be kept."""
    text = compact(document).encode()
    return PackedDocument(sha256(text).hexdigest(), zlib.compress(text, 1))


class Candidate(NamedTuple):
    """What became of a document. `loaded` is None where it is refused; the rest is empty then."""

    loaded: Loaded | None
    problems: tuple[Problem, ...]
    text: bytes = b""
    packed: PackedDocument = PackedDocument("", b"")
    changes: tuple[Change, ...] = ()


def candidate(document: Plain, standing: Loaded, overlay: str) -> Candidate:
    """`document` as an overlay at the path `overlay` over the file that `standing` was made from.

    A secret that reads `***` is the one that stands at its place. `document` is not changed.
    """
    base = base_of(standing)
    place = Position(overlay, 1, 1)
    try:
        wanted = copy_plain(document)
        below = base.data if isinstance(base.data, dict) else {}
        problems = [
            *_told(
                place,
                unmask(wanted, standing.positions.data),
                "*** stands for none: give the value",
            ),
            *_told(place, fill_nulls(wanted, below, RouterConfig), "must not be empty"),
        ]
        if problems:
            return Candidate(None, tuple(problems))
        text = text_of(difference(below, wanted))
    except ValueError as error:
        return Candidate(None, (Problem(place, "error", str(error)),))
    over = parse(text, overlay, problems)
    made = None if over is None else combine(base, over, None, problems)
    if made is None:
        return Candidate(None, tuple(sorted(problems)))
    problems = location_problems(made, standing)
    if problems:
        return Candidate(None, tuple(sorted(problems)))
    packed = pack_document(made.positions.data)
    if packed.digest != pack_document(wanted).digest:
        raise AssertionError(overlay)
    made = made._replace(config=reuse(standing.config, made.config))
    found = tuple(changes(standing.config, made.config))
    return Candidate(made, made.warnings, text, packed, found)


def base_of(loaded: Loaded) -> Document:
    """The person's file of a configuration, without what lies over it."""
    return loaded.positions if loaded.base is None else loaded.base


def _told(place: Position, paths: list[Path], message: str) -> list[Problem]:
    return [Problem(place, "error", f"{show_path(path)}: {message}") for path in paths]


FIXED: Final = ("router", "trace")
"""Top-level keys that hold until the router stops; every key below them needs a restart."""

NEEDS_RESTART: Final = "needs restart: "
"""Begin of a line about a difference that was not applied."""


class PreparedChange(NamedTuple):
    """A change that can no longer fail: `written` as it was requested, `after` the part that takes effect."""

    configured: RouterConfig
    after: RouterConfig
    authorities: dict[str, frozenset[bytes]]
    listeners: ListenerChange


@final
class Reload:
    """Changes a running router. `config` is what is in force; `secret` is that of its passwords.

    `runners` is changed in place. Called in the router's thread only; nothing here waits, so that nobody
    sees half of a change. Either call it, or `prepare` and then `commit` or `abandon`, one after the other.
    """

    def __init__(
        self,
        config: RouterConfig,
        secret: bytes,
        book: LinkRegistry,
        connector: Connector,
        answering: ListenerSet,
        runners: list[BridgeRunner],
        nursery: trio.Nursery,
        spool_service: SpoolService | None = None,
    ) -> None:
        self._spool_service = spool_service
        self._flows: BridgeFlows | None = None
        if spool_service is not None:
            self._flows = BridgeFlows(
                spool_service.spool, spool_service.store, spool_service.endpoints
            )
        self.config = config
        self._secret = secret
        self._book = book
        self._connector = connector
        self._answering = answering
        self._runners = runners
        self._nursery = nursery

    def __call__(self, config: RouterConfig) -> list[str]:
        """Put a checked configuration into force; returns one line for each difference.

        What needs a restart stays as it was, and is told again as long as it differs. The TLS files of
        listeners, and those of authorities of message VPNs, are read again in any case. Raises OperationError
        when an address cannot be bound or a file not be used; nothing has changed then.
        """
        return self.commit(self.prepare(config))

    def allow(self, locations: Locations) -> None:
        """Set which locations from the management API bridges may dial from now on."""
        self._connector.locations = locations

    def prepare(self, config: RouterConfig) -> PreparedChange:
        """Do what can fail of such a change: bind new addresses, read the TLS files of listeners and message VPNs.

        Raises OperationError; nothing has changed then.
        """
        before = self.config
        after = config.model_copy(
            update={key: getattr(before, key) for key in FIXED}
            | {"guaranteed_msging": _with_spool_as_before(before, config)}
        )
        authorities = read_authorities(after)
        return PreparedChange(
            config, after, authorities, ListenerChange(self._answering, after.listeners)
        )

    def abandon(self, prepared: PreparedChange) -> None:
        """Leave everything as it was before `prepare`."""
        prepared.listeners.abandon()

    def commit(self, prepared: PreparedChange) -> list[str]:
        """Do the rest, which cannot fail; returns one line for each difference."""
        before = self.config
        config, after, authorities, listeners = prepared
        found = changes(before, after)
        told = [
            NEEDS_RESTART + describe(change).removesuffix(f" ({Effect.RESTART.value})")
            for change in changes(before, config)
            if change.kind is Effect.RESTART
        ]
        self._connector.set_clocks()
        router = self._book.router
        for name, configured in after.msg_vpns.items():
            known = before.msg_vpns.get(name)
            if known is None:
                router.add(vpn_of(router, name, configured, self._secret))
            elif known != configured:
                change_message_vpn(router.vpns[name], self._book, known, configured, self._secret)
        take_authorities(router, authorities)
        if self._spool_service is not None:
            self._spool_service.change(router, after, before)
        change_bridges(
            self._runners, before, after, found, lambda vpn, name: self._begin(after, vpn, name)
        )
        for runner in self._runners:
            runner.identity = server_certificate(after.listeners)
        for name in before.msg_vpns:
            if name not in after.msg_vpns:
                vpn = router.vpns[name]
                remove_message_vpn(vpn, self._book)
                if self._spool_service is not None:
                    self._spool_service.remove(vpn)
        listeners.apply()
        self._answering.admit(after.management)
        self.tell_ports()
        rename_outward(self._book)
        self.config = after
        flush_ready(router.context)
        return [describe(change) for change in found] + told

    def begin_all(self) -> None:
        """Start the bridges of the configuration that is in force."""
        for vpn_name, vpn in self.config.msg_vpns.items():
            for name in vpn.bridges:
                self._runners.append(self._begin(self.config, vpn_name, name))
        if self._flows is not None:
            self._flows.look_for_gone()

    def tell_ports(self) -> None:
        """Let peers learn the ports of the link listeners again."""
        self._book.link_port = self._answering.port_of("link")
        self._book.links_port = self._answering.port_of("links")

    def _begin(self, config: RouterConfig, vpn_name: str, name: str) -> BridgeRunner:
        vpn = config.msg_vpns[vpn_name]
        runner = BridgeRunner(
            self._book,
            self._connector,
            vpn_name,
            name,
            vpn.bridges[name],
            vpn.bridging.tls_server_cert,
            flows=self._flows,
        )
        runner.identity = server_certificate(config.listeners)
        self._nursery.start_soon(runner.run)
        return runner


def _with_spool_as_before(before: RouterConfig, after: RouterConfig) -> GuaranteedMsging:
    """The settings of the spool; whether there is one holds until the router stops."""
    enabled = before.guaranteed_msging.enabled
    return changed(after.guaranteed_msging, enabled=enabled)


async def reload_file(
    path: str,
    reload: Callable[[RouterConfig], list[str]],
    reader: Callable[[], Reading] | None = None,
) -> Loaded | None:
    """Read the configuration file again, put it into force if it is accepted, and tell on stderr.

    `reader` reads it, in a thread; without one the file is read by itself. Returns what is in force now, None
    where all stays as it was.
    """
    reads = reader or partial(read, path, overlay=False)
    try:
        reading = await beside(reads)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a file, the router goes on
        _tell(f"{path}: {error!r}; {_STAYS}")
        return None
    for problem in reading.problems:
        _tell(str(problem))
    if reading.loaded is None:
        _tell(f"{path} is refused; {_STAYS}")
        return None
    try:
        lines = reload(reading.loaded.config)
    except OperationError as error:
        _tell(f"{error}; {_STAYS}")
        return None
    for line in lines:
        _tell(line)
    count = sum(1 for line in lines if not line.startswith(NEEDS_RESTART))
    over = "" if reading.overlay_file is None else f" and {reading.overlay_file}"
    _tell(f"reloaded {path}{over}: {count} change{'' if count == 1 else 's'}")
    return reading.loaded


_STAYS: Final = "everything stays as it was"


def _tell(text: str) -> None:
    raise_named("SIGHUP", text)
