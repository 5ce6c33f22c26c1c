"""Two routers in YAML files: edge/blue, and core/yellow whose bridge takes from there."""

from pathlib import Path

import pytest

EDGE = """\
router: {name: edge, data_dir: ./data/edge}
listeners:
  - {protocol: link, bind: "127.0.0.1:55555"}
trace: {directory: ./traces}
msg_vpns:
  blue:
    client_profiles: {bridging: {allow_bridge_connections_enabled: true}}
    client_usernames: {core-bridge: {password: {env: NOT_SET}, client_profile: bridging}}
"""
CORE = """\
router: {name: core, data_dir: ./data/core}
listeners:
  - {protocol: link, bind: "127.0.0.1:55556"}
trace: {directory: ./traces}
msg_vpns:
  green: {enabled: false}
  yellow:
    bridges:
      fares:
        remote_authentication:
          basic: {client_username: core-bridge, password: {env: NOT_SET}}
        remote_msg_vpns:
          - {name: blue, location: "127.0.0.1:55555"}
        topic_syntax: mqtt
        remote_subscriptions: ["fares/#", "!fares/test", "seats/+"]
"""


@pytest.fixture
def config_files(tmp_path: Path) -> list[Path]:
    """The two files, which a test may change."""
    files = [tmp_path / "edge.yaml", tmp_path / "core.yaml"]
    for file, text in zip(files, (EDGE, CORE), strict=True):
        file.write_text(text, encoding="utf-8")
    return files
