"""Loads a configuration file into a `RouterConfig`, or reports all its problems at once."""

import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple, get_args

from pydantic import ValidationError

from vpnrouter import limits
from vpnrouter.config.checks.listeners import check_files
from vpnrouter.config.checks.router import check_config
from vpnrouter.config.commented_names import commented_names
from vpnrouter.config.locations import check_locations
from vpnrouter.config.overlay import merge, overlay_of, refusals, way_out
from vpnrouter.config.parse import Document, Plain, parse
from vpnrouter.config.problem import Path, Position, Problem, Severity
from vpnrouter.config.problem_list import ProblemList
from vpnrouter.config.router import Loaded, RouterConfig
from vpnrouter.config.secrets import ENVIRONMENT
from vpnrouter.config.unsupported_keys import unsupported_keys
from vpnrouter.errors import ConfigError

_ROUNDS = 4
"""A value that is dropped can leave its object without a required key, which then goes as a
whole."""

_STAND_IN = "-"


class Reading(NamedTuple):
    """What one file holds, with the overlay over it: `loaded` is None if it is refused. `problems`
    are in the files' order. `overlay_file` is None where no overlay was read.
    """

    file: str
    loaded: Loaded | None
    problems: tuple[Problem, ...]
    overlay_file: str | None = None


def load(
    path: str | os.PathLike[str],
    environment: Mapping[str, str] | None = None,
    *,
    overlay: bool | str = True,
) -> Loaded:
    """Read one router's configuration. `environment` is where `{env: NAME}` looks, else the
    process's own. `overlay` is as for `read`.

    Raises:
        ConfigError: the file is refused; the error lists every problem, warnings left out.
    """
    reading = read(path, environment, overlay=overlay)
    if reading.loaded is None:
        raise ConfigError(
            [str(problem) for problem in reading.problems if problem.severity == "error"]
        )
    return reading.loaded


def read(
    path: str | os.PathLike[str],
    environment: Mapping[str, str] | None = None,
    *,
    overlay: bool | str = True,
) -> Reading:
    """Read one router's configuration; errors and warnings are in the result, none is raised.

    `overlay` True lays `overlay.yaml` of the file's own `router.data_dir` over it where there is
    one, a path lays that file over it where there is one, False leaves the file alone.
    """
    file = os.fspath(path)
    problems: list[Problem] = []
    text = _text(file, problems)
    base = parse(text, file, problems) if text is not None else None
    if base is None:
        return Reading(file, None, _ordered(problems))
    over, over_file = None, None
    if overlay is not False and _is_mapping(base):
        over_file = overlay_of(base) if overlay is True else str(overlay)
        over = None if over_file is None else _overlay(over_file, problems)
        if over is None and not problems:
            over_file = None
    loaded = combine(base, over, environment, problems) if not problems else None
    problems.extend(commented_names(base, text or b""))
    if loaded is not None:
        checked = ProblemList(loaded.positions, loaded.positions)
        check_files(checked, loaded.config)
        check_locations(checked, loaded)
        problems.extend(checked.problems)
        loaded = loaded._replace(warnings=_ordered(problems))
    if over_file is not None and loaded is None and _blames(over_file, base, environment, problems):
        problems.append(way_out(over_file))
    return Reading(file, loaded, _ordered(problems), over_file)


def combine(
    base: Document,
    overlay: Document | None,
    environment: Mapping[str, str] | None,
    problems: list[Problem],
) -> Loaded | None:
    """Validate and check a file with an overlay over it; None if it is refused.

    New problems are appended to `problems`, which has no error before.
    """
    if overlay is not None:
        problems.extend(refusals(overlay))
        if problems:
            return None
    document = base if overlay is None else merge(base, overlay)
    if document.root.size > limits.CONFIG_VALUES:
        message = f"more than {limits.CONFIG_VALUES} values together with {base.file}"
        problems.append(Problem(Position((overlay or base).file, 1, 1), "error", message))
        return None
    config = _validated(document, environment, problems)
    if config is None:
        return None
    return Loaded(config, document, _ordered(problems), base, overlay)


def _blames(
    overlay: str,
    base: Document,
    environment: Mapping[str, str] | None,
    problems: Iterable[Problem],
) -> bool:
    """Return whether the overlay is why all is refused: it has an error, or the file alone has none."""
    if any(problem.position.file == overlay for problem in problems):
        return True
    return combine(base, None, environment, []) is not None


def _is_mapping(document: Document) -> bool:
    return document.root.value is None or isinstance(document.root.value, dict)


def _overlay(file: str, problems: list[Problem]) -> Document | None:
    """Return the overlay, None where there is none or a problem with it."""
    if not os.path.lexists(file):
        return None
    text = _text(file, problems)
    return parse(text, file, problems) if text is not None else None


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
) -> RouterConfig | None:
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
            from vpnrouter.config.error_messages import to_problem

            told = found[: limits.CONFIG_PROBLEMS]
            problems.extend(to_problem(entry, document, RouterConfig) for entry in told)
            if len(told) < len(found):
                problems.append(_more(document.file, "error", len(found) - len(told)))
                return None
        dropped = list(_unsound(found))
        if () in dropped:
            break
        sound = sound.without(dropped)
    if config is None:
        return None
    problems.extend(check_config(config, sound, document))
    problems.extend(unsupported_keys(sound))
    if any(found.severity == "error" for found in problems):
        return None
    return config


def _named(data: Plain) -> Plain:
    """Return the document with a stand-in for the router's block or name where it is missing or was dropped."""
    router = data.get("router")
    if isinstance(router, dict) and "name" in router:
        return data
    return {**data, "router": {"name": _STAND_IN}}


def _unsound(errors: Iterable[Plain]) -> Iterable[Path]:
    """Yield what to drop for each error: the value itself, or the object that lacks a key."""
    for error in errors:
        path: Path = error["loc"]
        if path and path[-1] == "[key]":
            yield path[:-1]
        else:
            yield path[:-1] if error["type"] == "missing" else path


def _ordered(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return problems in the files' order, each once; beyond CONFIG_PROBLEMS errors stay before warnings."""
    found = sorted(dict.fromkeys(problems), key=lambda one: (one.position, one.message))
    if len(found) <= limits.CONFIG_PROBLEMS + 1:
        return tuple(found)
    worst = sorted(found, key=lambda one: _SEVERITIES.index(one.severity))
    left = worst[limits.CONFIG_PROBLEMS :]
    kept = sorted(worst[: limits.CONFIG_PROBLEMS], key=lambda one: (one.position, one.message))
    return (*kept, _more(kept[0].position.file, left[0].severity, len(left)))


_SEVERITIES: tuple[Severity, ...] = get_args(Severity)


def _more(file: str, severity: Severity, count: int) -> Problem:
    return Problem(Position(file, 1, 1), severity, f"and {count:,} more problems")
