"""A router that stands still (tests/management/standing.py), for commands that ask one."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

PLACE = Path(__file__).parents[1] / "management" / "standing.py"


@pytest.fixture(scope="session")
def standing() -> ModuleType:
    """The module standing.py."""
    spec = importlib.util.spec_from_file_location("management_standing", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
