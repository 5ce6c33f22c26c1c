"""Words the validation errors of the models as problems that a person can act on.

No message repeats a value, except a wrong number, choice or name, which cannot be a secret: those
stand at keys that take no secret.
"""

import difflib

from vpnrouter.config.model import Model
from vpnrouter.config.model_schema import (
    bounds_of,
    field_at,
    grouped_key,
    keys_of,
    kind_of,
    model_at,
)
from vpnrouter.config.parse import Document, Plain
from vpnrouter.config.problem import Path, Problem, show_path

_LONGEST_SHOWN = 40

_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "finite_number": "a number",
    "int_parsing_size": "a smaller number",
}


def to_problem(error: Plain, document: Document, root: type[Model]) -> Problem:
    """Return one entry of pydantic's `ValidationError.errors()` as a problem with its place."""
    path: Path = error["loc"]
    kind: str = error["type"]
    if path and path[-1] == "[key]":
        path = path[:-1]
        return Problem(document.key_at(path), "error", f"{_label(path[:-1])}: {_reason(error)}")
    if kind == "extra_forbidden":
        return Problem(document.key_at(path), "error", _unknown(path, root))
    if kind == "missing":
        place = document.value_at(path[:-1])
        return Problem(place, "error", f"{_label(path[:-1])}: key {path[-1]} is missing")
    return Problem(document.value_at(path), "error", f"{_label(path)}: {_text(error, path, root)}")


def _label(path: Path) -> str:
    return show_path(path) or "configuration"


def _reason(error: Plain) -> str:
    """Return the text of a ValueError that one of our own checks raised."""
    raised = error.get("ctx", {}).get("error")
    return str(raised) if raised is not None else str(error["msg"])


def _text(error: Plain, path: Path, root: type[Model]) -> str:
    kind: str = error["type"]
    field = field_at(root, path)
    value = error.get("input")
    if kind == "value_error":
        return _reason(error)
    if kind == "literal_error" and field is not None:
        allowed = ", ".join(kind_of(field.annotation).choices)
        return f"must be one of {allowed}{_instead(value)}"
    if kind in ("greater_than_equal", "less_than_equal") and field is not None:
        bounds = bounds_of(field)
        if bounds is not None:
            return f"must be from {bounds[0]} to {bounds[1]}{_instead(value)}"
    if kind == "string_too_long":
        return f"longer than {error['ctx']['max_length']} characters"
    if kind in _WANTED:
        return f"must be {_WANTED[kind]}, not {_describe(value)}"
    return str(error["msg"])


def _instead(value: object) -> str:
    if isinstance(value, bool):
        return f", not {str(value).lower()}"
    if isinstance(value, (str, int, float)) and len(str(value)) <= _LONGEST_SHOWN:
        return f", not {value}"
    return f", not {_describe(value)}"


def _describe(value: object) -> str:
    """Return what kind of value it is, in words of YAML."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return f"{str(value).lower()} (put text in quotes)"
    if isinstance(value, (int, float)):
        return "a number (put text in quotes)"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, (list, tuple)) else "a mapping"


def _unknown(path: Path, root: type[Model]) -> str:
    """Return the problem of an unknown key, with the known key that is most alike."""
    key = str(path[-1])
    message = f"unknown key {key}"
    if len(path) > 1:
        message += f" in {show_path(path[:-1])}"
    model = model_at(root, path[:-1])
    if model is None:
        return message
    grouped = grouped_key(model, key)
    if grouped is not None:
        return f"{message}; write {grouped}"
    near = difflib.get_close_matches(key[:100], keys_of(model), n=1, cutoff=0.5)
    if near:
        return f"{message}; did you mean {near[0]}?"
    return f"{message}; known keys are {', '.join(sorted(keys_of(model)))}"
