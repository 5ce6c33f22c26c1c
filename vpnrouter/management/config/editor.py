"""Changes the configuration of a running router so that the change outlives a restart.

The person's file is never written. The configuration wanted is compared with it, and the difference is
the overlay (config/overlay.py). A change is: make the document, validate it beside the router, stage the
overlay, do what can fail of the change (bind addresses), rename the overlay, do the rest. Whatever fails on
the way leaves everything as it was; a change that was answered survives a power cut.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar, final

import trio

from vpnrouter import limits
from vpnrouter.beside import beside
from vpnrouter.config.candidate import (
    Candidate,
    PackedDocument,
    base_of,
    candidate,
    pack_document,
)
from vpnrouter.config.diff import reuse
from vpnrouter.config.document_values import copy_plain
from vpnrouter.config.effects import NEEDS_RESTART, describe
from vpnrouter.config.load import read
from vpnrouter.config.locations import Locations
from vpnrouter.config.overlay import overlay_of
from vpnrouter.config.overlay_disk import OverlayDisk
from vpnrouter.errors import ConfigError, OperationError
from vpnrouter.events import table
from vpnrouter.events.table import CONFIG_CHANGE, CONFIG_REFUSED
from vpnrouter.settings.schema import Effect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vpnrouter.config.effects import Change, ChangePath
    from vpnrouter.config.load import Reading
    from vpnrouter.config.parse import Plain
    from vpnrouter.config.problem import Path, Position, Problem
    from vpnrouter.config.router import Loaded, RouterConfig
    from vpnrouter.events.log import EventLog


_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class Examined:
    """What a document would do to the router. `changes` is empty where `problems` has an error."""

    problems: tuple[Problem, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Edited:
    """What a change did: a line for each difference, and the digest of what is in force now."""

    lines: tuple[str, ...]
    digest: str


class PreparedChange(NamedTuple):
    """A change of the router that cannot fail any more. One of the two is called, before the next one is prepared."""

    commit: Callable[[], list[str]]
    """Puts it into force; returns a line for each difference."""
    abandon: Callable[[], None]
    """Leaves everything as it was."""


@final
class ConfigEditor:
    """The configuration of a router that was started from the file `path` as `loaded`.

    `prepare` does what can fail of a change of that router; it raises OperationError. `in_force` is the
    configuration that the router follows now: what needs a restart is still as it was in it.
    `overlaid` False is a router that was started without its overlay: nothing is written over that one.
    Methods are called in the router's thread; what takes long runs beside it.
    """

    def __init__(
        self,
        path: str,
        loaded: Loaded,
        prepare: Callable[[RouterConfig, Locations], PreparedChange],
        in_force: Callable[[], RouterConfig],
        log: EventLog,
        *,
        overlaid: bool = True,
    ) -> None:
        self._path = path
        self._prepare = prepare
        self._in_force = in_force
        self._log = log
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
        self._earlier: OrderedDict[str, PackedDocument] = OrderedDict()
        # One change at a time, and one thread: the data plane shares the interpreter with it.
        self._turn = trio.Lock()
        self._threads = trio.CapacityLimiter(1)

    def config(self) -> RouterConfig:
        """Return the configuration in force."""
        return self._in_force()

    def document(self) -> Plain:
        """Return the document in force as plain data, secrets included; it must not be changed."""
        return self._loaded.positions.data

    def position(self, path: Path) -> Position:
        """Return where the part at `path` is written, be it in the file or in the overlay."""
        return self._loaded.positions.value_at(path)

    def is_overlaid(self, path: Path) -> bool:
        """Return whether what stands at `path` is in the overlay alone."""
        return self.position(path).file == self._file

    def positions(self) -> Iterator[tuple[Path, Position]]:
        """Return every part of the document with the place where it is written."""
        return self._loaded.positions.places()

    def files(self) -> tuple[str, str]:
        """Return the paths of the person's file and of the overlay."""
        return self._path, self._file

    def digest(self) -> str:
        """Return the hexadecimal digest of the document in force."""
        return self._packed.digest

    def overlay(self) -> Plain:
        """Return the merge patch (RFC 7396) that lies over the file; {} for none."""
        over = self._loaded.overlay
        return {} if over is None or over.data is None else over.data

    async def examine(self, document: Plain) -> Examined:
        """Return the problems of `document`, and the changes that it would take; nothing changes."""
        examined = await self._beside(partial(candidate, document, self._loaded, self._file))
        return Examined(examined.problems, examined.changes)

    async def edit(self, change: Callable[[Plain], None], user: str, expected: str = "") -> Edited:
        """Apply `change` to a copy of the document, check it, write the overlay and put it into force.

        Nothing has changed when it raises: what `change` raises, or one of these.

        Raises:
            ConfigError: the result is refused.
            OperationError: the result cannot be applied or written, or `expected` is not in force.
        """
        async with self._turn:
            with self._refusals_raised(user):
                if expected and expected != self.digest():
                    raise OperationError(
                        f"the configuration is another one by now: {self.digest()} and not {expected}"
                    )
                document = await self._beside(partial(copy_plain, self.document()))
                change(document)
                return await self._put(document, user)

    async def return_to(self, digest: str, user: str) -> Edited:
        """Put the document with this `digest` into force again, one of the last of this run.

        Raises:
            ConfigError: the document is refused.
            OperationError: it is not kept any more, or cannot be applied or written.
        """
        async with self._turn:
            if digest == self.digest():
                return Edited((), digest)
            with self._refusals_raised(user):
                packed = self._earlier.get(digest)
                if packed is None:
                    raise OperationError(
                        f"{digest} is none of the last {limits.EDITOR_DOCUMENTS} configurations of this run"
                    )
                return await self._put(await self._beside(packed.unpacked), user)

    async def reread(self) -> None:
        """Read file and overlay again and put them into force, as for SIGHUP; events report the outcome."""
        async with self._turn:
            look = self._disk.look
            read_again = await self._reread()
            if read_again is None:
                # What could not be used is still there for whoever wants to change something.
                self._disk.look = look
            else:
                self._take(*read_again)

    async def _reread(self) -> tuple[Loaded, PackedDocument] | None:
        """Return what is in force now, None where nothing changed."""
        try:
            reading, packed = await self._beside(self._read_files)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a file, the router goes on
            self._raise_sighup(f"{self._path}: {error!r}; {_STAYS}")
            return None
        for problem in reading.problems:
            self._raise_sighup(str(problem))
        if reading.loaded is None:
            self._raise_sighup(f"{self._path} is refused; {_STAYS}")
            return None
        try:
            lines = self._prepare(reading.loaded.config, Locations(reading.loaded)).commit()
        except OperationError as error:
            self._raise_sighup(f"{error}; {_STAYS}")
            return None
        for line in lines:
            self._raise_sighup(line)
        count = sum(1 for line in lines if not line.startswith(NEEDS_RESTART))
        over = "" if reading.overlay_file is None else f" and {reading.overlay_file}"
        plural = "" if count == 1 else "s"
        self._raise_sighup(f"reloaded {self._path}{over}: {count} change{plural}")
        return reading.loaded, packed

    def _read_files(self) -> tuple[Reading, PackedDocument]:
        """Read the present file and overlay; the document is empty where they are refused."""
        if self._overlaid:
            self._disk.note()
        reading = read(self._path, overlay=self._file if self._overlaid else False)
        if reading.loaded is None:
            return reading, PackedDocument("", b"")
        packed = pack_document(reading.loaded.positions.data)
        config = reuse(self._loaded.config, reading.loaded.config)
        return reading._replace(loaded=reading.loaded._replace(config=config)), packed

    def _raise_sighup(self, text: str) -> None:
        self._log.raise_event(table.named("SIGHUP"), "", "", text)

    async def _put(self, document: Plain, user: str) -> Edited:
        """Put a document into force. The caller holds the lock."""
        if not self._overlaid:
            raise OperationError(
                "this router was started with --no-overlay, so its configuration changes by its file only"
            )
        checked = await self._beside(partial(candidate, document, self._loaded, self._file))
        if checked.loaded is None:
            raise ConfigError(
                [str(problem) for problem in checked.problems if problem.severity == "error"]
            )
        if checked.packed.digest == self.digest():
            return Edited((), self.digest())
        fixed = [describe(change) for change in checked.changes if change.kind is Effect.RESTART]
        if fixed:
            raise OperationError(f"change it in {self._path} and start anew: {'; '.join(fixed)}")
        # From here on it is done or undone, whoever is not interested any more.
        with trio.CancelScope(shield=True):
            lines = await self._apply(checked, checked.loaded)
        self._take(checked.loaded, checked.packed)
        self._raise_changes(user, checked.changes)
        return Edited(tuple(lines), self.digest())

    async def _apply(self, candidate: Candidate, loaded: Loaded) -> list[str]:
        await self._beside(partial(self._disk.stage, candidate.text))
        try:
            prepared = self._prepare(loaded.config, Locations(loaded))
        except BaseException:
            await self._beside(self._disk.drop)
            raise
        try:
            await self._beside(self._disk.swap)
        except BaseException:
            prepared.abandon()
            raise
        return prepared.commit()

    def _take(self, loaded: Loaded, packed: PackedDocument) -> None:
        """Record what is in force now, and keep what was before."""
        before, self._packed, self._loaded = self._packed, packed, loaded
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

    def _raise_changes(self, user: str, changes: Sequence[Change]) -> None:
        """Raise an event for each change, in the message VPN that it is about, so that its users read it."""
        raise_event = self._log.raise_event
        for change in changes[: limits.EDITOR_LINES_TOLD]:
            vpn = _msg_vpn_of(change.path)
            raise_event(CONFIG_CHANGE, vpn, user, f"{user}: {describe(change)}")
        if len(changes) > limits.EDITOR_LINES_TOLD:
            more = len(changes) - limits.EDITOR_LINES_TOLD
            raise_event(CONFIG_CHANGE, "", user, f"{user}: {more} more changes")

    @contextmanager
    def _refusals_raised(self, user: str) -> Iterator[None]:
        """Raise an event for a refused change, with the first reason; the caller gets all of them."""
        try:
            yield
        except ConfigError as error:
            more = f" (and {len(error.problems) - 1} more)" if len(error.problems) > 1 else ""
            self._log.raise_event(CONFIG_REFUSED, "", user, f"{user}: {error.problems[0]}{more}")
            raise
        except OperationError as error:
            self._log.raise_event(CONFIG_REFUSED, "", user, f"{user}: {error}")
            raise


_STAYS: Final = "everything stays as it was"


def _msg_vpn_of(path: ChangePath) -> str:
    return str(path[1]) if len(path) > 1 and path[0] == "msg_vpns" else ""
