"""Configurations as files, and the module real_mesh.py."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vpnrouter.config.load import load
from vpnrouter.config.router import Loaded

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

FOLDER = Path(__file__).parent


def _loaded(name: str) -> ModuleType:
    # Tests are no package (importlib mode), so that a module beside them is loaded by its path.
    spec = importlib.util.spec_from_file_location(f"explain_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"explain_{name}"] = module
    spec.loader.exec_module(module)
    return module


_asking = _loaded("asking")
"""The tests here import it as explain_asking."""


@pytest.fixture(scope="session")
def real_mesh() -> ModuleType:
    """The module real_mesh.py."""
    return _loaded("real_mesh")


@pytest.fixture
def configured(tmp_path: Path) -> Callable[..., Loaded]:
    """A loaded configuration from text, below a first line that names the router."""

    def run(text: str, name: str = "here") -> Loaded:
        path = tmp_path / f"{name}.yaml"
        head = f"router: {{name: {name}, data_dir: '{tmp_path}/{name}'}}\n"
        path.write_text(head + text, encoding="utf-8")
        return load(str(path), overlay=False)

    return run


@pytest.fixture
def pair(configured: Callable[..., Loaded]) -> Callable[..., list[Loaded]]:
    """Edge with a message VPN blue, and core with a bridge from it; each with lines added at its end."""

    def run(edge: str = "", core: str = "") -> list[Loaded]:
        return [configured(_asking.EDGE + edge, "edge"), configured(_asking.CORE + core, "core")]

    return run
