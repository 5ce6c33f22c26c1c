import asyncio

import pytest

from vpnrouter.errors import OperationError
from vpnrouter.management.client import ManagementClient
from vpnrouter.tui.explainer import explainer_of
from vpnrouter.tui.screens.explain import Question


def test_a_router_that_is_away_is_told() -> None:
    """In one line, as commands do."""
    explained = explainer_of(lambda: [ManagementClient("http://127.0.0.1:1")])
    with pytest.raises(OperationError, match="cannot connect"):
        asyncio.run(explained(Question("edge", "blue", "a/b", "direct")))
