"""Parses YAML text into a document: plain data, and the place of each part.

Works on libyaml's events with a stack of its own, so that no input exhausts the interpreter's
stack. The values are those of PyYAML's SafeLoader, with four differences: tags are refused, a key
must be text and must not stand twice, a date is text. Anchors, aliases and merge keys (`<<`) work;
the written-out size is bounded.
"""

from __future__ import annotations

import gc
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final, Never, final

import yaml

from vpnrouter import limits
from vpnrouter.config.problem import Path, Position, Problem, show_path

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
        """Return where the value at `path` begins; of a path that leads nowhere, its deepest part that
        exists.
        """
        node, _ = self._walk(path)
        return Position(node.file, node.line, node.column)

    def key_at(self, path: Path) -> Position:
        """Return where the last key of `path` stands; of a path that leads nowhere, its deepest part that
        exists.
        """
        node, key = self._walk(path)
        place = key if key is not None else node
        return Position(place.file, place.line, place.column)

    def places(self) -> Iterator[tuple[Path, Position]]:
        """Yield every key and item with its path, and where it is written; what is nested deeper comes later."""
        waiting: deque[tuple[Path, Node]] = deque([((), self.root)])
        while waiting:
            path, node = waiting.popleft()
            for step, (key, child) in node.children.items():
                yield (*path, step), Position(key.file, key.line, key.column)
                if child.children:
                    waiting.append(((*path, step), child))

    def has(self, path: Path) -> bool:
        """Return whether the document has a value at `path`."""
        return self._find(path) is not None

    def has_room(self, path: Path) -> bool:
        """Return whether a mapping, or nothing, stands where `path` ends or breaks off."""
        value = self._walk(path)[0].value
        return value is None or isinstance(value, dict)

    def value_of(self, path: Path) -> Plain:
        """Return the value at `path`; None if there is none."""
        node = self._find(path)
        return node.value if node is not None else None

    def is_whole(self, path: Path) -> bool:
        """Return whether `without` dropped nothing directly from the mapping or list at `path`, nor all
        of it.
        """
        node = self._find(path)
        return node is not None and not node.lost

    def is_unwritten(self, path: Path) -> bool:
        """Return whether what is absent at `path` was never written: `without` dropped nothing directly from the
        deepest part of `path` that exists.
        """
        return not self._walk(path)[0].lost

    def show(self, path: Path) -> str:
        """Return `path` for people, with the list indexes of the file."""
        shown_path: list[str | int] = []
        node: Node | None = self.root
        for step in path:
            node = node.children[step][1] if node is not None and step in node.children else None
            shown_path.append(step if node is None or node.index < 0 else node.index)
        return show_path(tuple(shown_path))

    def without(self, paths: Iterable[Path]) -> Document:
        """Return this document without the keys and items at `paths`; positions stay as they
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
    """Return a copy of a tree without the parts at `dropped`; lists close their gaps. As deep as
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


_LOADER: Final[Plain] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STRING: Final = "tag:yaml.org,2002:str"
_MERGE: Final = "tag:yaml.org,2002:merge"
_TEXT_TAGS: Final = frozenset({_STRING, "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value"})
_TOO_DEEP: Final = f"nested deeper than {limits.CONFIG_DEPTH} levels"
_UNPRINTABLE: Final = re.compile(
    "[^\x09\x0a\x0d\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
"""What YAML 1.1, 5.1 does not allow in a stream; a byte order mark only at its beginning."""


def parse(text: bytes, file: str, problems: list[Problem]) -> Document | None:
    """Parse one YAML document.

    None if it is refused: not UTF-8, not YAML, too large, too deep, a key twice, a tag, a second
    document. What is wrong is then appended to `problems`.
    """
    builder = _Builder(file)
    document: Document | None = None
    collects = gc.isenabled()
    # Nothing here is garbage before the end, and each collection would look at all of it again.
    gc.disable()
    try:
        if len(text) > limits.CONFIG_BYTES:
            _refuse(file, 0, 0, f"larger than {limits.CONFIG_BYTES} bytes")
        document = builder.build(_decode(text, file))
    except _Refused as refused:
        builder.problems.append(refused.problem)
    finally:
        if collects:
            gc.enable()
    problems.extend(builder.problems)
    return None if builder.problems else document


class _Refused(Exception):
    """Ends the parsing; never leaves this module."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def _decode(raw: bytes, file: str) -> str:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8-sig", "replace")
        line, column = _place(before)
        _refuse(file, line, column, f"byte 0x{raw[error.start]:02x} is not UTF-8")
    match = _UNPRINTABLE.search(text)
    if match:
        line, column = _place(text[: match.start()])
        _refuse(file, line, column, f"character U+{ord(match.group()):04X} is not allowed in YAML")
    return text


def _place(before: str) -> tuple[int, int]:
    """Return line and column, from 0, of what follows `before`."""
    return before.count("\n"), len(before) - before.rfind("\n") - 1


def _refuse(file: str, line: int, column: int, message: str) -> Never:
    position = Position(file, line + 1, column + 1)
    raise _Refused(Problem(position, "error", message)) from None


@final
class _Open:
    """A mapping or list whose end has not come yet."""

    __slots__ = ("anchor", "key", "merges", "node")

    def __init__(self, node: Node, anchor: str | None) -> None:
        self.node = node
        self.anchor = anchor
        self.key: Node | None = None
        self.merges: list[Node] = []


@final
class _Builder:
    __slots__ = ("_anchors", "_constructor", "_file", "_resolver", "_root", "_stack", "problems")

    def __init__(self, file: str) -> None:
        self._file = file
        self._resolver: Plain = yaml.resolver.Resolver()
        self._constructor = yaml.constructor.SafeConstructor()
        self._stack: list[_Open] = []
        self._anchors: dict[str, Node | None] = {}
        self._root: Node | None = None
        self.problems: list[Problem] = []

    def build(self, text: str) -> Document:
        loader = _LOADER(text)
        documents = 0
        try:
            while loader.check_event():
                event = loader.get_event()
                if isinstance(event, yaml.DocumentStartEvent):
                    documents += 1
                    if documents > 1:
                        self._stop(event.start_mark, "a second document; one file holds one router")
                else:
                    self._take(event)
        except yaml.MarkedYAMLError as error:
            mark = error.context_mark if _is_tag(error) else error.problem_mark
            self._stop(mark or error.context_mark, _wording(error, text))
        except yaml.YAMLError:
            _refuse(self._file, 0, 0, "not YAML")
        finally:
            loader.dispose()
        return Document(self._file, self._root or Node(self._file, 1, 1, {}))

    def _take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._refuse_tag(event)
            tag, value = self._scalar(event)
            node = self._node(event, value)
            self._anchor(event.anchor, node)
            self._add(node, tag)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._refuse_tag(event)
            if len(self._stack) >= limits.CONFIG_DEPTH:
                self._stop(event.start_mark, _TOO_DEEP)
            node = self._node(event, {} if isinstance(event, yaml.MappingStartEvent) else [])
            if event.anchor is not None:
                self._anchors[event.anchor] = None
            self._stack.append(_Open(node, event.anchor))
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            ended = self._stack.pop()
            for merged in ended.merges:
                self._merge(ended.node, merged)
            self._anchor(ended.anchor, ended.node)
            self._add(ended.node, "")
        elif isinstance(event, yaml.AliasEvent):
            self._add(self._aliased(event), "")

    def _node(self, event: Plain, value: Plain) -> Node:
        return Node(self._file, event.start_mark.line + 1, event.start_mark.column + 1, value)

    def _refuse_tag(self, event: Plain) -> None:
        if event.tag is not None and event.tag != "!":
            self._stop(event.start_mark, "tags (! and !!) are not allowed; put the value in quotes")

    def _anchor(self, name: str | None, node: Node) -> None:
        if name is not None:
            self._anchors[name] = node

    def _aliased(self, event: yaml.AliasEvent) -> Node:
        # The name is not repeated: it may be a password that lacks its quotes.
        if event.anchor not in self._anchors:
            self._stop(event.start_mark, "an alias (*) without its anchor (&); put text in quotes")
        node = self._anchors[event.anchor]
        if node is None:
            self._stop(event.start_mark, "an alias (*) inside its own anchor (&)")
        return node

    def _scalar(self, event: yaml.ScalarEvent) -> tuple[str, Plain]:
        plain = event.implicit[0] and event.tag is None
        if not plain:
            return _STRING, event.value
        tag: str = self._resolver.resolve(yaml.ScalarNode, event.value, (True, False))
        if tag in _TEXT_TAGS or tag == _MERGE:
            return tag, event.value
        if ":" in event.value:
            # YAML 1.1 takes 12:30 for a number of base 60, and computes a long one in quadratic time.
            cure = (
                "is no number with a colon in it: put text in quotes, write a number without colons"
            )
            self._stop(event.start_mark, f"{self._at()}{cure}")
        try:
            construct = self._constructor.yaml_constructors[tag]
            return tag, construct(self._constructor, yaml.ScalarNode(tag, event.value))
        except (ValueError, OverflowError, KeyError):
            # The resolver takes 0b_ or a number of 5,000 digits for an int, and int() does not.
            self._stop(event.start_mark, f"{self._at()}not a number; put text in quotes")

    def _at(self) -> str:
        """Return the path of the value that comes next, in front of a message."""
        path: list[str | int] = []
        for level in self._stack:
            if isinstance(level.node.value, list):
                path.append(len(level.node.value))
            elif level.key is not None:
                path.append(level.key.value)
        return f"{show_path(tuple(path))}: " if path else ""

    def _add(self, node: Node, tag: str) -> None:
        """Put a finished value where it belongs: root, list item, mapping key or mapping value."""
        if not self._stack:
            self._root = node
            return
        into = self._stack[-1]
        owner = into.node
        owner.size += node.size
        if owner.size > limits.CONFIG_VALUES:
            _refuse(
                self._file,
                node.line - 1,
                node.column - 1,
                f"more than {limits.CONFIG_VALUES} values with all aliases written out",
            )
        owner.depth = max(owner.depth, node.depth + 1)
        if owner.depth > limits.CONFIG_DEPTH:
            _refuse(self._file, node.line - 1, node.column - 1, _TOO_DEEP)
        if isinstance(owner.value, list):
            owner.children[len(owner.value)] = (node, node)
            owner.value.append(node.value)
        elif into.key is None:
            into.key = self._checked_key(node, tag)
        else:
            key, into.key = into.key, None
            if key.value == "<<" and key.size == 0:
                into.merges.append(node)
            elif key.value in owner.children:
                self._report(key, f"key {key.value} stands twice")
            elif key.size != _UNUSABLE:
                owner.children[key.value] = (key, node)
                owner.value[key.value] = node.value

    def _checked_key(self, node: Node, tag: str) -> Node:
        key = Node(self._file, node.line, node.column, node.value)
        if tag == _MERGE:
            key.size = 0
        elif not isinstance(node.value, str):
            self._report(node, "a key must be text; put it in quotes")
            key.value, key.size = "", _UNUSABLE
        return key

    def _merge(self, into: Node, merged: Node) -> None:
        """Add what a merge key names; the mapping's own keys take precedence (YAML merge
        key, 2005).
        """
        sources = (
            [child for _, child in merged.children.values()]
            if isinstance(merged.value, list)
            else [merged]
        )
        for source in sources:
            if not isinstance(source.value, dict):
                self._report(merged, "a merge key (<<) takes a mapping or a list of mappings")
                return
            for name, pair in source.children.items():
                if name not in into.children:
                    into.children[name] = pair
                    into.value[name] = pair[1].value

    def _report(self, node: Node, message: str) -> None:
        position = Position(self._file, node.line, node.column)
        if len(self.problems) >= limits.CONFIG_PROBLEMS:
            _refuse(self._file, node.line - 1, node.column - 1, "more problems; read no further")
        self.problems.append(Problem(position, "error", message))

    def _stop(self, mark: Plain, message: str) -> Never:
        line, column = (mark.line, mark.column) if mark is not None else (0, 0)
        _refuse(self._file, line, column, message)


_UNUSABLE: Final = -1
"""Size of a key that was refused; its value is read and dropped."""


def _is_tag(error: yaml.MarkedYAMLError) -> bool:
    """Return whether what begins with an exclamation mark is at fault."""
    return "scanning a tag" in (error.context or "") or "tag handle" in (error.problem or "")


def _wording(error: yaml.MarkedYAMLError, text: str) -> str:
    """Return what is wrong, with no part of the text beyond one character: it may be a secret."""
    problem = error.problem or "the text ends too early"
    if "cannot start any token" in problem and error.problem_mark is not None:
        lines = text.split("\n")
        line = lines[error.problem_mark.line] if error.problem_mark.line < len(lines) else ""
        character = line[error.problem_mark.column : error.problem_mark.column + 1]
        if character == "\t":
            return "not YAML: a tab; indent with spaces"
        return f"not YAML: text must not begin with {character} here; put it in quotes"
    if "maximum nesting depth" in problem:
        # From libyaml 0.2.6 on (PyYAML 6.0.4) it refuses to look ahead further than some levels itself.
        return _TOO_DEEP
    if _is_tag(error):
        return "not YAML: text must not begin with ! here; put it in quotes"
    return f"not YAML: {_cure(problem, error)}"


_NO_KEY_HERE: Final = (
    "a colon where no key can be: the line above lacks its own colon, this line is indented too far, or the text with"
    " the colon needs quotes"
)


def _cure(problem: str, error: yaml.MarkedYAMLError) -> str:
    """Return what to do about a complaint of the parser, which says what it did not find."""
    began = error.context_mark
    where = (
        "" if began is None else f" that begins in line {began.line + 1}, column {began.column + 1}"
    )
    context = error.context or ""
    if "expected '-' indicator" in problem:
        return f"the indentation fits no line above: each item of the list{where} begins with -, below the first one"
    if "expected key" in problem or "expected <block end>" in problem:
        return f"the indentation fits no line above: indent keys of one mapping alike, as in the one{where}"
    if "expected ',' or" in problem:
        last = problem[-2] if problem.endswith("'") else "}"
        return f"a comma or the closing {last} is missing in the text in brackets{where}"
    if "mapping values are not allowed" in problem:
        return _NO_KEY_HERE
    if "unexpected end of stream" in problem and "quoted scalar" in context:
        return f"the quotation mark is not closed in the text{where}"
    if "could not find expected ':'" in problem:
        return f"a colon is missing behind the key{where}, or its text needs quotes"
    if "alphabetic or numeric" in problem:
        sign = "*" if "alias" in context else "&"
        return f"text must not begin with {sign} here; put it in quotes"
    return problem
