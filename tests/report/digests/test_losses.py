from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.spark

Rows = list[dict[str, Any]]


def test_losses(rows_of: Callable[[str], Rows]) -> None:
    """A row that stands for many messages counts as those; what is not named is empty."""
    (loss,) = rows_of("losses")
    assert (loss["count"], loss["crossed"], loss["endpoint"]) == (42, False, "")
    assert (loss["reason"], loss["client"]) == ("no-subscription-match", "pub")
    assert (loss["bytes"], loss["example_topic"]) == (4200, "x")
