"""The management API on real sockets, and the router behind it."""

import importlib.util
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import httpx
import pytest

PLACE = Path(__file__).parents[1] / "management" / "standing.py"
GET = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
PATIENCE_S = 20


@pytest.fixture(scope="session")
def standing() -> ModuleType:
    """The module standing.py."""
    spec = importlib.util.spec_from_file_location("management_standing", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_nothing_is_loaded_without_a_listener() -> None:
    """Who has no http listener pays nothing for it when starting."""
    program = (
        "import sys; import vpnrouter.server.run;"
        "print({'fastapi', 'starlette', 'httpx'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_served_beside_other_threads(standing: ModuleType) -> None:
    """Many clients at once get whole answers."""
    with standing.serving(standing.three_bridges()) as address:
        found: list[int] = []

        def ask() -> None:
            with httpx.Client(trust_env=False) as client:
                for _ in range(5):
                    rows = client.get(f"http://{address}/vpnrouter/v1/bridges").json()["data"]
                    found.append(len(rows))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert found == [3] * 20
