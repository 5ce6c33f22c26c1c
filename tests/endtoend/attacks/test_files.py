"""What the router writes is for its owner alone, whatever mask its process was started with."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import vpnrouter
from vpnrouter.cli.app import run

PROGRAM = (
    "import os, sys; os.umask(int(sys.argv.pop(1), 8)); from vpnrouter.cli.app import main; main()"
)

CONFIG = """
router: {name: one, data_dir: data%s}
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: http, bind: "127.0.0.1:0"}
trace: {directory: traces, sample: 1.0}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    queues: {q: {subscriptions: ["a/>"]}}
"""


@pytest.fixture(autouse=True)
def mask() -> object:
    """Commands that run in this process set its mask."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def started(folder: Path, umask: str) -> tuple["subprocess.Popen[str]", dict[str, str]]:
    """A router as a process of its own that was started with this mask; and its addresses by protocol."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, umask, "run", "one.yaml"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path(vpnrouter.__file__).parents[1])},
        cwd=folder,
        text=True,
    )
    assert process.stdout is not None
    return process, dict(re.findall(r"(\w+)=(127\S+)", process.stdout.readline()))


def used(folder: Path, umask: str) -> str:
    """Start a router, let it write of everything, and stop it; what it said on stderr."""
    process, at = started(folder, umask)
    try:
        assert run(["pub", "a/b", "secret", "--qos", "1", "--url", f"mqtt://{at['mqtt']}"]) == 0
        with httpx.Client(base_url=f"http://{at['http']}") as client:
            backup = {"directory": str(folder / "kept" / "backup")}
            client.put("/vpnrouter/v1/spool/backup", json=backup).raise_for_status()
            changed = client.patch("/SEMP/v2/config/msgVpns/blue", json={"maxMsgSpoolUsage": 9})
            changed.raise_for_status()
    finally:
        process.terminate()
        _, said = process.communicate(timeout=60)
    return said


def modes(folder: Path) -> dict[str, int]:
    """The permissions of everything below a folder."""
    return {
        str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode)
        for path in folder.rglob("*")
        if path.name != "one.yaml"
    }


@pytest.mark.parametrize("umask", ["022", "000"])
def test_nobody_else_may_read(tmp_path: Path, umask: str) -> None:
    """Spool, overlay, backup and traces: files 0600, directories 0700."""
    (tmp_path / "one.yaml").write_text(CONFIG % "")
    said = used(tmp_path, umask)
    assert "has mode" not in said
    found = modes(tmp_path)
    assert {name.partition("/")[0] for name in found} == {"data", "kept", "traces"}
    assert any(name.endswith(".parquet") for name in found)
    assert "data/overlay.yaml" in found
    assert any(name.startswith("kept/backup/") for name in found)
    wide = {name: f"{mode:04o}" for name, mode in found.items() if mode & 0o077}
    assert wide == {}


def test_a_group_may_read(tmp_path: Path) -> None:
    """`router.umask` "027" lets the group read spool and traces, and nobody write; the overlay stays closed."""
    (tmp_path / "one.yaml").write_text(CONFIG % ', umask: "027"')
    assert "has mode" not in used(tmp_path, "000")
    found = modes(tmp_path)
    assert all(mode & 0o027 == 0 for mode in found.values())
    assert found["data/overlay.yaml"] == 0o600
    assert {found[name] for name in found if name.endswith(".parquet")} == {0o640}
    assert (found["data/spool"], found["traces"]) == (0o750, 0o750)


def test_what_is_wider_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`check` and the router at its start name each path with its mode and the way out."""
    (tmp_path / "one.yaml").write_text(CONFIG % "")
    used(tmp_path, "022")
    for name, mode in (("data", 0o775), ("data/spool", 0o755), ("traces", 0o707)):
        (tmp_path / name).chmod(mode)
    (tmp_path / "data" / "overlay.yaml").chmod(0o644)
    expected = [
        "data has mode 0775: other users of this machine may write to it; chmod 0700",
        "data/overlay.yaml has mode 0644: other users of this machine may read it; chmod 0600",
        "data/spool has mode 0755: other users of this machine may read it; chmod 0700",
        "traces has mode 0707: other users of this machine may write to it; chmod 0700",
    ]
    monkeypatch.chdir(tmp_path)
    assert run(["check", "one.yaml"]) == 0
    told = [line for line in capfd.readouterr().err.splitlines() if "has mode" in line]
    places = ("router.data_dir", "router.data_dir", "router.data_dir", "trace.directory")
    assert [re.sub(r"^one.yaml:\d+:\d+: ", "", line) for line in told] == [
        f"warning: {where}: {text}, or another router.umask"
        for where, text in zip(places, expected, strict=True)
    ]
    process, _ = started(tmp_path, "022")
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert all(text in said for text in expected)


def test_spool_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A backup of a stopped router, and what is restored from one that others may read."""
    (tmp_path / "one.yaml").write_text(CONFIG % "")
    used(tmp_path, "022")
    monkeypatch.chdir(tmp_path)
    os.umask(0)
    assert run(["spool", "backup", "one.yaml", "again"]) == 0
    assert not any(mode & 0o077 for mode in modes(tmp_path).values())
    (tmp_path / "again").chmod(0o755)
    for path in (tmp_path / "again").iterdir():
        path.chmod(0o644)
    os.umask(0)
    assert run(["spool", "restore", "one.yaml", "again", "--force"]) == 0
    assert not any(mode & 0o077 for mode in modes(tmp_path / "data").values())


def test_private_keys(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Keys that `certs` makes are 0600 in a directory 0700; a listener's key that others may read is told."""
    os.umask(0)
    folder = tmp_path / "certs"
    assert run(["certs", "--output", str(folder), "--name", "one"]) == 0
    found = modes(tmp_path)
    assert (found["certs"], found["certs/one.key"], found["certs/ca.key"]) == (0o700, 0o600, 0o600)
    config = tmp_path / "one.yaml"
    config.write_text(
        f"router: {{name: one, data_dir: {tmp_path}/data}}\nlisteners:\n"
        f'  - {{protocol: mqtts, bind: "127.0.0.1:0",'
        f" tls: {{certificate: {folder}/one.pem, key: {folder}/one.key}}}}\n"
    )
    capfd.readouterr()
    assert run(["check", str(config)]) == 0
    assert capfd.readouterr().err == ""
    (folder / "one.key").chmod(0o604)
    assert run(["check", str(config)]) == 0
    assert (
        "one.key has mode 0604: other users of this machine may read it" in capfd.readouterr().err
    )
