"""How commands read a mesh file and reach its routers."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vpnrouter.cli._told import note

if TYPE_CHECKING:
    from vpnrouter.management.client import ManagementClient
    from vpnrouter.plan.mesh_file import Asked, Mesh

MeshPath = Annotated[
    Path, typer.Argument(metavar="MESH", help="The mesh file (YAML).", show_default=False)
]

Prune = Annotated[
    bool, typer.Option("--prune", help="Message VPNs that the file does not name go.")
]


def read(path: Path) -> "Mesh":
    """The mesh file, its warnings and notes told; raises ConfigError for one that is refused."""
    from vpnrouter.errors import ConfigError
    from vpnrouter.plan.mesh_file import read_mesh

    mesh = read_mesh(str(path))
    if mesh.errors:
        raise ConfigError(mesh.errors)
    for problem in mesh.problems:
        note(problem)
    return mesh


@contextmanager
def reached(mesh: "Mesh") -> Iterator[dict[str, "ManagementClient"]]:
    """A client for each router of a mesh, by name."""
    with ExitStack() as stack:
        yield {asked.name: stack.enter_context(_client(asked)) for asked in mesh.routers}


def _client(asked: "Asked") -> "ManagementClient":
    from vpnrouter.management.client import ManagementClient

    entry = asked.entry
    password = "" if entry.password is None else entry.password.reveal()
    return ManagementClient(entry.url, entry.user, password, ca_file=asked.ca_file)
