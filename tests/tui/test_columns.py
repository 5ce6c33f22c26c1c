"""Columns of attributes on the screens."""

from collections.abc import Sequence

import pytest
from rich.cells import cell_len

from vpnrouter.tui.screens import bridges, clients, overview, queues, subscriptions
from vpnrouter.tui.widgets.table import Column


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param(overview.MSG_VPNS.titles, id="message VPNs"),
        pytest.param(bridges.COLUMNS.titles, id="bridges"),
        pytest.param(queues.Queues.COLUMNS.titles, id="queues"),
        pytest.param(queues.MSGS.titles, id="messages"),
        pytest.param(clients.Clients.COLUMNS.titles, id="clients"),
        pytest.param(clients.SUBSCRIPTIONS.titles, id="subscriptions of a client"),
        pytest.param(subscriptions.Subscriptions.COLUMNS.titles, id="subscriptions"),
    ],
)
def test_columns_and_their_titles_fit_the_narrowest_screen(columns: Sequence[Column]) -> None:
    """All columns fit in 80 with a blank between, and no title but of a column that gets more room is cut."""
    assert sum(each.width + 1 for each in columns) - 1 <= 80
    assert not [each.title for each in columns if cell_len(each.title) > each.width + each.share]
