"""Makes the transform of a link or a bridge from its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.errors import SelectorError
from vpnrouter.selectors import parse_selector
from vpnrouter.text import counted
from vpnrouter.transforms.json_pointer import parse_pointer
from vpnrouter.transforms.steps import (
    EditPayload,
    RemoveProperty,
    SetExpiry,
    SetPayload,
    SetPriority,
    SetProperty,
    SetTopic,
    Step,
    TakePayload,
)
from vpnrouter.transforms.template import parse_template
from vpnrouter.transforms.transform import DEAD_LETTER, PASS, STOP, Transform

if TYPE_CHECKING:
    from vpnrouter.selectors import Selector
    from vpnrouter.settings.transform import Transforming, TransformStep

ON_ERROR = {"dead-letter": DEAD_LETTER, "pass": PASS, "stop": STOP}


def transform_of(written: Transforming) -> Transform | None:
    """Return what a link changes, None for nothing. Raises ValueError."""
    steps = [step_of(one) for one in written.transform]
    return Transform(steps, ON_ERROR[written.on_transform_error]) if steps else None


def step_of(written: TransformStep) -> Step:
    """Return a step. Raises ValueError that says which attribute is wrong, and why."""
    try:
        when = None if written.when is None else parse_selector(written.when)
    except SelectorError as error:
        raise ValueError(f"when: {error}") from error
    (kind,) = written.kinds
    try:
        return _step(written, kind, when)
    except ValueError as error:
        raise ValueError(f"{kind}: {error}") from error


def _step(written: TransformStep, kind: str, when: Selector | None) -> Step:
    if kind == "set_property":
        values = {name: parse_template(text) for name, text in written.set_property.items()}
        return SetProperty(f"set_property {', '.join(values)}", when, values)
    if kind == "remove_property":
        names = list(written.remove_property)
        return RemoveProperty(f"remove_property {', '.join(names)}", when, names)
    if kind == "topic":
        return SetTopic(f"topic {written.topic}", when, parse_template(written.topic or ""))
    if kind == "priority":
        return SetPriority(f"priority {written.priority}", when, written.priority or 0)
    if kind == "expiry":
        return SetExpiry(f"expiry {written.expiry}", when, written.expiry or 1)
    if kind == "payload":
        return SetPayload("payload", when, parse_template(written.payload or ""))
    if kind == "payload_at":
        text = written.payload_at or ""
        return TakePayload(f"payload_at {text}", when, parse_pointer(text))
    edit = written.edit_payload
    if edit is None:
        raise AssertionError(kind)
    changes = [(parse_pointer(at), parse_template(text)) for at, text in edit.set.items()]
    removed = [parse_pointer(at) for at in edit.remove]
    count = counted(len(changes) + len(removed), "place")
    return EditPayload(f"edit_payload at {count}", when, changes, removed)
