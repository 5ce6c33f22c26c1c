"""A document made into an overlay beside the router."""

from pathlib import Path
from typing import Any

import pytest

from vpnrouter.config.document_values import copy_plain, digest_of
from vpnrouter.config.load import load
from vpnrouter.config.router import Loaded
from vpnrouter.server.apply.reload import candidate, pack_document

OVER = "data/overlay.yaml"


@pytest.fixture
def standing(tmp_path: Path) -> Loaded:
    """A configuration that stands."""
    path = tmp_path / "c.yaml"
    path.write_text("router: {name: here, data_dir: data}\nmsg_vpns: {blue: {queues: {q: {}}}}\n")
    return load(path)


def test_one_that_is_taken(standing: Loaded) -> None:
    """Its text is the difference, its configuration shares what did not change."""
    document = copy_plain(standing.positions.data)
    document["msg_vpns"]["red"] = {"queues": None}
    before = copy_plain(document)
    found = candidate(document, standing, OVER)
    assert document == before
    assert found.loaded is not None
    assert found.text.decode().splitlines()[-3:] == ["msg_vpns:", "  red:", "    queues: {}"]
    assert [change.path for change in found.changes] == [("msg_vpns", "red")]
    assert found.packed.digest == digest_of(found.loaded.positions.data)
    assert found.packed.unpacked() == found.loaded.positions.data
    assert found.loaded.config.msg_vpns["blue"] is standing.config.msg_vpns["blue"]
    assert found.problems == found.loaded.warnings


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([], "a configuration is a mapping"),
        (None, "a configuration is a mapping"),
        ({"router": {"name": "\ud800"}}, ""),
        ({"router": None}, "router"),
        ({"router": {"name": "x", "data_dir": "elsewhere"}}, "stands in that directory"),
        ({"router": {"name": ("x",)}}, "holds no tuple"),
        ({"router": {"name": "x" * 9_000_000, "data_dir": "data"}}, "larger than 8388608 bytes"),
    ],
)
def test_one_that_is_refused(standing: Loaded, wrong: Any, said: str) -> None:
    """It has an error and nothing else."""
    found = candidate(wrong, standing, OVER)
    assert found.loaded is None
    assert found.changes == ()
    assert any(one.severity == "error" and said in one.message for one in found.problems)


def test_packed() -> None:
    """What is kept is the document."""
    document = {"a": [1, 1.5, None, True, "é\u2028"], "b": {}}
    assert pack_document(document).unpacked() == document
    assert pack_document(document).digest == digest_of(document)
