"""Made-up meshes and a browser to look at their pages."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from vpnrouter.report.page.contents import Contents, Grades, ShapeIndex, grade
from vpnrouter.report.page.drawing import Drawing, draw
from vpnrouter.report.page.page import page
from vpnrouter.report.schema import Rows
from vpnrouter.testing.modules import load_module


def _beside(name: str) -> ModuleType:
    # Tests are no package (importlib mode), so that a module beside them is loaded by its path.
    return load_module(name, Path(__file__).parent / f"{name}.py")


@pytest.fixture(scope="session")
def meshes() -> ModuleType:
    """The generator of made-up meshes."""
    return _beside("meshes")


@pytest.fixture(scope="session")
def mesh_30(meshes: ModuleType) -> Contents:
    """30 routers, 60 message VPNs, 90 bridges and something in every table."""
    contents = meshes.mesh(30, 60, 90)
    assert isinstance(contents, Contents)
    return contents


@pytest.fixture
def graded() -> Callable[[Rows, Rows], Grades]:
    """Grades of nodes and edges without findings."""

    def make(nodes: Rows, edges: Rows) -> Grades:
        return grade(Contents(nodes=nodes, edges=edges), ShapeIndex(nodes, edges))

    return make


@pytest.fixture
def drawn(graded: Callable[[Rows, Rows], Grades]) -> Callable[[Rows, Rows], Drawing]:
    """The drawing of nodes and edges without findings."""

    def make(nodes: Rows, edges: Rows) -> Drawing:
        return draw(nodes, edges, graded(nodes, edges))

    return make


@pytest.fixture(scope="session")
def text_30(mesh_30: Contents, meshes: ModuleType) -> str:
    """The page of `mesh_30`."""
    return page(meshes.summary_of(mesh_30), mesh_30)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One Chromium for all tests, driven by browser.py."""
    module = _beside("browser")
    program = module.chromium()
    if program is None:
        pytest.skip("no Chromium here: install it (on Debian: apt install chromium)")
    with module.Browser(program, tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def browse(chromium: Any, tmp_path: Path) -> Callable[..., Any]:
    """Opens a page, by its text, in a browser that remembers nothing of the page before."""

    def opened(text: str, fragment: str = "") -> Any:
        path = tmp_path / "report.html"
        path.write_text(text, encoding="utf-8", errors="replace")
        chromium.forget()
        chromium.open(f"{path.as_uri()}{fragment}")
        return chromium

    return opened
