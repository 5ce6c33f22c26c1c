"""A parsed document: plain data, and where each part of it stands."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final, final

from vpnrouter.config.problem import Path, Position, show_path

Plain = Any
"""None, bool, int, float, str, list or dict of these; dict keys are str. An alias shares the
object."""


@final
class Node:
    """A value with its place. `size` counts it and all values in it, `depth` the levels, aliases
    written out.
    """

    __slots__ = ("children", "column", "depth", "file", "index", "line", "lost", "size", "value")

    def __init__(self, file: str, line: int, column: int, value: Plain) -> None:
        self.file = file
        self.line = line
        self.column = column
        self.value = value
        self.size = 1
        self.depth = 1
        self.lost = False
        self.index = -1
        """Of a list item: where it stood in the list as written, once another item was dropped."""
        # Most values are no mapping and no list, and a router keeps all nodes of its file.
        self.children: dict[str | int, tuple[Node, Node]] = (
            {} if isinstance(value, (dict, list)) else _NONE
        )
        """By key or index: the node of the key (in a list the item again) and the node of the
        value."""


_NONE: Final[dict[str | int, tuple[Node, Node]]] = {}
"""The children of every value that can have none; nothing is ever put in."""


@final
class Document:
    """One parsed file, or one with another over it: `data` and where each part of it stands."""

    __slots__ = ("data", "file", "root")

    def __init__(self, file: str, root: Node) -> None:
        self.file = file
        self.root = root
        self.data: Plain = root.value

    def value_at(self, path: Path) -> Position:
        """Where the value at `path` begins; of a path that leads nowhere, its deepest part that
        exists.
        """
        node, _ = self._walk(path)
        return Position(node.file, node.line, node.column)

    def key_at(self, path: Path) -> Position:
        """Where the last key of `path` stands; of a path that leads nowhere, its deepest part that
        exists.
        """
        node, key = self._walk(path)
        place = key if key is not None else node
        return Position(place.file, place.line, place.column)

    def places(self) -> Iterator[tuple[Path, Position]]:
        """Every key and item with its path, and where it is written; what is nested deeper comes later."""
        waiting: deque[tuple[Path, Node]] = deque([((), self.root)])
        while waiting:
            path, node = waiting.popleft()
            for step, (key, child) in node.children.items():
                yield (*path, step), Position(key.file, key.line, key.column)
                if child.children:
                    waiting.append(((*path, step), child))

    def has(self, path: Path) -> bool:
        """Whether something is written at `path`."""
        return self._find(path) is not None

    def value_of(self, path: Path) -> Plain:
        """What is written at `path`; None if nothing is."""
        node = self._find(path)
        return node.value if node is not None else None

    def is_whole(self, path: Path) -> bool:
        """Whether `without` dropped nothing directly from the mapping or list at `path`, nor all
        of it.
        """
        node = self._find(path)
        return node is not None and not node.lost

    def show(self, path: Path) -> str:
        """`path` as people write it, with the list indexes of the file."""
        written: list[str | int] = []
        node: Node | None = self.root
        for step in path:
            node = node.children[step][1] if node is not None and step in node.children else None
            written.append(step if node is None or node.index < 0 else node.index)
        return show_path(tuple(written))

    def without(self, paths: Iterable[Path]) -> "Document":
        """This document as if the keys and items at `paths` were not written; places stay as they
        are.
        """
        return Document(self.file, _copy(self.root, frozenset(paths), ()))

    def _find(self, path: Path) -> Node | None:
        node = self.root
        for step in path:
            if step not in node.children:
                return None
            node = node.children[step][1]
        return node

    def _walk(self, path: Path) -> tuple[Node, Node | None]:
        node: Node = self.root
        key: Node | None = None
        for step in path:
            if step not in node.children:
                return node, key if node is not self.root else None
            key, node = node.children[step]
        return node, key


def _copy(node: Node, dropped: frozenset[Path], at: Path) -> Node:
    """A copy of a tree without the parts at `dropped`; lists close their gaps. As deep as
    CONFIG_DEPTH.
    """
    copied = Node(node.file, node.line, node.column, node.value)
    copied.lost = node.lost
    if not isinstance(node.value, (dict, list)):
        return copied
    for step, (key, child) in node.children.items():
        if (*at, step) in dropped:
            copied.lost = True
        else:
            inner = _copy(child, dropped, (*at, step))
            place = step
            if isinstance(step, int):
                inner.index = child.index if child.index >= 0 else step
                place = len(copied.children)
            copied.children[place] = (key, inner)
    values = {step: child.value for step, (_, child) in copied.children.items()}
    copied.value = list(values.values()) if isinstance(node.value, list) else values
    return copied
