"""The authority behind `vpnrouter certs` (what it issues: test_certs.py)."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509

from vpnrouter.cli.certs import TrialAuthority, general_name
from vpnrouter.errors import OperationError

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
