"""`vpnrouter config show|forget`: what the management API changed of a configuration, in its overlay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from vpnrouter.cli._confirm import agreed
from vpnrouter.cli._output import print_json, print_lines, print_notes
from vpnrouter.errors import ConfigError, OperationError

if TYPE_CHECKING:
    from vpnrouter.config.load import Reading
    from vpnrouter.config.overlay_changes import OverlayChange
    from vpnrouter.config.router import Loaded

group = typer.Typer(
    no_args_is_help=True,
    help="See and take back what the management API changed of a configuration.",
)

Config = Annotated[Path, typer.Argument(help="The router's YAML file.", show_default=False)]

_SHOWN: Final = 60
"""Characters of a value; more of it is in the file that the line names."""


@group.command("show")
def show(
    config: Config,
    as_json: Annotated[bool, typer.Option("--json", help="The changes as JSON.")] = False,
    document: Annotated[
        bool,
        typer.Option(
            "--document", help="The whole configuration in force, file and overlay, as YAML."
        ),
    ] = False,
    with_secrets: Annotated[
        bool,
        typer.Option(
            "--with-secrets", help="With --document: secrets as they are written, not ***."
        ),
    ] = False,
) -> None:
    """Show what is in force and not in the file: a line for each place that the overlay changes.

    To take the changes over into the file, write it anew with --document --with-secrets, and forget them then.
    """
    if with_secrets and not document:
        raise typer.BadParameter("--with-secrets is for --document")
    loaded, reading = _loaded(config)
    if document:
        _print_document(loaded, with_secrets=with_secrets)
        return
    changes = _changes(loaded)
    if as_json:
        print_json([_row(change) for change in changes])
        return
    print_lines(*map(_line, changes))
    if not changes:
        over = reading.overlay_file
        print_notes(
            f"{config}: nothing lies over it"
            if over is None
            else f"{config}: {over} changes nothing"
        )


@group.command("forget")
def forget(
    config: Config,
    places: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PLACE...]",
            help="Places as `show` names them, with all below; without any, all changes.",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Take changes out of the overlay, so that the file counts again.

    A router that runs does so when it gets SIGHUP, or when it is started again. Exit code 2 where the configuration
    would be refused without the changes, or there are none at a place.
    """
    loaded, reading = _loaded(config)
    over, overlay = reading.overlay_file, loaded.overlay
    if over is None or overlay is None:
        print_notes(f"{config}: nothing lies over it")
        return
    changes = _changes(loaded)
    chosen = [one for one in changes if not places or any(_is_at(one.name, at) for at in places)]
    unknown = [at for at in places or () if not any(_is_at(one.name, at) for one in changes)]
    if unknown:
        raise typer.BadParameter(f"{over} changes nothing at {', '.join(unknown)}")
    print_lines(*map(_line, chosen))
    if not yes and not agreed(f"Forget {len(chosen)} of {len(changes)} changes?"):
        raise OperationError("nothing was changed")
    _write(config, over, overlay.data, chosen if places else None)
    print_notes(
        f"{over}: {'written' if Path(over).exists() else 'removed'}; SIGHUP puts it into force"
    )


def _is_at(name: str, place: str) -> bool:
    return name == place or name.startswith((f"{place}.", f"{place}["))


def _loaded(config: Path) -> tuple[Loaded, Reading]:
    """The configuration with its overlay. Raises ConfigError where they are refused."""
    from vpnrouter.config.load import read

    reading = read(config)
    if reading.loaded is None:
        raise ConfigError([str(problem) for problem in reading.problems])
    return reading.loaded, reading


def _changes(loaded: Loaded) -> list[OverlayChange]:
    from vpnrouter.config.overlay_changes import overlay_changes

    if loaded.base is None or loaded.overlay is None:
        return []
    return overlay_changes(loaded.base, loaded.overlay)


def _print_document(loaded: Loaded, *, with_secrets: bool) -> None:
    from vpnrouter.config.document_values import mask
    from vpnrouter.config.overlay import yaml_of

    data = loaded.positions.data
    print_lines(*yaml_of(data if with_secrets else mask(data)).splitlines())


def _line(change: OverlayChange) -> str:
    before, after = _short(change.before), _short(change.after)
    if change.file is None:
        what = f"{after} (new)"
    elif change.after is None:
        what = f"removed, was {before}"
    elif before == after:
        # The one and the other are not shown.
        what = "another secret"
    else:
        what = f"{after}, not {before}"
    at = "" if change.file is None else f" ({change.file.file}:{change.file.line})"
    return f"{change.overlay.file}:{change.overlay.line}: {change.name}: {what}{at}"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _row(change: OverlayChange) -> dict[str, object]:
    return {
        "path": list(change.path),
        "before": change.before,
        "after": change.after,
        "removed": change.after is None,
        "overlay": {"file": change.overlay.file, "line": change.overlay.line},
        "file": change.file and {"file": change.file.file, "line": change.file.line},
    }


def _write(config: Path, over: str, patch: object, chosen: list[OverlayChange] | None) -> None:
    """Write the overlay without these changes, None: without any; not where the configuration is refused then."""
    from vpnrouter.config.load import read
    from vpnrouter.config.overlay import text_of
    from vpnrouter.config.overlay_changes import left_of
    from vpnrouter.config.overlay_disk import OverlayDisk

    left = left_of(patch, [one.path for one in chosen]) if chosen is not None else {}
    disk = OverlayDisk(over)
    disk.note()
    if left:
        disk.stage(text_of(left))
    reading = read(config, overlay=str(disk.staged) if left else False)
    if reading.loaded is None:
        disk.drop()
        raise ConfigError([str(problem) for problem in reading.problems])
    if left:
        disk.swap()
    else:
        disk.remove()
