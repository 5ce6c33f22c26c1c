"""The base of all configuration models, and how a model is made of a class of `settings`.

The models know nothing of YAML, files or positions, and nothing of one another beyond what they
hold: a rule that spans two of them stands in a check module. Classes are built at import:
deferring that moves its 70 ms to the first load and saves nothing (measured).
"""

from __future__ import annotations

import copyreg
import ssl
from functools import partial
from types import NoneType
from typing import Annotated, Final, TypeVar, Union, cast, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    create_model,
    model_validator,
)

from vpnrouter.config.secrets import Password, Secret, Token
from vpnrouter.settings import names, schema
from vpnrouter.settings.bridge import CIPHER_SUITES, DEFAULT_CIPHERS
from vpnrouter.settings.kinds import Kind, named_in
from vpnrouter.settings.schema import Attribute, Settings, Value, is_optional, types_of

RouterName = Annotated[str, AfterValidator(names.ROUTER.check)]
MsgVpnName = Annotated[str, AfterValidator(names.MSG_VPN.check)]
ClientUsernameName = Annotated[str, AfterValidator(names.CLIENT_USERNAME.check)]


K = TypeVar("K")
T = TypeVar("T")


def _empty_list(value: object) -> object:
    return () if value is None else value


def _empty_mapping(value: object) -> object:
    return {} if value is None else value


Many = Annotated[tuple[T, ...], Field(strict=False), BeforeValidator(_empty_list)]
"""A list in the document, a tuple in the model; the items stay strict. A key without a value is an
empty list."""

Named = Annotated[dict[K, T], BeforeValidator(_empty_mapping)]
"""Objects by name. A key without a value is an empty mapping."""


class Model(BaseModel):
    """Base of all models: no coercion, no change after loading, no unknown key.

    The string under a field is its documentation in `configs/reference.yaml`.
    """

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        protected_namespaces=(),
    )

    @model_validator(mode="before")
    @classmethod
    def _of_nothing(cls, value: object) -> object:
        """Take a key without a value, as in `green:`, for an object with every default."""
        return {} if value is None else value


def _check_ciphers(written: str) -> str:
    """Check that OpenSSL knows all names for TLS 1.2: it would pass over others in silence."""
    if written == DEFAULT_CIPHERS:
        return written
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL")
    suites = context.get_ciphers()
    known = {str(suite["name"]) for suite in suites if suite["protocol"] != "TLSv1.3"}
    for name in written.split(":"):
        if name not in known:
            raise ValueError(f"{name!r} is no cipher suite of TLS 1.2 that this system has")
    return written


_BY_SYSTEM: Final = {CIPHER_SUITES: _check_ciphers}
"""Texts that only the system can check, and how."""

_SECRETS: Value = {
    schema.Password: Password,
    schema.Secret: Secret,
    schema.Token: Token,
}

_MADE: dict[type[Settings], type[Model]] = {}


def model_of(declared: type[Settings]) -> type[Model]:
    """Return the model of a class of settings. It is a subclass of it, and has its name and its documentation."""
    if declared not in _MADE:
        types = types_of(declared)
        fields: Value = {name: _field(types[name], one) for name, one in declared.declared.items()}
        fields |= {kind.key: objects_field(kind) for kind in named_in(declared)}
        checks: Value = {}
        if hasattr(declared, "complete"):
            checks["_completed"] = model_validator(mode="before")(_completed)
        if hasattr(declared, "check"):
            checks["_checked"] = model_validator(mode="after")(_checked)
        if declared.short:
            checks["_from_text"] = model_validator(mode="before")(_from_text)
        bases: Value = (declared, Model)
        model = create_model(
            declared.__name__,
            __base__=bases,
            __module__=declared.__module__,
            __doc__=declared.__doc__,
            __validators__=checks,
            **fields,
        )
        copyreg.pickle(model, partial(_reduced, declared))
        _MADE[declared] = cast("type[Model]", model)
    return _MADE[declared]


def _reduced(declared: type[Settings], configured: Model) -> Value:
    """Return what a process that gets it makes a model of again: by its name there is only what it is made of."""
    return _restored, (declared, configured.__getstate__())


def _restored(declared: type[Settings], state: Value) -> Model:
    made = model_of(declared)
    configured = made.__new__(made)
    configured.__setstate__(state)
    return configured


def is_made(model: type) -> bool:
    """Return whether a class is a model that `model_of` made."""
    return model in _MADE.values()


S = TypeVar("S", bound=Settings)


def changed(configured: S, **values: Value) -> S:
    """Return a copy of a model with other values of some attributes, which are not checked."""
    copy: Value = configured
    changed: S = copy.model_copy(update=values)
    return changed


def is_said(configured: Settings) -> bool:
    """Return whether a document has a value for an object."""
    return isinstance(configured, Model) and bool(configured.model_fields_set)


def _checked(configured: Value) -> Value:
    configured.check()
    return configured


def _completed(cls: Value, value: object) -> object:
    return cls.complete(value) if isinstance(value, dict) else value


def objects_field(kind: Kind) -> tuple[Value, Value]:
    """Return the annotation of the objects of a kind by their names, and the field with its documentation."""
    if kind.settings is None or kind.named is None:
        raise TypeError(f"{kind.one} has no objects by name")
    key: Value = Annotated[str, AfterValidator(kind.named.check)]
    hint: Value = Named[key, model_of(kind.settings)]  # type: ignore[misc]
    examples: Value = [kind.example]
    if not kind.built_in:
        return hint, Field(default_factory=dict, examples=examples, description=kind.doc)

    complete: Value = getattr(kind.settings, "complete_built_in", None)

    def with_built_in(value: object) -> object:
        value = {} if value is None else value
        if not isinstance(value, dict):
            return value
        if complete is None:
            return {kind.built_in: {}, **value}
        return {**value, kind.built_in: complete(value.get(kind.built_in, {}))}

    return Annotated[hint, BeforeValidator(with_built_in)], Field(
        default={}, validate_default=True, examples=examples, description=kind.doc
    )


def _from_text(cls: Value, value: object) -> object:
    return {cls.short: value} if isinstance(value, str) else value


def _field(hint: Value, declared: Attribute) -> tuple[Value, Value]:
    """Return the annotation of an attribute, and its default."""
    if declared.group is not None:
        inner: Value = model_of(declared.group)
        if declared.optional:
            return inner | None, Field(default=None)
        return inner, Field(default_factory=inner)
    kind = hint
    if is_optional(hint):
        kind = Union[tuple(argument for argument in get_args(hint) if argument is not NoneType)]  # noqa: UP007
    container: Value = get_origin(kind)
    if container in (tuple, dict):
        kind = get_args(kind)[container is dict]
    rules = _rules(declared)
    if declared.items is not None:
        kind = model_of(declared.items)
    elif kind in _SECRETS:
        kind, rules = _SECRETS[kind], []
    elif kind is float:
        rules.append(Field(allow_inf_nan=False))
    for rule in rules:
        kind = Annotated[kind, rule]
    if container is tuple:
        kind = Annotated[Many[kind], Field(max_length=declared.longest)]  # type: ignore[valid-type]
    elif declared.named is not None:
        kind = Named[Annotated[str, AfterValidator(declared.named.check)], kind]  # type: ignore[valid-type]
    if is_optional(hint):
        kind = kind | None
    more: Value = {} if declared.key or declared.required else {"default": declared.default}
    return kind, Field(alias=declared.alias, examples=list(declared.examples) or None, **more)


def _rules(declared: Attribute) -> list[Value]:
    """Return what a value has to fulfil, or each of a list."""
    rules: list[Value] = []
    text = declared.text
    if declared.least is not None:
        rules.append(Field(ge=declared.least, le=declared.most))
    if text is not None:
        rules.append(
            Field(min_length=text.least or None, max_length=text.most)
            if text.check is str
            else AfterValidator(text.check)
        )
        if text in _BY_SYSTEM:
            rules.append(AfterValidator(_BY_SYSTEM[text]))
    if declared.check is not None:
        rules.append(AfterValidator(declared.check))
    return rules
