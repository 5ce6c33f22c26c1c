"""How commands reach the routers of a mesh file."""

from pathlib import Path

import pytest

from vpnrouter.cli import _mesh
from vpnrouter.errors import ConfigError, OperationError


def test_a_client_for_each_router(tmp_path: Path) -> None:
    """By name, at the address that the file says."""
    path = tmp_path / "mesh.yaml"
    path.write_text(
        "routers:\n"
        "  edge: {url: 'http://127.0.0.1:1', user: ann, password: pw, config: {msg_vpns: {a: {}}}}\n"
        "  core: {url: 'http://127.0.0.1:2/', config: {msg_vpns: {b: {}}}}\n"
    )
    with _mesh.reached(_mesh.read(path)) as clients:
        assert {name: client.url for name, client in clients.items()} == {
            "edge": "http://127.0.0.1:1",
            "core": "http://127.0.0.1:2",
        }
        with pytest.raises(OperationError, match="cannot connect"):
            clients["edge"].config()


def test_a_file_that_is_refused(tmp_path: Path) -> None:
    """All its problems at once."""
    path = tmp_path / "mesh.yaml"
    path.write_text("routers: {edge: {url: no, config: {nothing: 1}}}\n")
    with pytest.raises(ConfigError) as refused:
        _mesh.read(path)
    assert len(refused.value.problems) >= 1
