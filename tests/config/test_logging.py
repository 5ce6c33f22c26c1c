from typing import get_args

import pytest
from pydantic import ValidationError

from vpnrouter.config.router import AreaLevel, LevelName, Levels, Logging
from vpnrouter.events.table import AREAS, NAMES


def test_areas_and_levels_are_those_of_the_events() -> None:
    """Each area of the event log has a key, and each level a name."""
    assert tuple(Levels.model_fields) == AREAS
    assert get_args(LevelName) == NAMES
    assert get_args(AreaLevel) == ("default", *NAMES)


def test_defaults() -> None:
    """Lines for people, from notice on."""
    written = Logging()
    assert (written.format, written.level, written.rate_limit) == ("readable", "notice", 100)


@pytest.mark.parametrize(
    "written",
    [{"format": "xml"}, {"level": "loud"}, {"levels": {"clients": "info"}}, {"rate_limit": -1}],
)
def test_refused(written: dict[str, object]) -> None:
    """What no version knows."""
    with pytest.raises(ValidationError):
        Logging.model_validate(written)
