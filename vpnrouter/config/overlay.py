"""Merges an overlay (RFC 7396) into a configuration file, and reads and writes the overlay's own file.

A merge patch is a mapping. A value of it takes the place of the one below, null removes, a mapping is
merged; lists are replaced as a whole. Two things are settled here that the RFC leaves to its users:

- Null cannot be written into a mapping. Where the file below has one (`green:`) it stays as long as the
  patch says nothing; `fill_nulls` turns those of a new document into what the models take them for.
- A part of a patch that only removes does nothing where nothing is left to be removed from. By the letter
  of the RFC `{blue: {queues: {q: null}}}` would make a `blue` with no queue out of nothing.
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Final

import yaml

from vpnrouter.config.document_values import same
from vpnrouter.config.model import Model
from vpnrouter.config.model_schema import kinds_of
from vpnrouter.config.parse import Document, Node, Plain
from vpnrouter.config.problem import Path, Position, Problem
from vpnrouter.settings.router import Router

NAME: Final = "overlay.yaml"
"""The overlay's name in `router.data_dir`."""

DATA_DIR: Final[Path] = ("router", "data_dir")

_HEAD: Final = """\
# Written by the router: what was changed by its management API. It lies over the router's own file as a merge
# patch (RFC 7396): null removes a key, a list takes the place of the whole list. It is read at the start and on
# SIGHUP; `vpnrouter run --no-overlay` leaves it out. Remove it to go back to the file.
"""

_WAY_OUT: Final = (
    "the overlay cannot be used: correct it, or move it away to go on with the file alone, which --no-overlay"
    " does for once"
)

_DUMPER: Final[Plain] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_DUMPER):  # type: ignore[misc]
    """Writes what several places share as often as it stands there: people read this."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def overlay_of(document: Document) -> str | None:
    """Return the path of the overlay of a configuration file; None where its `router.data_dir` is unsound.

    Like other paths a relative one starts at the directory that the command was started in.
    """
    directory = document.value_of(DATA_DIR)
    if directory is None:
        directory = Router.declared["data_dir"].default
    if not isinstance(directory, str) or not directory or "\0" in directory:
        return None
    return str(FilePath(directory) / NAME)


def text_of(patch: Plain) -> bytes:
    """Return the overlay file of a merge patch. Raises ValueError for text that no file can hold."""
    try:
        return (_HEAD + yaml_of(patch)).encode()
    except (UnicodeError, yaml.YAMLError) as error:
        raise ValueError("text with a character that cannot be written") from error


def yaml_of(data: Plain) -> str:
    """Return a document as YAML for people. Raises yaml.YAMLError for text that no file can hold."""
    text: str = yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=110
    )
    return text


def refusals(overlay: Document) -> list[Problem]:
    """Return what an overlay must not say."""
    problems: list[Problem] = []
    if overlay.root.value is not None and not isinstance(overlay.root.value, dict):
        problems.append(Problem(overlay.value_at(()), "error", "an overlay must be a mapping"))
    if overlay.has(DATA_DIR):
        message = (
            "router.data_dir: the overlay stands in that directory, so it cannot say where it is"
        )
        problems.append(Problem(overlay.value_at(DATA_DIR), "error", message))
    return problems


def way_out(file: str) -> Problem:
    """Return what to say last of an overlay that is why a configuration is refused."""
    return Problem(Position(file, 1, 1), "error", _WAY_OUT)


_EMPTY: Final = ("model", "named", "list")
"""Kinds of values that a key without a value makes an empty one of."""


def merge(base: Document, overlay: Document) -> Document:
    """Return `base` with `overlay` over it; each part has the position of its file, line and column.

    Both roots are mappings, or empty. Nothing of either is changed, and parts that only one has are shared.
    """
    if not overlay.root.children:
        return base
    root = _merged(base.root, overlay.root)
    return base if root is None else Document(base.file, root)


def _merged(base: Node | None, patch: Node) -> Node | None:
    """Return the merged value; None where neither has one. It recurses to CONFIG_DEPTH."""
    if not isinstance(patch.value, dict):
        return patch
    if base is None or not isinstance(base.value, dict):
        merged = _without_removals(patch)
        return base if merged is None else merged
    children = dict(base.children)
    for name, (key, value) in patch.children.items():
        below = children.get(name)
        if value.value is None:
            children.pop(name, None)
            continue
        merged = _merged(None if below is None else below[1], value)
        if merged is not None:
            is_same_file = below is not None and merged.file == below[1].file
            children[name] = (below[0] if below is not None and is_same_file else key, merged)
    return _mapping(base, children)


def _without_removals(patch: Node) -> Node | None:
    """Return what a mapping of a patch adds without a base; None if it only removes."""
    if not patch.children:
        return patch
    children: dict[str | int, tuple[Node, Node]] = {}
    for name, (key, value) in patch.children.items():
        cleaned = _without_removals(value) if isinstance(value.value, dict) else value
        if cleaned is not None and cleaned.value is not None:
            children[name] = (key, cleaned)
    return _mapping(patch, children) if children else None


def _mapping(at: Node, children: dict[str | int, tuple[Node, Node]]) -> Node:
    """Return a mapping with the position of another one."""
    value = {name: child.value for name, (_, child) in children.items()}
    node = Node(at.file, at.line, at.column, value)
    node.children = children
    for _, child in children.values():
        node.size += 1 + child.size
        node.depth = max(node.depth, child.depth + 1)
    return node


def difference(base: Plain, target: Plain) -> dict[str, Plain]:
    """Return the merge patch that makes `target` of `base`, {} where they are the same.

    `merge` of the two is `target`, type for type, keys in another order at most. Parts of `target` stand in
    the patch, not copied. Raises ValueError where `target` has a null in a mapping that `base` does not have
    there: no patch can write it; and where either is no mapping.
    """
    if not isinstance(base, dict) or not isinstance(target, dict):
        raise ValueError("a configuration is a mapping")  # noqa: TRY004
    patch: dict[str, Plain] = {name: None for name in base if name not in target}
    for name, value in target.items():
        if name not in base:
            patch[name] = _writable(value)
            continue
        below = base[name]
        if isinstance(below, dict) and isinstance(value, dict):
            inner = difference(below, value)
            if inner:
                patch[name] = inner
        elif not same(below, value):
            patch[name] = _writable(value)
    return patch


def _writable(value: Plain) -> Plain:
    """Return a new part of a patch, looked through for nulls. In a list they are values like others."""
    if value is None:
        raise ValueError("a merge patch cannot write null")
    if isinstance(value, dict):
        for inner in value.values():
            _writable(inner)
    return value


def fill_nulls(target: Plain, base: Plain, model: type[Model] | None) -> list[Path]:
    """Replace nulls of `target` that `base` does not have there by what `model` takes them for.

    An object or a mapping of objects becomes {}, a list [], a key that may be left out goes. Returns the
    paths of the others: a null stands there that cannot be meant. Lists are left as they are, since a patch
    replaces them as a whole. `model` None is a place that no model knows.
    """
    left: list[Path] = []
    if isinstance(target, dict):
        _fill_model(target, base, model, (), left)
    return left


def _fill_model(
    target: dict[str, Plain], base: Plain, model: type[Model] | None, path: Path, left: list[Path]
) -> None:
    kinds = {} if model is None else kinds_of(model)
    below = base if isinstance(base, dict) else {}
    for key, value in list(target.items()):
        kind = kinds.get(key)
        if isinstance(value, dict):
            inner = None if kind is None else kind.model
            if kind is not None and kind.form == "named":
                _fill_named(value, below.get(key), inner, (*path, key), left)
            else:
                _fill_model(value, below.get(key), inner, (*path, key), left)
        elif value is None and not (key in below and below[key] is None):
            if kind is not None and kind.optional:
                del target[key]
            elif kind is not None and kind.form in _EMPTY:
                target[key] = [] if kind.form == "list" else {}
            else:
                left.append((*path, key))


def _fill_named(
    target: dict[str, Plain], base: Plain, model: type[Model] | None, path: Path, left: list[Path]
) -> None:
    """Turn nulls in a mapping of objects by name into {}.

    Where `model` is None the mapping holds values by name, and the paths of its nulls go to `left`.
    """
    below = base if isinstance(base, dict) else {}
    for name, value in target.items():
        if isinstance(value, dict):
            _fill_model(value, below.get(name), model, (*path, name), left)
        elif value is None and not (name in below and below[name] is None):
            if model is None:
                left.append((*path, name))
            else:
                target[name] = {}
