"""`vpnrouter run` over a spool that it cannot have: one line on stderr, exit code 1, nothing changed."""

from pathlib import Path
from typing import Any

import pytest

PLAIN = (
    'listeners: [{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}]\n'
    "msg_vpns: {blue: {authentication: {basic: {enabled: false}}, queues: {q: {subscriptions: [a]}}}}\n"
)


@pytest.fixture
def spool(start: Any, tmp_path: Path) -> Path:
    """The spool of router edge, which has run and was stopped."""
    assert start(PLAIN).stop() == 0
    return tmp_path / "data-edge" / "spool"


def refused(start: Any) -> str:
    """What a start says that is to be refused."""
    router = start(PLAIN, wait=False)
    assert router.wait() == 1
    assert router.out == []
    (line,) = router.err
    assert line.startswith("vpnrouter: ")
    return str(line)


def test_locked_by_another_router(start: Any) -> None:
    """Two routers cannot have one spool; the first one goes on."""
    first = start(PLAIN)
    assert "another process, or another part of this one, has it open" in refused(start)
    assert first.stop() == 0


def test_damaged(start: Any, spool: Path) -> None:
    """A spool that cannot be read in full is refused, and stays as it is."""
    (manifest,) = spool.glob("MANIFEST-*")
    manifest.write_bytes(b"nonsense" * 100)
    assert "its files are damaged" in refused(start)
    assert manifest.read_bytes() == b"nonsense" * 100


def test_a_file_in_its_place(start: Any, tmp_path: Path) -> None:
    """What is no directory is no spool."""
    place = tmp_path / "data-edge" / "spool"
    place.parent.mkdir()
    place.write_text("something else", encoding="utf-8")
    place.parent.chmod(0o700)
    place.chmod(0o600)
    assert str(place.name) in refused(start)
    assert place.read_text(encoding="utf-8") == "something else"


def test_restore_that_was_cut_off(start: Any, spool: Path) -> None:
    """The spool is put aside and nothing in its place: an empty one would lose what was acknowledged."""
    old = spool.with_name("spool.old")
    spool.rename(old)
    assert "a restore was cut off; rename spool.old to spool" in refused(start)
    assert not spool.exists()
    old.rename(spool)
    assert start(PLAIN).stop() == 0


def test_restore_that_was_cut_off_later(start: Any, spool: Path) -> None:
    """With the spool in its place, what was put aside is of no concern."""
    spool.with_name("spool.old").mkdir()
    assert start(PLAIN).stop() == 0
