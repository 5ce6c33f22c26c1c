"""Checks a document that a running router might go over to: made into an overlay, validated and compared.

This takes a second for a large configuration, holds nothing of the router and waits for nothing: it runs in a
thread beside the router.
"""

from __future__ import annotations

import zlib
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from vpnrouter.config.diff import changes, reuse
from vpnrouter.config.document_values import compact, copy_plain, unmask
from vpnrouter.config.load import combine
from vpnrouter.config.locations import location_problems
from vpnrouter.config.overlay import difference, fill_nulls, text_of
from vpnrouter.config.parse import parse
from vpnrouter.config.problem import Path, Position, Problem, show_path
from vpnrouter.config.router import RouterConfig

if TYPE_CHECKING:
    from vpnrouter.config.effects import Change
    from vpnrouter.config.parse import Document, Plain
    from vpnrouter.config.router import Loaded


class PackedDocument(NamedTuple):
    """A document as it is kept: its digest, and JSON in zlib's format."""

    digest: str
    raw: bytes

    def unpacked(self) -> Plain:
        """Return the document, decompressed."""
        import json

        return json.loads(zlib.decompress(self.raw))


def pack_document(document: Plain) -> PackedDocument:
    """Return a document to be kept."""
    text = compact(document).encode()
    return PackedDocument(sha256(text).hexdigest(), zlib.compress(text, 1))


class Candidate(NamedTuple):
    """What became of a document. `loaded` is None where it is refused; the rest is empty then."""

    loaded: Loaded | None
    problems: tuple[Problem, ...]
    text: bytes = b""
    packed: PackedDocument = PackedDocument("", b"")
    changes: tuple[Change, ...] = ()


def candidate(document: Plain, current: Loaded, overlay: str) -> Candidate:
    """Return `document` as an overlay at the path `overlay` over the file of the configuration in force.

    A secret that reads `***` is the one that stands at its place. `document` is not changed.
    """
    base = base_of(current)
    place = Position(overlay, 1, 1)
    try:
        target = copy_plain(document)
        below = base.data if isinstance(base.data, dict) else {}
        problems = [
            *_problems(
                place,
                unmask(target, current.positions.data),
                "*** stands for none: give the value",
            ),
            *_problems(place, fill_nulls(target, below, RouterConfig), "must not be empty"),
        ]
        if problems:
            return Candidate(None, tuple(problems))
        text = text_of(difference(below, target))
    except ValueError as error:
        return Candidate(None, (Problem(place, "error", str(error)),))
    over = parse(text, overlay, problems)
    loaded = None if over is None else combine(base, over, None, problems)
    if loaded is None:
        return Candidate(None, tuple(sorted(problems)))
    problems = location_problems(loaded, current)
    if problems:
        return Candidate(None, tuple(sorted(problems)))
    packed = pack_document(loaded.positions.data)
    if packed.digest != pack_document(target).digest:
        raise AssertionError(overlay)
    loaded = loaded._replace(config=reuse(current.config, loaded.config))
    differences = tuple(changes(current.config, loaded.config))
    return Candidate(loaded, loaded.warnings, text, packed, differences)


def base_of(loaded: Loaded) -> Document:
    """Return the person's file of a configuration, without what lies over it."""
    return loaded.positions if loaded.base is None else loaded.base


def _problems(place: Position, paths: list[Path], message: str) -> list[Problem]:
    return [Problem(place, "error", f"{show_path(path)}: {message}") for path in paths]
