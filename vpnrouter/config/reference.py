"""Writes the reference file `configs/reference.yaml`: every key, its default, what it is for.

`python -m vpnrouter.config.reference` prints it. All of it is read from the models: names,
defaults, ranges and the strings under the fields.
"""

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import yaml
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from vpnrouter.config.model import Model, is_made
from vpnrouter.config.model_schema import Kind, bounds_of, kind_of
from vpnrouter.config.router import RouterConfig
from vpnrouter.settings.schema import Settings

_WIDTH: Final = 98
"""Two less than a line may have: a block without a default stands behind `# `."""

_STEP: Final = "  "
_BARE: Final = re.compile(r"[A-Za-z./][A-Za-z0-9_./-]*")
_PLACEHOLDERS: Final = {"integer": "NUMBER", "secret": "{env: NAME}", "list": "[]", "text": "TEXT"}

_HEAD: Final = """\
# Every key of a router's configuration with its default, made from the models by
#     python -m vpnrouter.config.reference
# Objects that are listed or have a name stand here once, under an example name. Only keys marked
# "required" must be written. A key behind a # has no default; its value here is an example or
# says what kind of value it takes.
"""


def reference() -> str:
    """Return the text of the reference file. It is itself a configuration that loads."""
    return _HEAD + "\n".join(_model(RouterConfig, "", blank_lines=True)) + "\n"


def field_docs(model: type[Model]) -> dict[str, str]:
    """Return the string under each field of a model, or under its declaration, each as one line."""
    docs = {
        name: field.description for name, field in model.model_fields.items() if field.description
    }
    for base in reversed(model.__mro__):
        if (
            issubclass(base, (Model, Settings))
            and base not in (Model, Settings)
            and not is_made(base)
        ):
            docs |= _strings(base)
    return docs


def _strings(of: type) -> dict[str, str]:
    """Return the strings in the body of a class. An attribute like another one has that one's where it has none."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(of))).body[0]
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    docs: dict[str, str] = {}
    for name, each in vars(of).get("declared", {}).items():
        if each.like is not None:
            owner, known = each.like
            docs[name] = _strings(owner)[known]
    for statement, below in pairwise(body):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            docs[statement.target.id] = " ".join(str(below.value.value).split())
    return docs


def _model(model: type[Model], indent: str, *, blank_lines: bool = False) -> Iterator[str]:
    docs = field_docs(model)
    for name, field in model.model_fields.items():
        if blank_lines:
            yield ""
        kind = kind_of(field.annotation)
        yield from _comment(f"{docs[name]} {_constraint(field, kind)}", indent)
        yield from _field(field.alias or name, field, kind, indent)


def _comment(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text.strip(),
        _WIDTH,
        initial_indent=f"{indent}# ",
        subsequent_indent=f"{indent}# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _constraint(field: FieldInfo, kind: Kind) -> str:
    """Return what the value may be, and whether it must be written."""
    parts: list[str] = []
    bounds = bounds_of(field)
    if bounds is not None:
        parts.append(f"{bounds[0]} to {bounds[1]}")
    if kind.choices:
        parts.append("one of " + ", ".join(kind.choices))
    if field.is_required() and kind.form != "model":
        parts.append("required")
    elif kind.optional and field.examples and kind.form != "model":
        parts.append("no default")
    elif kind.form == "list" and kind.model is None and field.examples:
        parts.append(f"for example [{_scalar(field.examples[0])}]")
    return f"({'; '.join(parts)})" if parts else ""


def _field(name: str, field: FieldInfo, kind: Kind, indent: str) -> Iterator[str]:
    example = field.examples[0] if field.examples else None
    if kind.model is not None:
        lines = list(_inner(name, kind, kind.model, indent, example))
        yield from lines if not kind.optional or field.examples else _commented(lines, indent)
    elif field.is_required() or (kind.optional and example is not None):
        yield f"{indent}{name}: {_scalar(example)}"
    elif kind.optional:
        yield f"{indent}# {name}: {_PLACEHOLDERS[kind.form]}"
    else:
        default = field.get_default(call_default_factory=True)
        if default is PydanticUndefined:
            raise ValueError(f"{name} has no default")
        yield f"{indent}{name}: {'[]' if default == () else _scalar(default)}"


def _inner(
    name: str, kind: Kind, model: type[Model], indent: str, example: object
) -> Iterator[str]:
    """Yield the key of a model, of named models or of a list of models, and one model below it."""
    yield f"{indent}{name}:"
    deeper = indent + _STEP
    if kind.form == "named":
        yield f"{deeper}{_scalar(example)}:"
        deeper += _STEP
    elif kind.form == "list":
        yield f"{deeper}-"
        deeper += _STEP
    yield from _model(model, deeper)


def _commented(lines: list[str], indent: str) -> Iterator[str]:
    for line in lines:
        yield f"{indent}# {line.removeprefix(indent)}"


def _scalar(value: object) -> str:
    """Return a value as YAML text that parses to the same value."""
    if isinstance(value, str) and _BARE.fullmatch(value) and yaml.safe_load(value) == value:
        return value
    return json.dumps(value)


if __name__ == "__main__":
    print(reference(), end="")
