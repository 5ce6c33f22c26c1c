"""Configurations from text, as all tests of this folder want them."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from vpnrouter.config.load import Reading, read

ReadText = Callable[..., Reading]


@pytest.fixture
def read_text(tmp_path: Path) -> ReadText:
    """Read a configuration from text below a first line `router: {name: here}`."""

    def run(
        text: str, environment: Mapping[str, str] | None = None, file: str = "c.yaml"
    ) -> Reading:
        path = tmp_path / file
        path.write_text("router: {name: here}\n" + text, encoding="utf-8")
        return read(path, environment or {})

    return run


@pytest.fixture
def warnings_of(read_text: ReadText) -> Callable[[str], list[str]]:
    """The warnings of an accepted configuration as `LINE:COLUMN message`."""

    def run(text: str) -> list[str]:
        reading = read_text(text)
        assert reading.loaded is not None, reading.problems
        return [
            f"{one.position.line}:{one.position.column} {one.message}"
            for one in reading.loaded.warnings
        ]

    return run


@pytest.fixture
def problems_of(read_text: ReadText) -> Callable[[str], list[str]]:
    """Everything that is told of a configuration."""

    def run(text: str) -> list[str]:
        reading = read_text(text)
        found = reading.problems if reading.loaded is None else reading.loaded.warnings
        return [f"{one.position.line}:{one.position.column} {one.message}" for one in found]

    return run
