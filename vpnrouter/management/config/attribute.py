"""Declares one attribute of an object type: its name in SEMP, its place in the document, its values."""

from dataclasses import dataclass
from typing import Any, Final

from vpnrouter import limits
from vpnrouter.config.model import Model
from vpnrouter.config.model_schema import Kind, keys_of, kinds_of
from vpnrouter.config.parse import Plain
from vpnrouter.config.secrets import Secret
from vpnrouter.management.errors import invalid
from vpnrouter.text import camel, printable

TEXT: Final = "text"
NUMBER: Final = "number"
TRUTH: Final = "truth"
TEXTS: Final = "texts"
RECORDS: Final = "records"
OBJECT: Final = "object"

_TYPES: Final[dict[str, type]] = {
    TEXT: str,
    NUMBER: int,
    TRUTH: bool,
    TEXTS: list,
    RECORDS: list,
    OBJECT: dict,
}

_WORDS: Final = {
    TEXT: "a text",
    NUMBER: "a whole number",
    TRUTH: "true or false",
    TEXTS: "a list of texts",
    RECORDS: "a list of objects",
    OBJECT: "an object",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """What one attribute is.

    `keys` lead to its value inside the object's own mapping of a document, () for one that is part of the
    object's key or always the same. `default` is the field's, `written_default` what holds where a
    document says nothing. `blank` says that "" stands for no value. `of` and `key` are where its
    description is.
    """

    name: str
    form: str
    keys: tuple[str, ...] = ()
    default: Any = None
    written_default: Any = None
    bounds: tuple[int, int] | None = None
    lengths: tuple[int, int] | None = None
    choices: tuple[str, ...] = ()
    blank: bool = False
    required: bool = False
    identifying: bool = False
    fixed: bool = False
    write_only: bool = False
    hashed: bool = False
    file: bool = False
    ours: bool = False
    record: type[Model] | None = None
    of: type[Model] | None = None
    key: str = ""
    says: str = ""

    def taken(self, value: Plain) -> Plain:
        """Return the value of a request in the form of a document. Raises RequestError; no message shows a secret."""
        if not _is(value, self.form):
            raise invalid(f"{self.name}: must be {_WORDS[self.form]}")
        if self.form == TEXT:
            return self._text(value)
        if self.form == NUMBER and self.bounds is not None:
            least, most = self.bounds
            if not least <= value <= most:
                shown = value if abs(value) < 1 << 64 else "a larger number"
                raise invalid(f"{self.name}: must be from {least} to {most}, not {shown}")
        if self.form == TEXTS:
            return [_encodable(self.name, each) for each in value]
        if self.form == RECORDS:
            return [_record(self.name, self.record, each) for each in value]
        if self.form == OBJECT:
            return _record(self.name, self.record, value)
        return value

    def shown(self, value: Plain) -> Plain:
        """Return the value of a model in the form of an answer."""
        if value is None:
            return "" if self.form == TEXT else self.default
        if self.form == TEXTS:
            return list(value)
        if self.form == OBJECT:
            return _camel(value)
        if self.form == RECORDS:
            return [_camel(each) for each in value]
        return "" if isinstance(value, Secret) else value

    def _text(self, value: str) -> str:
        _encodable(self.name, value)
        if self.choices and value not in self.choices and not (self.blank and not value):
            shown = f", not {value}" if len(value) <= 60 and not self.write_only else ""
            raise invalid(f"{self.name}: must be one of {', '.join(self.choices)}{shown}")
        if self.lengths is not None and not self.lengths[0] <= len(value) <= self.lengths[1]:
            least, most = self.lengths
            raise invalid(f"{self.name}: has {len(value)} characters, must have {least} to {most}")
        return value


def _is(value: object, form: str) -> bool:
    # True is an int for Python and no number for anybody else.
    return isinstance(value, _TYPES[form]) and isinstance(value, bool) is (form == TRUTH)


def _record(path: str, model: type[Model] | None, value: Plain) -> Plain:
    """Return an object with the keys of a document. Raises RequestError for a key or a value that there is not."""
    if not isinstance(value, dict):
        raise invalid(f"{path}: must be {_WORDS[OBJECT]}")
    kinds = {} if model is None else kinds_of(model)
    known = {camel(key): key for key in kinds}
    found: dict[str, Plain] = {}
    for name, field in value.items():
        shown = printable(name, limits.NAME_SHOWN_CHARS)
        if name not in known:
            raise invalid(f"{path}: there is no attribute {shown}")
        found[known[name]] = _field(f"{path}.{shown}", kinds[known[name]], field)
    return found


def _field(path: str, kind: Kind, value: Plain) -> Plain:
    """Return one value of an object in the form of a document. Raises RequestError."""
    if kind.optional and value is None:
        return None
    if kind.form == "model":
        return _record(path, kind.model, value)
    if kind.form == "integer":
        if not _is(value, NUMBER) or abs(value) >= 1 << 63:
            raise invalid(f"{path}: must be {_WORDS[NUMBER]}")
        return value
    if kind.form == "named":
        if not isinstance(value, dict):
            raise invalid(f"{path}: must be {_WORDS[OBJECT]}")
        return {
            _encodable(path, name): _encodable(
                f"{path}.{printable(name, limits.NAME_SHOWN_CHARS)}", text
            )
            for name, text in value.items()
        }
    if kind.form == "list":
        if not isinstance(value, list):
            raise invalid(f"{path}: must be {_WORDS[TEXTS]}")
        return [_encodable(path, text) for text in value]
    return _encodable(path, value)


def _camel(record: Model) -> Plain:
    """Return the keys of a model that have a value, objects within it likewise; names that users give stay."""
    attributes = {
        key: getattr(record, f"{key}_" if key == "from" else key) for key in keys_of(type(record))
    }
    return {
        camel(key): _camel(value) if isinstance(value, Model) else value
        for key, value in attributes.items()
        if value is not None and value not in ({}, ())
    }


def _encodable(name: str, value: Plain) -> str:
    """Return a text without halves of characters, which JSON can name."""
    if not isinstance(value, str):
        raise invalid(f"{name}: must be a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise invalid(f"{name}: is no Unicode text") from None
    return value
