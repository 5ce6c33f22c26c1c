"""Checks the steps of a transform: each by itself, and against what comes before it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from vpnrouter.topics.grammar import ALL, REST

if TYPE_CHECKING:
    from vpnrouter.config.problem import Path
    from vpnrouter.config.problem_list import ProblemList
    from vpnrouter.settings.transform import Transforming, TransformStep
    from vpnrouter.topics.grammar import Filter

_LEVEL: Final = re.compile(r"\{level:([0-9]+)\}")
_PROPERTY: Final = re.compile(r"\{property:([^}]*)\}")
_PLACEHOLDER: Final = re.compile(r"\{\{|\}\}|\{[^}]*\}")
_WILD: Final = re.compile(r"[+#]")


def check_transform(
    problems: ProblemList, at: Path, written: Transforming, filter_: Filter | None, *, direct: bool
) -> None:
    """Check the transform of a link at `at`. `filter_` has the topics that the first step may meet, None where nobody
    knows them; `direct`: all that it carries is at most once.
    """
    if not written.transform:
        return
    # Imported late: most configurations hold no transform, and start-up time counts.
    from vpnrouter.config.configured_transform import step_of

    if direct and written.on_transform_error == "stop":
        problems.error(
            (*at, "on_transform_error"),
            "stop is for messages that wait: what is at most once is discarded",
        )
    gone: dict[str, int] = {}
    for index, step in enumerate(written.transform):
        place = (*at, "transform", index)
        try:
            step_of(step)
        except ValueError as error:
            problems.key_error(place, str(error))
            continue
        if step.topic is not None:
            _check_topic(problems, place, step.topic, filter_)
            # What the later ones meet is made of messages.
            filter_ = None
        _check_properties(problems, place, step, gone)
        for name in step.remove_property:
            if step.when is None and not name.endswith("*"):
                gone[name] = index + 1
        for name in step.set_property:
            gone.pop(name, None)


def _check_topic(problems: ProblemList, at: Path, text: str, filter_: Filter | None) -> None:
    literal = _PLACEHOLDER.sub("", text)
    if _WILD.search(literal):
        problems.error((*at, "topic"), "no topic has + or # in it: those are for filters")
    if not text or (not literal and text != text.strip()):
        problems.error((*at, "topic"), "is empty")
    if filter_ is None or any(kind in (REST, ALL) for kind in filter_.kinds):
        return
    most = len(filter_.levels)
    for level in _LEVEL.findall(text):
        if int(level) > most:
            problems.error(
                (*at, "topic"), f"names level {level}, but the topics of the source have {most}"
            )


def _check_properties(
    problems: ProblemList, at: Path, step: TransformStep, gone: dict[str, int]
) -> None:
    """Warn of properties that an earlier step has taken out."""
    texts = [*step.set_property.values(), step.topic or "", step.payload or ""]
    if step.edit_payload is not None:
        texts += step.edit_payload.set.values()
    for text in texts:
        for name in _PROPERTY.findall(text):
            if name in gone:
                problems.key_warning(
                    at, f"needs property {name}, which step {gone[name]} has taken out"
                )
    if step.when is None:
        return
    from vpnrouter.selectors import parse_selector

    for name in sorted(parse_selector(step.when).names):
        if name in gone:
            problems.key_warning(
                at, f"looks at property {name}, which step {gone[name]} has taken out"
            )
