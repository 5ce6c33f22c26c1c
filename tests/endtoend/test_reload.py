"""`vpnrouter run` as a process that is told by SIGHUP to read its file again."""

import signal
from pathlib import Path
from typing import Any

BLUE = "{authentication: {basic: {enabled: false}}}"
PLAIN = f'listeners: [{{protocol: mqtt, bind: "127.0.0.1:0"}}]\nmsg_vpns:\n  blue: {BLUE}\n'


def test_a_message_vpn_comes_and_goes(start: Any, paho: Any, tmp_path: Path) -> None:
    """SIGHUP adds and removes a message VPN; clients of another one notice nothing."""
    router = start(PLAIN)
    path = tmp_path / "edge.yaml"
    text = path.read_text(encoding="utf-8")
    port = router.port("mqtt")
    stays = paho(port, "stays", login=("c@blue", ""))
    stays.subscribe("#")
    path.write_text(f"{text}  green: {BLUE}\n", encoding="utf-8")
    router.process.send_signal(signal.SIGHUP)
    router.says(f"vpnrouter: SIGHUP: reloaded {path}: 1 change\n")
    assert "vpnrouter: SIGHUP: msg_vpns.green: added\n" in router.err
    goes = paho(port, "goes", login=("c@green", ""))
    assert goes.code == 0
    path.write_text(text, encoding="utf-8")
    router.process.send_signal(signal.SIGHUP)
    router.says("msg_vpns.green: removed")
    assert goes.disconnected.get(timeout=20) == 0x98
    stays.publish("a", b"x")
    assert stays.next() == ("a", b"x")
    assert router.stop() == 0


def test_a_file_that_is_refused(start: Any, paho: Any, tmp_path: Path) -> None:
    """Each problem is told with its place, and the router goes on as it was."""
    router = start(PLAIN)
    path = tmp_path / "edge.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "  green: {nothing: 1}\n", encoding="utf-8")
    router.process.send_signal(signal.SIGHUP)
    router.says(f"vpnrouter: SIGHUP: {path}:5:")
    router.says("is refused; everything stays as it was")
    assert paho(router.port("mqtt"), "c", login=("c@blue", "")).code == 0
    assert router.stop() == 0
    assert "Traceback" not in "".join(router.err)
