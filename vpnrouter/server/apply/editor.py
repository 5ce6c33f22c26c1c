"""Change the configuration of a running router so that it outlives a restart, for the management API.

The person's file is never written. The configuration wanted is compared with it, and the difference is
the overlay (config/overlay.py). A change is: make the document, validate it beside the router, stage the
overlay, do what can fail of the change (bind addresses), rename the overlay, do the rest. Whatever fails on
the way leaves everything as it was; a change that was answered survives a power cut.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar, final

import trio

from vpnrouter import limits
from vpnrouter.beside import beside
from vpnrouter.config.diff import reuse
from vpnrouter.config.effects import describe
from vpnrouter.config.load import read
from vpnrouter.config.locations import Locations
from vpnrouter.config.overlay import overlay_of
from vpnrouter.errors import ConfigError, OperationError
from vpnrouter.events.table import CONFIG_CHANGE, CONFIG_REFUSED
from vpnrouter.management.api_context import Edited, Examined
from vpnrouter.server.apply.overlay_disk import OverlayDisk
from vpnrouter.server.apply.reload import (
    Candidate,
    PackedDocument,
    base_of,
    candidate,
    pack_document,
    reload_file,
)
from vpnrouter.server.events.event_context import raise_event
from vpnrouter.settings.schema import Effect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from vpnrouter.config.effects import Change, ChangePath
    from vpnrouter.config.load import Reading
    from vpnrouter.config.parse import Plain
    from vpnrouter.config.problem import Path, Position
    from vpnrouter.config.router import Loaded, RouterConfig
    from vpnrouter.server.apply.reload import Reload


_R = TypeVar("_R")


@final
class RouterEditor:
    """The configuration of the router that `reload` changes, started from the file `path` as `loaded`.

    `overlaid` False is a router that was started without its overlay: nothing is written over that one.
    Methods are called in the router's thread; what takes long runs beside it.
    """

    def __init__(self, path: str, loaded: Loaded, reload: Reload, *, overlaid: bool = True) -> None:
        self._path = path
        self._reload = reload
        self._overlaid = overlaid
        self._loaded = loaded
        file = overlay_of(base_of(loaded))
        if file is None:
            raise AssertionError(path)
        self._file = file
        self._disk = OverlayDisk(file)
        if overlaid:
            self._disk.note()
        self._packed = pack_document(loaded.positions.data)
        reload.allow(Locations(loaded))
        self._earlier: OrderedDict[str, PackedDocument] = OrderedDict()
        # One change at a time, and one thread: the data plane shares the interpreter with it.
        self._turn = trio.Lock()
        self._threads = trio.CapacityLimiter(1)

    def config(self) -> RouterConfig:
        """The configuration in force."""
        return self._reload.config

    def document(self) -> Plain:
        """The document in force as plain data, secrets included; it must not be changed."""
        return self._loaded.positions.data

    def position(self, path: Path) -> Position:
        """Where the part at `path` is written, be it in the file or in the overlay."""
        return self._loaded.positions.value_at(path)

    def positions(self) -> Iterator[tuple[Path, Position]]:
        """Every part of the document with the place where it is written."""
        return self._loaded.positions.places()

    def files(self) -> tuple[str, str]:
        """The paths of the person's file and of the overlay."""
        return self._path, self._file

    def digest(self) -> str:
        """Hexadecimal digest of the document in force."""
        return self._packed.digest

    def overlay(self) -> Plain:
        """The merge patch (RFC 7396) that lies over the file; {} for none."""
        over = self._loaded.overlay
        return {} if over is None or over.data is None else over.data

    async def examine(self, document: Plain) -> Examined:
        """The problems of `document`, and the changes that it would take; nothing changes."""
        found = await self._beside(partial(candidate, document, self._loaded, self._file))
        return Examined(found.problems, found.changes)

    async def edit(self, change: Callable[[Plain], None], who: str, expected: str = "") -> Edited:
        """Apply `change` to a copy of the document, check it, write the overlay and put it into force.

        Nothing has changed when it raises: what `change` raises, or one of these.

        Raises:
            ConfigError: the result is refused.
            OperationError: the result cannot be applied or written, or `expected` is not in force.
        """
        async with self._turn:
            with _telling(who):
                if expected and expected != self.digest():
                    raise OperationError(
                        f"the configuration is another one by now: {self.digest()} and not {expected}"
                    )
                document = await self._beside(partial(_copied, self.document()))
                change(document)
                return await self._put(document, who)

    async def return_to(self, digest: str, who: str) -> Edited:
        """Put the document with this `digest` into force again, one of the last of this run.

        Raises:
            ConfigError: the document is refused.
            OperationError: it is not kept any more, or cannot be applied or written.
        """
        async with self._turn:
            if digest == self.digest():
                return Edited((), digest)
            with _telling(who):
                packed = self._earlier.get(digest)
                if packed is None:
                    raise OperationError(
                        f"{digest} is none of the last {limits.EDITOR_DOCUMENTS} configurations of this run"
                    )
                return await self._put(await self._beside(packed.unpacked), who)

    async def reread(self) -> None:
        """Read file and overlay again and put them into force, as for SIGHUP; report on stderr."""
        packed: list[PackedDocument] = []

        def reading() -> Reading:
            if self._overlaid:
                self._disk.note()
            found = read(self._path, overlay=self._file if self._overlaid else False)
            if found.loaded is None:
                return found
            packed.append(pack_document(found.loaded.positions.data))
            config = reuse(self._loaded.config, found.loaded.config)
            return found._replace(loaded=found.loaded._replace(config=config))

        async with self._turn:
            look = self._disk.look
            loaded = await reload_file(self._path, self._reload, reading)
            if loaded is None:
                # What could not be used is still there for whoever wants to change something.
                self._disk.look = look
            else:
                self._take(loaded, packed[0])

    async def _put(self, document: Plain, who: str) -> Edited:
        """Put a document into force. The caller holds the lock."""
        if not self._overlaid:
            raise OperationError(
                "this router was started with --no-overlay, so its configuration changes by its file only"
            )
        found = await self._beside(partial(candidate, document, self._loaded, self._file))
        if found.loaded is None:
            raise ConfigError([str(one) for one in found.problems if one.severity == "error"])
        if found.packed.digest == self.digest():
            return Edited((), self.digest())
        fixed = [describe(one) for one in found.changes if one.kind is Effect.RESTART]
        if fixed:
            raise OperationError(f"change it in {self._path} and start anew: {'; '.join(fixed)}")
        # From here on it is done or undone, whoever is not interested any more.
        with trio.CancelScope(shield=True):
            lines = await self._apply(found, found.loaded)
        self._take(found.loaded, found.packed)
        _tell(who, found.changes)
        return Edited(tuple(lines), self.digest())

    async def _apply(self, found: Candidate, loaded: Loaded) -> list[str]:
        await self._beside(partial(self._disk.stage, found.text))
        try:
            prepared = self._reload.prepare(loaded.config)
        except BaseException:
            await self._beside(self._disk.drop)
            raise
        try:
            await self._beside(self._disk.swap)
        except BaseException:
            self._reload.abandon(prepared)
            raise
        return self._reload.commit(prepared)

    def _take(self, loaded: Loaded, packed: PackedDocument) -> None:
        """Note what is in force now, and keep what was."""
        before, self._packed, self._loaded = self._packed, packed, loaded
        self._reload.allow(Locations(loaded))
        if before.digest == packed.digest:
            return
        self._earlier[before.digest] = before
        self._earlier.move_to_end(before.digest)
        self._earlier.pop(packed.digest, None)
        while (
            len(self._earlier) > limits.EDITOR_DOCUMENTS
            or sum(len(one.raw) for one in self._earlier.values()) > limits.EDITOR_BYTES
        ):
            self._earlier.popitem(last=False)

    async def _beside(self, work: Callable[[], _R]) -> _R:
        return await beside(work, self._threads)


def _copied(document: Plain) -> Plain:
    from vpnrouter.config.document_values import copy_plain

    return copy_plain(document)


def _tell(who: str, changes: Sequence[Change]) -> None:
    """Raise an event for each change, in the message VPN that it is about, so that its users read it."""
    for change in changes[: limits.EDITOR_LINES_TOLD]:
        raise_event(CONFIG_CHANGE, f"{who}: {describe(change)}", _msg_vpn_of(change.path), who)
    if len(changes) > limits.EDITOR_LINES_TOLD:
        more = len(changes) - limits.EDITOR_LINES_TOLD
        raise_event(CONFIG_CHANGE, f"{who}: {more} more changes", name=who)


def _msg_vpn_of(path: ChangePath) -> str:
    return str(path[1]) if len(path) > 1 and path[0] == "msg_vpns" else ""


@contextmanager
def _telling(who: str) -> Iterator[None]:
    """Raise an event for a refused change, with the first reason; the caller gets all of them."""
    try:
        yield
    except ConfigError as error:
        more = f" (and {len(error.problems) - 1} more)" if len(error.problems) > 1 else ""
        raise_event(CONFIG_REFUSED, f"{who}: {error.problems[0]}{more}", name=who)
        raise
    except OperationError as error:
        raise_event(CONFIG_REFUSED, f"{who}: {error}", name=who)
        raise
