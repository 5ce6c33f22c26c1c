"""The overlay as a file: where it stands, its text, and what to say of one that cannot be used."""

from pathlib import Path as FilePath
from typing import Final

import yaml

from vpnrouter.config.document import Document, Plain
from vpnrouter.config.problem import Path, Position, Problem
from vpnrouter.config.router import Router

NAME: Final = "overlay.yaml"
"""The overlay's name in `router.data_dir`."""

DATA_DIR: Final[Path] = ("router", "data_dir")

_HEAD: Final = """\
# Written by the router: what was changed by its management API. It lies over the router's own file as a merge
# patch (RFC 7396): null removes a key, a list takes the place of the whole list. It is read at the start and on
# SIGHUP; `vpnrouter run --no-overlay` leaves it out. Remove it to go back to the file.
"""

_WAY_OUT: Final = (
    "the overlay cannot be used: correct it, or move it away to go on with the file alone, which --no-overlay"
    " does for once"
)

_DUMPER: Final[Plain] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_DUMPER):  # type: ignore[misc]
    """Writes what several places share as often as it stands there: people read this."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def overlay_of(document: Document) -> str | None:
    """The path of the overlay of a configuration file; None where its `router.data_dir` is unsound.

    Like other paths a relative one starts at the directory that the command was started in.
    """
    directory = document.value_of(DATA_DIR)
    if directory is None:
        directory = Router.model_fields["data_dir"].default
    if not isinstance(directory, str) or not directory or "\0" in directory:
        return None
    return str(FilePath(directory) / NAME)


def text_of(patch: Plain) -> bytes:
    """The overlay file of a merge patch. Raises ValueError for text that no file can hold."""
    try:
        written = yaml.dump(
            patch, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=110
        )
        return (_HEAD + written).encode()
    except (UnicodeError, yaml.YAMLError) as error:
        raise ValueError("text with a character that cannot be written") from error


def refusals(overlay: Document) -> list[Problem]:
    """What an overlay must not say."""
    found: list[Problem] = []
    if overlay.root.value is not None and not isinstance(overlay.root.value, dict):
        found.append(Problem(overlay.value_at(()), "error", "an overlay must be a mapping"))
    if overlay.has(DATA_DIR):
        said = "router.data_dir: the overlay stands in that directory, so it cannot say where it is"
        found.append(Problem(overlay.value_at(DATA_DIR), "error", said))
    return found


def way_out(file: str) -> Problem:
    """What to say last of an overlay that is why a configuration is refused."""
    return Problem(Position(file, 1, 1), "error", _WAY_OUT)
