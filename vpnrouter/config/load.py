"""From a file to a `RouterConfig`, or to every problem that it has, all at once."""

import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pydantic import ValidationError

from vpnrouter import limits
from vpnrouter.config.checks import check_config
from vpnrouter.config.document import Document, Plain
from vpnrouter.config.not_yet import not_yet
from vpnrouter.config.parse import parse
from vpnrouter.config.problem import Path, Position, Problem
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.secret import ENVIRONMENT
from vpnrouter.errors import ConfigError

_ROUNDS = 4
"""A value that is dropped can leave its object without a required key, which then goes as a
whole."""

_STAND_IN = "-"


class Loaded(NamedTuple):
    """A configuration that is accepted. `positions` tells where each part of it stands."""

    config: RouterConfig
    positions: Document
    warnings: tuple[Problem, ...]


class Reading(NamedTuple):
    """What one file holds: `loaded` is None if it is refused. `problems` are in the file's
    order.
    """

    file: str
    loaded: Loaded | None
    problems: tuple[Problem, ...]


def load(path: str | os.PathLike[str], environment: Mapping[str, str] | None = None) -> Loaded:
    """Read one router's configuration. `environment` is where `{env: NAME}` looks, else the
    process's own.

    Raises:
        ConfigError: the file is refused; the error lists every problem, warnings left out.
    """
    reading = read(path, environment)
    if reading.loaded is None:
        raise ConfigError([str(found) for found in reading.problems if found.severity == "error"])
    return reading.loaded


def read(path: str | os.PathLike[str], environment: Mapping[str, str] | None = None) -> Reading:
    """The same without raising: the configuration if there is one, and errors and warnings either
    way.
    """
    file = os.fspath(path)
    problems: list[Problem] = []
    text = _text(file, problems)
    document = parse(text, file, problems) if text is not None else None
    loaded = _validated(document, environment, problems) if document is not None else None
    return Reading(file, loaded, _ordered(problems))


def _text(file: str, problems: list[Problem]) -> bytes | None:
    try:
        with pathlib.Path(file).open("rb") as stream:
            return stream.read(limits.CONFIG_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        problems.append(Problem(Position(file, 1, 1), "error", f"cannot read: {reason}"))
        return None


def _validated(
    document: Document, environment: Mapping[str, str] | None, problems: list[Problem]
) -> Loaded | None:
    """Validate and check. What is unsound by itself is dropped for the checks, so that they still
    speak.
    """
    context = {ENVIRONMENT: os.environ if environment is None else environment}
    sound = document
    config: RouterConfig | None = None
    for attempt in range(_ROUNDS):
        try:
            data = sound.data if attempt == 0 else _named(sound.data)
            config = RouterConfig.model_validate(data, context=context)
            break
        except ValidationError as error:
            found = error.errors(include_url=False)
        if attempt == 0:
            from vpnrouter.config.wording import to_problem

            problems.extend(to_problem(entry, document, RouterConfig) for entry in found)
        dropped = list(_unsound(found))
        if () in dropped:
            break
        sound = sound.without(dropped)
    if config is None:
        return None
    problems.extend(check_config(config, sound, document))
    problems.extend(not_yet(sound))
    if any(found.severity == "error" for found in problems):
        return None
    return Loaded(config, document, _ordered(problems))


def _named(data: Plain) -> Plain:
    """With a stand-in where the router's own block or name was dropped or never written."""
    router = data.get("router")
    if isinstance(router, dict) and "name" in router:
        return data
    return {**data, "router": {"name": _STAND_IN}}


def _unsound(errors: Iterable[Plain]) -> Iterable[Path]:
    """What to drop for each error: the value itself, or the object that lacks a key."""
    for error in errors:
        path: Path = error["loc"]
        if path and path[-1] == "[key]":
            yield path[:-1]
        else:
            yield path[:-1] if error["type"] == "missing" else path


def _ordered(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(dict.fromkeys(problems), key=lambda found: (found.position, found.message)))
