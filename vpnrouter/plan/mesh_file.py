"""Reads the mesh file: the routers, how to reach them, and the configuration that each is to have.

routers:
  edge:
    url: https://edge.example:8443
    user: operator
    password: {env: EDGE_PASSWORD}
    ca_file: ./ca.pem
    config: edge.yaml        # a router's configuration beside this file, or the same written here
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from vpnrouter import limits
from vpnrouter.config.error_messages import to_problem
from vpnrouter.config.load import combine
from vpnrouter.config.mesh.check import check_mesh
from vpnrouter.config.model import Model, Named, RouterName
from vpnrouter.config.parse import Document, Node, Plain, parse
from vpnrouter.config.problem import Position, Problem
from vpnrouter.config.router import Loaded
from vpnrouter.config.secrets import ENVIRONMENT, Secret

_ROUTER: Final = "router"
_ROUTERS: Final = "routers"
_LISTENERS: Final = "listeners"
_STAND_IN: Final = "-"


class RouterEntry(Model):
    """One router of the mesh."""

    url: Annotated[str, Field(pattern="^https?://[^/]+/?$")]
    """Its http or https listener."""

    user: str = ""
    """A user of its management, of role admin and without msg_vpns; none where it has no users."""

    password: Secret | None = None
    """The user's password."""

    ca_file: str = ""
    """Authority of an https listener (PEM), beside this file; else the system's authorities."""

    config: str | dict[str, Any]
    """What the router shall be: a file beside this one, or the configuration itself. Its blocks replace the
    router's; `router: {name}` may be left out."""


class MeshFile(Model):
    """A mesh file."""

    routers: Named[RouterName, RouterEntry] = Field(min_length=1)
    """Routers by name."""


@dataclass(frozen=True, slots=True)
class PlannedRouter:
    """One router of a mesh file, read. `document` is what it shall be, `loaded` the same accepted."""

    name: str
    entry: RouterEntry
    ca_file: str
    document: Plain
    loaded: Loaded


@dataclass(frozen=True, slots=True)
class Mesh:
    """A mesh file, read: its routers, empty where it is refused, and what is to be said of it."""

    routers: tuple[PlannedRouter, ...]
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> list[str]:
        """A line for each error."""
        return [str(problem) for problem in self.problems if problem.severity == "error"]


class _Elsewhere(Mapping[str, str]):
    """This process's variables, and a stand-in for any other: the router has its own."""

    def __getitem__(self, name: str) -> str:
        return os.environ.get(name) or _STAND_IN

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)


def read_mesh(path: str) -> Mesh:
    """Read a mesh file and the configurations it names, and check each and all together."""
    problems: list[Problem] = []
    document = _parsed(path, problems)
    if document is None:
        return Mesh((), tuple(problems))
    try:
        mesh_file = MeshFile.model_validate(document.data, context={ENVIRONMENT: os.environ})
    except ValidationError as error:
        errors = error.errors(include_url=False)
        return Mesh((), tuple(to_problem(each, document, MeshFile) for each in errors))
    folder = Path(path).parent
    routers = []
    for name, entry in mesh_file.routers.items():
        planned = _planned(name, entry, folder, document, problems)
        if planned is not None:
            routers.append(planned)
    # Of a router whose listeners are left as they are nobody here knows where it answers.
    problems += check_mesh(
        [planned.loaded for planned in routers if _LISTENERS in planned.document]
    )
    problems = [each for each in problems if not _is_elsewhere(each, routers)]
    refused = any(problem.severity == "error" for problem in problems)
    return Mesh(() if refused else tuple(routers), tuple(problems))


def _planned(
    name: str,
    entry: RouterEntry,
    folder: Path,
    mesh: Document,
    problems: list[Problem],
) -> PlannedRouter | None:
    if isinstance(entry.config, str):
        document = _parsed(str(folder / entry.config), problems)
        if document is None:
            return None
    else:
        document = Document(mesh.file, _node(mesh, _ROUTERS, name, "config"))
    data = document.data
    if not isinstance(data, dict):
        problems.append(_error(document, "a router's configuration is a mapping"))
        return None
    block = data.get(_ROUTER)
    if isinstance(block, dict) and block.get("name", name) != name:
        problems.append(
            Problem(
                document.value_at((_ROUTER, "name")),
                "error",
                f"router.name: {block['name']} is called {name} in {mesh.file}",
            )
        )
        return None
    problems_there: list[Problem] = []
    loaded = combine(_named(document, name), None, _Elsewhere(), problems_there)
    problems += problems_there
    if loaded is None:
        return None
    ca_file = str(folder / entry.ca_file) if entry.ca_file else ""
    return PlannedRouter(name, entry, ca_file, data, loaded)


def _is_elsewhere(problem: Problem, routers: list[PlannedRouter]) -> bool:
    """Return whether a warning or note is about a block that the file leaves to the router."""
    block = problem.message.partition(":")[0].partition(".")[0]
    return problem.severity != "error" and any(
        problem.position == planned.loaded.positions.value_at(()) and block not in planned.document
        for planned in routers
    )


def _node(document: Document, *path: str) -> Node:
    node = document.root
    for step in path:
        _, node = node.children[step]
    return node


def _named(document: Document, name: str) -> Document:
    """Return the document with `router: {name}` where it is left out."""
    own_block = document.data.get(_ROUTER)
    if isinstance(own_block, dict) and "name" in own_block:
        return document
    root = document.root
    block = {**(own_block if isinstance(own_block, dict) else {}), "name": name}
    named = Node(root.file, root.line, root.column, {**document.data, _ROUTER: block})
    named.children = dict(root.children)
    inner = Node(root.file, root.line, root.column, block)
    if _ROUTER in root.children:
        inner.children = dict(root.children[_ROUTER][1].children)
    name_node = Node(root.file, root.line, root.column, name)
    inner.children["name"] = (name_node, name_node)
    named.children[_ROUTER] = (inner, inner)
    return Document(document.file, named)


def _parsed(file: str, problems: list[Problem]) -> Document | None:
    try:
        with Path(file).open("rb") as stream:
            text = stream.read(limits.CONFIG_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        problems.append(Problem(Position(file, 1, 1), "error", f"cannot read: {reason}"))
        return None
    own_problems: list[Problem] = []
    document = parse(text, file, own_problems)
    problems += own_problems
    return document


def _error(document: Document, message: str) -> Problem:
    return Problem(document.value_at(()), "error", message)
