"""Words the validation errors of the models as problems that a person can act on.

No message repeats a value, except a wrong number, choice or name, which cannot be a secret: those
stand at keys that take no secret.
"""

import difflib
import re
from collections.abc import Mapping

from pydantic.fields import FieldInfo

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


OTHER_NAMES = {
    "accounts": "client_usernames",
    "acl": "acl_profiles",
    "acls": "acl_profiles",
    "clients": "client_usernames",
    "listener": "listeners",
    "port": "bind",
    "address": "bind",
    "topics": "subscriptions",
    "user": "client_usernames",
    "usernames": "client_usernames",
    "users": "client_usernames",
    "vhosts": "msg_vpns",
    "vpns": "msg_vpns",
}
"""Keys that other brokers have, and ours, where the mapping has it."""


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
        return _wanted(kind, value, str(path[-1]) if path else "")
    return str(error["msg"])


_ADDRESS_KEYS = {
    "bind": 'HOST:PORT in quotes, such as "127.0.0.1:{}", or "0.0.0.0:{}" for all addresses'
}
"""Keys of texts that a mere number is often written for, and what to write."""

_QUOTED = {
    "int_type": r"-?\d+",
    "float_type": r"-?\d+(\.\d+)?",
    "bool_type": r"(?i)true|false|yes|no|on|off",
}
"""What needs no more than its quotes taken away."""


def _wanted(kind: str, value: object, key: str) -> str:
    """Return what kind of value a key takes, what it was given, and what to do."""
    wanted = f"must be {_WANTED[kind]}, not {_describe(value)}"
    if kind == "string_type" and isinstance(value, (bool, int, float)):
        if key in _ADDRESS_KEYS and not isinstance(value, bool):
            return f"must be {_ADDRESS_KEYS[key].replace('{}', str(value))}"
        return f"{wanted} (put text in quotes)"
    if isinstance(value, str) and kind in _QUOTED:
        if re.fullmatch(_QUOTED[kind], value):
            return f"must be {_WANTED[kind]}: take the quotes away"
        if kind != "bool_type" and re.fullmatch(r"-?[\d_.,]+ ?[A-Za-z]+", value):
            return f"must be {_WANTED[kind]} without its unit; configs/reference.yaml says which one {key} has"
    if isinstance(value, bool):
        return f"{wanted} (yes, no, on and off are true and false in YAML)"
    if kind == "tuple_type":
        return f"{wanted}: begin each entry with -, or write [ ] around it"
    if kind in ("dict_type", "model_type", "model_attributes_type") and value is not None:
        return f"{wanted}: write NAME: VALUE in lines of their own, or {{NAME: VALUE}}"
    return wanted


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
        return str(value).lower()
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, (list, tuple)) else "a mapping"


_ENTRIES = {"named": "each NAME of ", "list": "each entry of "}


def _elsewhere(path: Path, root: type[Model], known: Mapping[str, FieldInfo]) -> str:
    """Return where a key is known, one level below the place where it stands or above it; "" if nowhere."""
    key = str(path[-1])
    inside = [
        (name, kind)
        for name, kind in ((name, kind_of(field.annotation)) for name, field in known.items())
        if kind.model is not None and key in keys_of(kind.model)
    ]
    if len(inside) == 1 and inside[0][1].form == "model":
        name = inside[0][0]
        return f"into {name}: indent it below {name}:, or write {name}: {{{key}: …}}"
    if inside:
        places = [f"{_ENTRIES.get(kind.form, '')}{name}" for name, kind in inside]
        return f"into {' or '.join(places)}"
    # Above a named object or an item stands the mapping or list of all of them, which has no keys of its own.
    for up in (2, 3):
        outer = model_at(root, path[:-up]) if len(path) >= up else None
        if outer is not None:
            place = show_path(path[:-up]) or "the top level"
            return f"into {place}: indent it like {path[-up]}:" if key in keys_of(outer) else ""
    return ""


def _unknown(path: Path, root: type[Model]) -> str:
    """Return the problem of an unknown key, with the known key that is most alike."""
    key = str(path[-1])
    message = f"unknown key {key}"
    if len(path) > 1:
        message += f" in {show_path(path[:-1])}"
    model = model_at(root, path[:-1])
    if model is None:
        return message
    known = keys_of(model)
    begin, colon, _ = key.partition(":")
    if colon and begin in known:
        return f"unknown key {key}; write {begin}: with a space behind the colon"
    if OTHER_NAMES.get(key) in known:
        return f"{message}; write {OTHER_NAMES[key]}"
    grouped = grouped_key(model, key)
    if grouped is not None:
        return f"{message}; write {grouped}"
    elsewhere = _elsewhere(path, root, known)
    if elsewhere:
        return f"{message}; it belongs {elsewhere}"
    near = difflib.get_close_matches(key[:100], keys_of(model), n=1, cutoff=0.5)
    if near:
        return f"{message}; did you mean {near[0]}?"
    return f"{message}; known keys are {', '.join(sorted(keys_of(model)))}"
