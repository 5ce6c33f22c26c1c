"""Describes the paths of the configuration API for OpenAPI, attribute by attribute."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from vpnrouter.config.model import Model
from vpnrouter.config.model_schema import Kind, bounds_of, keys_of, kinds_of
from vpnrouter.config.reference import field_docs
from vpnrouter.management.config.attribute import (
    NUMBER,
    OBJECT,
    RECORDS,
    TEXT,
    TEXTS,
    TRUTH,
    Attribute,
)
from vpnrouter.management.config.kinds import children_of
from vpnrouter.management.config.object_type import ObjectType
from vpnrouter.text import camel

Schema = dict[str, Any]

_TYPES: Final = {
    TEXT: "string",
    NUMBER: "integer",
    TRUTH: "boolean",
    TEXTS: "array",
    RECORDS: "array",
    OBJECT: "object",
}

_ANSWERS: Final = {
    400: "No such object, or an attribute or parameter that is wrong",
    401: "A user and password are needed",
    403: "The user may not",
}

_docs = cache(field_docs)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationText:
    """What a path is for: an object or the collection, and what happens to it."""

    one: bool = False
    many: bool = False
    creates: bool = False
    changes: bool = False
    deletes: bool = False


def fill(operation: Schema, kind: ObjectType, says: OperationText) -> None:
    """Put the description of a path into `operation`: parameters, body, answers."""
    operation["parameters"] = parameters_of(kind if says.one else kind.parent)
    operation["responses"] = answers(kind, many=says.many, nothing=says.deletes)
    if says.creates or says.changes:
        operation["requestBody"] = body(kind, creates=says.creates)


def schema_of(attribute: Attribute) -> Schema:
    """Return the JSON schema of one attribute."""
    schema: Schema = {"type": _TYPES[attribute.form]}
    if attribute.form == TEXTS:
        schema["items"] = {"type": "string"}
    if attribute.form == RECORDS and attribute.record is not None:
        schema["items"] = _record(attribute.record)
    if attribute.form == OBJECT and attribute.record is not None:
        schema |= _record(attribute.record)
    schema["description"] = _description(attribute)
    if attribute.bounds is not None:
        schema["minimum"], schema["maximum"] = attribute.bounds
    if attribute.lengths is not None:
        schema["minLength"], schema["maxLength"] = attribute.lengths
    if attribute.choices:
        blank = [""] if attribute.blank and "" not in attribute.choices else []
        schema["enum"] = [*attribute.choices, *blank]
    if attribute.write_only:
        schema["writeOnly"] = True
    if not attribute.required and attribute.default is not None:
        schema["default"] = attribute.default
    return schema


def row_schema(kind: ObjectType) -> Schema:
    """Return the JSON schema of an answer's object."""
    known = {name: {"type": "string"} for each in kind.chain[:-1] for name in each.key_names}
    own = {
        attribute.name: _shown(schema_of(attribute))
        for attribute in kind.attributes.values()
        if not attribute.write_only
    }
    return {"type": "object", "properties": known | own}


def body_schema(kind: ObjectType, *, creates: bool) -> Schema:
    """Return the JSON schema of a body that makes an object, or of one that changes it."""
    properties = {
        attribute.name: schema_of(attribute)
        for attribute in kind.attributes.values()
        if creates or not attribute.identifying
    }
    for name, only in kind.absent.items():
        properties[name] = {
            "enum": [only],
            "description": "Not part of this router, which takes the default alone.",
        }
    for name in sorted(kind.tolerated):
        properties[name] = {"deprecated": True, "description": "Not looked at."}
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [attribute.name for attribute in kind.attributes.values() if attribute.required]
    if creates and required:
        schema["required"] = required
    if kind.together:
        schema["dependentRequired"] = {
            name: [other] for pair in kind.together for name, other in (pair, pair[::-1])
        }
    return schema


def parameters_of(kind: ObjectType | None) -> list[Schema]:
    """Return the names in the path of an object."""
    return [
        {
            "name": each.name,
            "in": "path",
            "required": True,
            "description": _description(each),
            "schema": _path_schema(each),
        }
        for above in (() if kind is None else kind.chain)
        for each in above.identity
    ]


def body(kind: ObjectType, *, creates: bool) -> Schema:
    """Return the description of a body."""
    schema = body_schema(kind, creates=creates)
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def answers(kind: ObjectType, *, many: bool = False, nothing: bool = False) -> Schema:
    """Return the answers of a path."""
    row = row_schema(kind)
    names = ["uri", *(f"{child.collection}Uri" for child in children_of(kind))]
    links = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    schema: Schema = {"type": "object", "properties": {"meta": {"type": "object"}}}
    if not nothing:
        schema["properties"] |= {
            "data": {"type": "array", "items": row} if many else row,
            "links": {"type": "array", "items": links} if many else links,
        }
    operation: Schema = {
        "200": {"description": "Done", "content": {"application/json": {"schema": schema}}}
    }
    return operation | {str(code): {"description": text} for code, text in _ANSWERS.items()}


def _path_schema(attribute: Attribute) -> Schema:
    schema: Schema = {"type": "string"}
    if all(attribute.choices) and attribute.choices:
        schema["enum"] = list(attribute.choices)
    elif attribute.lengths is not None:
        schema["minLength"] = attribute.lengths[0]
    return schema


def _shown(schema: Schema) -> Schema:
    """Return the schema for an answer: a text in the file may be longer than one in a request."""
    return {name: value for name, value in schema.items() if name not in {"minLength", "maxLength"}}


def _record(model: type[Model]) -> Schema:
    docs = _docs(model)
    kinds = kinds_of(model)
    properties: dict[str, Schema] = {}
    for key, info in keys_of(model).items():
        description = docs.get(key, docs.get(f"{key}_", ""))
        properties[camel(key)] = _value(kinds[key]) | {"description": description}
        bounds = bounds_of(info)
        if bounds is not None:
            properties[camel(key)] |= {"minimum": bounds[0], "maximum": bounds[1]}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _value(kind: Kind) -> Schema:
    """Return the JSON schema of one value of an object."""
    if kind.form == "model" and kind.model is not None:
        return _record(kind.model)
    if kind.form == "named":
        return {"type": "object", "additionalProperties": {"type": "string"}}
    if kind.form == "list":
        return {"type": "array", "items": {"type": "string"}}
    return {"type": "integer" if kind.form == "integer" else "string"}


def _description(attribute: Attribute) -> str:
    text = attribute.says
    if not text and attribute.of is not None:
        text = _docs(attribute.of).get(attribute.key, "")
    if attribute.form == TEXT and attribute.blank:
        text += ' "" for none.'
    if attribute.file:
        text += " A path on the router's machine."
    if attribute.hashed:
        text += " It is kept as a hash."
    return f"{text} Not part of the field's API." if attribute.ours else text
