"""`vpnrouter certs`."""

import datetime as dt
import json
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509

from vpnrouter.cli.app import run
from vpnrouter.cli.certs import TrialAuthority, general_name
from vpnrouter.errors import OperationError
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
    # Bridges of the router may send it.
    assert verified("edge", "-purpose", "sslclient")
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


NOW = dt.datetime(2030, 5, 1, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)


def read(path: Path) -> x509.Certificate:
    """A certificate from its file."""
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_nothing_outlives_its_authority(tmp_path: Path) -> None:
    """Certificates last as many days as asked, and no longer than the authority."""
    first = TrialAuthority(tmp_path, NOW)
    assert first.is_new
    first.save()
    first.client("app", 30, force=False)
    end = read(tmp_path / "ca.pem").not_valid_after_utc
    assert read(tmp_path / "app.pem").not_valid_after_utc == NOW + 30 * DAY
    later = TrialAuthority(tmp_path, end - 10 * DAY)
    assert not later.is_new
    assert later.save() == []
    later.server("edge", [general_name("edge")], 30, force=False)
    assert read(tmp_path / "edge.pem").not_valid_after_utc == end
    with pytest.raises(OperationError, match="it has expired"):
        TrialAuthority(tmp_path, end)


def test_the_list_grows(tmp_path: Path) -> None:
    """What was revoked stays revoked, once."""
    authority = TrialAuthority(tmp_path, NOW)
    authority.save()
    for name in "ab":
        authority.client(name, 30, force=False)
    authority.revoke([tmp_path / "a.pem"])
    told = TrialAuthority(tmp_path, NOW + DAY).revoke([tmp_path / "b.pem", tmp_path / "a.pem"])
    assert told.purpose == "revocation list, 2 revoked"
    crl = x509.load_pem_x509_crl((tmp_path / "crl.pem").read_bytes())
    assert {one.serial_number for one in crl} == {
        read(tmp_path / f"{name}.pem").serial_number for name in "ab"
    }


def test_certificates_of_others_are_not_revoked(tmp_path: Path) -> None:
    """A list holds what its authority issued, and only files that are certificates."""
    (tmp_path / "other").mkdir()
    other = TrialAuthority(tmp_path / "other", NOW)
    other.save()
    authority = TrialAuthority(tmp_path, NOW)
    authority.save()
    with pytest.raises(OperationError, match="was not issued by the authority in"):
        authority.revoke([tmp_path / "other" / "ca.pem"])
    with pytest.raises(OperationError, match=r"cannot read certificate .*ca\.key: "):
        authority.revoke([tmp_path / "ca.key"])
    with pytest.raises(OperationError, match=r"cannot read certificate .*none: No such file"):
        authority.revoke([tmp_path / "none"])


def lose_key(folder: Path) -> None:
    """Remove the key."""
    (folder / "ca.key").unlink()


def lose_certificate(folder: Path) -> None:
    """Remove the certificate."""
    (folder / "ca.pem").unlink()


def mix(folder: Path) -> None:
    """Put the key of another authority in."""
    (folder / "other").mkdir()
    TrialAuthority(folder / "other", NOW).save()
    (folder / "ca.key").write_bytes((folder / "other" / "ca.key").read_bytes())


def spoil(folder: Path) -> None:
    """Make the key unreadable."""
    (folder / "ca.key").write_text("hello")


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lose_key, "ca.pem is there without .*ca.key"),
        (lose_certificate, "ca.key is there without .*ca.pem"),
        (mix, "ca.key is the key of another one"),
        (spoil, "cannot use authority .*ca.pem: "),
    ],
)
def test_an_authority_that_cannot_be_used(
    tmp_path: Path, harm: Callable[[Path], None], words: str
) -> None:
    """Half an authority, or two, is told and left as it is."""
    TrialAuthority(tmp_path, NOW).save()
    harm(tmp_path)
    with pytest.raises(OperationError, match=words):
        TrialAuthority(tmp_path, NOW)


def test_a_list_that_cannot_be_read(tmp_path: Path) -> None:
    """A damaged list is not replaced by one that forgives everybody."""
    authority = TrialAuthority(tmp_path, NOW)
    authority.save()
    (tmp_path / "crl.pem").write_text("hello")
    with pytest.raises(OperationError, match=r"cannot read .*crl\.pem: "):
        authority.revoke([])
