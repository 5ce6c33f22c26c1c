"""`vpnrouter certs`."""

import json
import stat
import subprocess
from pathlib import Path

import pytest

from vpnrouter.cli.app import run
from vpnrouter.limits import COMMON_NAME_LENGTH


def files(folder: Path) -> dict[str, bytes]:
    """What a directory holds."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_of_a_first_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Authority, list, and a pair for each name; keys for their owner alone; a table of all."""
    out = tmp_path / "deep" / "certs"
    words = ["certs", "--output", str(out), "--name", "edge", "--client", "app", "--client", "b@x"]
    assert run(words) == 0
    expected = {"ca.key", "ca.pem", "crl.pem"} | {
        f"{name}.{suffix}" for name in ("edge", "app", "b@x") for suffix in ("key", "pem")
    }
    assert set(files(out)) == expected
    for path in out.iterdir():
        wanted = 0o600 if path.suffix == ".key" else 0o644
        assert stat.S_IMODE(path.stat().st_mode) & ~0o044 == wanted & ~0o044
        assert path.suffix != ".key" or stat.S_IMODE(path.stat().st_mode) == wanted
    shown, said = capsys.readouterr()
    assert said == ""
    assert all(str(out / name) in shown for name in expected)


def test_a_second_run_adds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The authority that is there issues more, and nothing that was there changes."""
    assert run(["certs", "--output", str(tmp_path), "--name", "edge"]) == 0
    before = files(tmp_path)
    capsys.readouterr()
    assert run(["certs", "--output", str(tmp_path), "--client", "app", "--json"]) == 0
    after = files(tmp_path)
    assert {name: after[name] for name in before} == before
    told = json.loads(capsys.readouterr().out)
    assert [Path(one["path"]).name for one in told] == ["app.key", "app.pem"]
    assert [bool(one["ends"]) for one in told] == [False, True]


def test_nothing_is_replaced_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is there is named and kept, and nothing else written; --force replaces it."""
    assert run(["certs", "--output", str(tmp_path), "--name", "edge"]) == 0
    before = files(tmp_path)
    words = ["certs", "--output", str(tmp_path), "--client", "app", "--name", "edge"]
    assert run(words) == 1
    assert f"vpnrouter: {tmp_path}/edge.pem is there already" in capsys.readouterr().err
    assert files(tmp_path) == before
    assert run([*words, "--force"]) == 0
    after = files(tmp_path)
    assert after["ca.key"] == before["ca.key"]
    assert after["edge.pem"] != before["edge.pem"]


def test_openssl_takes_them(tmp_path: Path) -> None:
    """OpenSSL verifies what was issued, for its purpose and its hosts, and not what was revoked."""
    words = ["certs", "--output", str(tmp_path)]
    hosts = ["--host", "edge.example", "--host", "192.0.2.7"]
    assert run([*words, "--name", "edge", *hosts, "--client", "app", "--client", "gone"]) == 0
    assert run([*words, "--revoke", str(tmp_path / "gone.pem")]) == 0
    assert run([*words, "--revoke", str(tmp_path / "gone.pem"), "--client", "more"]) == 0

    def verified(name: str, *more: str) -> bool:
        place = str(tmp_path)
        trust = ["-CAfile", f"{place}/ca.pem", "-CRLfile", f"{place}/crl.pem", "-crl_check"]
        done = subprocess.run(
            ["openssl", "verify", *trust, *more, f"{place}/{name}.pem"],
            capture_output=True,
            check=False,
        )
        return done.returncode == 0

    assert verified("edge", "-purpose", "sslserver", "-verify_hostname", "edge.example")
    assert verified("edge", "-verify_ip", "192.0.2.7")
    assert not verified("edge", "-verify_hostname", "localhost")
    assert not verified("edge", "-purpose", "sslclient")
    assert verified("app", "-purpose", "sslclient")
    assert not verified("app", "-purpose", "sslserver")
    assert not verified("gone")
    assert verified("more")


@pytest.mark.parametrize(
    "words",
    [
        ["--name", "ca"],
        ["--name", "CRL"],
        ["--name", "edge", "--client", "edge"],
        ["--name", "../x"],
        ["--name", ".x"],
        ["--name", ""],
        ["--client", "x" * (COMMON_NAME_LENGTH + 1)],
        ["--days", "0"],
        ["--days", "3651"],
    ],
)
def test_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    """Names that are no files, files that would be two things, days beyond bounds: exit 2."""
    assert run(["certs", "--output", str(tmp_path), *words]) == 2
    assert files(tmp_path) == {}
    assert "Traceback" not in capsys.readouterr().err


def test_the_longest_name(tmp_path: Path) -> None:
    """COMMON_NAME_LENGTH characters are as many as X.509 takes."""
    name = "x" * COMMON_NAME_LENGTH
    assert run(["certs", "--output", str(tmp_path), "--client", name]) == 0


@pytest.mark.parametrize("host", ["a..b", "", ".x", "y" * 64])
def test_a_host_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str], host: str) -> None:
    """What is neither name nor address is told before anything is written."""
    assert run(["certs", "--output", str(tmp_path), "--name", "edge", "--host", host]) == 1
    assert "is neither a host name nor an address" in capsys.readouterr().err
    assert files(tmp_path) == {}


def test_a_directory_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory below a file is one line on stderr."""
    (tmp_path / "file").write_text("x")
    assert run(["certs", "--output", str(tmp_path / "file" / "x")]) == 1
    assert "vpnrouter: cannot make " in capsys.readouterr().err
