"""Plain data by itself: a copy that is checked, equality that is strict, a digest.

None of this holds the interpreter's lock for long: these functions run in a thread beside a router.
"""

import hashlib
import json
from typing import Final

from vpnrouter import limits
from vpnrouter.config.document import Plain
from vpnrouter.config.problem import Path, show_path

_SCALARS: Final = (str, bool, int, float, type(None))

# The encoder that is written in C would hold the lock until it is through.
_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def copy_plain(value: object) -> Plain:
    """A copy of its own of plain data; what an alias shared is shared no more.

    Raises ValueError for what a configuration cannot hold: another kind of value, keys that are not text,
    too deep, too large.
    """
    left = [limits.CONFIG_VALUES]
    return _copied(value, (), left)


def _copied(value: object, path: Path, left: list[int]) -> Plain:
    left[0] -= 1
    if left[0] < 0:
        raise ValueError(f"more than {limits.CONFIG_VALUES} values")
    if type(value) in _SCALARS:
        return value
    if len(path) >= limits.CONFIG_DEPTH:
        raise ValueError(f"{show_path(path[:3])}…: nested deeper than {limits.CONFIG_DEPTH} levels")
    if isinstance(value, list):
        return [_copied(item, (*path, index), left) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        raise ValueError(f"{show_path(path)}: a configuration holds no {type(value).__name__}")  # noqa: TRY004
    copied: dict[str, Plain] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise ValueError(f"{show_path(path)}: a key must be text")  # noqa: TRY004
        left[0] -= 1
        copied[key] = _copied(item, (*path, key), left)
    return copied


def same(one: Plain, other: Plain) -> bool:
    """Whether two values are the same for a strict model: 1, 1.0 and true are three values."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(
            key in other and same(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    # `.nan` is not equal to itself.
    return repr(one) == repr(other) if isinstance(one, float) else bool(one == other)


def compact(value: Plain) -> str:
    """Plain data as JSON, always the same for the same data; the order of keys is none."""
    return "".join(_ENCODER.iterencode(value))


def digest_of(value: Plain) -> str:
    """Hexadecimal SHA-256 of plain data: 64 characters."""
    return hashlib.sha256(compact(value).encode()).hexdigest()
