"""The configuration of a running router changed, written beside its file, and undone."""

import json
import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from vpnrouter import limits
from vpnrouter.config.candidate import candidate
from vpnrouter.config.document_values import copy_plain, digest_of
from vpnrouter.config.load import load, read
from vpnrouter.config.overlay_disk import OverlayDisk
from vpnrouter.config.parse import Plain
from vpnrouter.config.router import Loaded
from vpnrouter.errors import ConfigError, OperationError
from vpnrouter.management.config.editor import ConfigEditor


async def test_a_change_holds_and_stays(edited: Any, capfd: Any) -> None:
    """It is in force when the editor answers, told, and there for a router that starts from the file."""
    async with edited() as one:
        before = one.path.read_bytes()
        told: ConfigEditor = one.editor
        assert told.overlay() == {}
        found = await one.set(7)
        line = "msg_vpns.blue.max_subscription_count: 500000 -> 7 (at once)"
        assert found.lines == (line,)
        assert found.digest == told.digest() == digest_of(told.document())
        assert one.value == 7
        assert told.config().msg_vpns["blue"].max_subscription_count == 7
        assert told.overlay() == {"msg_vpns": {"blue": {"max_subscription_count": 7}}}
        place = ("msg_vpns", "blue", "max_subscription_count")
        assert told.position(place).file == str(one.overlay)
        assert told.position(("msg_vpns", "green")).file == str(one.path)
        assert dict(told.positions())[place].file == str(one.overlay)
        assert told.files() == (str(one.path), str(one.overlay))
        assert one.path.read_bytes() == before, "the file is the person's"
        assert stat.S_IMODE(one.overlay.stat().st_mode) == 0o600
        assert one.stored() == 7
        assert one.stored(overlay=False) != 7
        assert f"CONFIG: ann: {found.lines[0]}" in capfd.readouterr().err
        assert "first secret" not in one.overlay.read_text()
    async with edited() as one:
        assert one.value == 7
        await one.set(8)
        assert one.files() == ["overlay.yaml"]


async def test_objects_come_and_go(edited: Any) -> None:
    """What was in the file can go, what was not can come, both outlive a restart."""

    def change(document: Plain) -> None:
        del document["msg_vpns"]["blue"]["queues"]["q"]
        document["msg_vpns"]["red"] = {"queues": {"new": None}}
        document["msg_vpns"]["green"] = {"enabled": False}

    async with edited() as one:
        await one.editor.edit(change, "ann")
        assert sorted(one.node.router.vpns) == ["blue", "green", "red"]
        assert one.editor.overlay()["msg_vpns"]["blue"] == {"queues": {"q": None}}
    async with edited() as one:
        assert not one.node.config.msg_vpns["blue"].queues
        assert list(one.node.config.msg_vpns["red"].queues) == ["new"]
        assert not one.node.config.msg_vpns["green"].enabled


async def test_what_is_refused(edited: Any) -> None:
    """All problems are told, and nothing has changed."""

    def bad(document: Plain) -> None:
        document["msg_vpns"]["blue"]["no_such"] = 1
        document["msg_vpns"]["blue"]["max_topic_levels"] = "x"

    def empty(document: Plain) -> None:
        document["msg_vpns"]["blue"]["max_topic_levels"] = None

    def odd(document: Plain) -> None:
        document["msg_vpns"]["blue"]["max_topic_levels"] = object()

    def fails(document: Plain) -> None:
        document.clear()
        raise KeyError("mine")

    def gone(document: Plain) -> None:
        document.clear()

    async with edited() as one:
        digest = one.editor.digest()
        with pytest.raises(ConfigError) as refused:
            await one.editor.edit(bad, "ann")
        assert len(refused.value.problems) == 2
        assert all(str(one.overlay) in text for text in refused.value.problems)
        for change, said in (
            (empty, "must not be empty"),
            (odd, "holds no object"),
            (gone, "router is missing"),
        ):
            with pytest.raises(ConfigError, match=said):
                await one.editor.edit(change, "ann")
        with pytest.raises(KeyError, match="mine"):
            await one.editor.edit(fails, "ann")
        assert one.editor.digest() == digest == digest_of(one.editor.document())
        assert not one.overlay.exists()
        await one.set(7)
        assert one.value == 7


async def test_what_needs_a_restart(edited: Any) -> None:
    """It is refused here: the person's file is the place for it. What the file has changed meanwhile is not
    held against others.
    """

    def rename(document: Plain) -> None:
        document["router"]["name"] = "other"

    def move(document: Plain) -> None:
        document["router"]["data_dir"] = "elsewhere"

    async with edited() as one:
        with pytest.raises(OperationError, match=r"router\.name: here -> other \(needs restart\)"):
            await one.editor.edit(rename, "ann")
        with pytest.raises(ConfigError, match="data_dir"):
            await one.editor.edit(move, "ann")
        one.path.write_text(one.path.read_text() + "guaranteed_msging: {enabled: false}\n")
        await one.editor.reread()
        await one.set(7)
        assert one.value == 7
        assert one.node.config.guaranteed_msging.enabled


async def test_a_certain_state_is_expected(edited: Any) -> None:
    """Who looked at another configuration than the one in force is refused."""
    async with edited() as one:
        seen = one.editor.digest()
        await one.set(7, expected=seen)
        with pytest.raises(OperationError, match="another one by now"):
            await one.set(8, expected=seen)
        assert one.value == 7


async def test_the_same_again(edited: Any) -> None:
    """A change that changes nothing writes nothing."""
    async with edited() as one:
        await one.set(7)
        number = one.overlay.stat().st_ino
        found = await one.set(7)
        assert found.lines == ()
        assert one.overlay.stat().st_ino == number


async def test_one_after_the_other(edited: Any) -> None:
    """Changes asked for at once are made in turn, each upon the one before."""

    def add(name: str, document: Plain) -> None:
        document["msg_vpns"]["blue"]["queues"][name] = {}

    async with edited() as one:
        async with trio.open_nursery() as tasks:
            for number in range(8):
                tasks.start_soon(one.editor.edit, partial(add, f"q{number}"), "ann")
            tasks.start_soon(one.editor.reread)
        assert len(one.node.config.msg_vpns["blue"].queues) == 9
        assert len(load(one.path).config.msg_vpns["blue"].queues) == 9


async def test_going_back(edited: Any, monkeypatch: Any) -> None:
    """The last ones can be returned to; further back is forgotten."""
    monkeypatch.setattr(limits, "EDITOR_DOCUMENTS", 3)
    async with edited() as one:
        digests = [one.editor.digest()]
        digests += [(await one.set(number)).digest for number in range(1, 5)]
        with pytest.raises(OperationError, match="none of the last 3"):
            await one.editor.return_to(digests[0], "ann")
        await one.editor.return_to(digests[1], "ann")
        assert one.value == 1
        assert one.editor.digest() == digests[1]
        assert one.stored() == 1
        await one.editor.return_to(digests[4], "ann")
        assert one.value == 4
        assert (await one.editor.return_to(digests[4], "ann")).lines == ()


async def test_examined(edited: Any) -> None:
    """What a document would do is told, with every problem, and nothing is done."""
    async with edited() as one:
        document = json.loads(json.dumps(one.editor.document()))
        assert await one.editor.examine(document) == type(await one.editor.examine(document))(
            (), ()
        )
        document["msg_vpns"]["blue"]["max_subscription_count"] = 9
        document["router"]["name"] = "other"
        found = await one.editor.examine(document)
        assert [str(change.kind.name) for change in found.changes] == ["RESTART", "IN_PLACE"]
        document["zzz"] = 1
        found = await one.editor.examine(document)
        assert [problem.severity for problem in found.problems] == ["error"]
        assert found.changes == ()
        assert one.value != 9
        assert not one.overlay.exists()


async def test_masked_secrets_come_back(edited: Any) -> None:
    """`***` is the secret that stands; where none stands it is refused."""

    def masked(document: Plain) -> None:
        users = document["msg_vpns"]["blue"]["client_usernames"]
        users["ann"] = {"password": "***", "enabled": True}

    def unknown(document: Plain) -> None:
        document["msg_vpns"]["blue"]["client_usernames"]["bob"] = {"password": "***"}

    async with edited() as one:
        await one.editor.edit(masked, "ann")
        ann = one.node.config.msg_vpns["blue"].client_usernames["ann"]
        assert ann.password is not None
        assert ann.password.verify(b"first secret")
        with pytest.raises(ConfigError, match=r"bob\.password: \*\*\* stands for none"):
            await one.editor.edit(unknown, "ann")


# -- the person's file and hand ----------------------------------------------------------------


async def test_a_file_read_again_keeps_the_overlay(edited: Any, capfd: Any) -> None:
    """SIGHUP brings what is new in the file; what the API changed lies over it still."""
    async with edited() as one:
        await one.set(7)
        one.path.write_text(
            one.path.read_text().replace("blue:\n", "blue:\n    max_topic_levels: 9\n")
        )
        capfd.readouterr()
        await one.editor.reread()
        assert one.value == 7
        assert one.node.router.vpns["blue"].limits.max_topic_levels == 9
        assert f"reloaded {one.path} and {one.overlay}: 1 change" in capfd.readouterr().err
        assert one.editor.digest() == digest_of(one.editor.document())
        await one.set(8)
        assert one.node.router.vpns["blue"].limits.max_topic_levels == 9
        one.overlay.unlink()
        await one.editor.reread()
        assert one.value > 8, "removed by hand"
        await one.set(9)
        assert one.stored() == 9


async def test_an_overlay_edited_by_hand(edited: Any) -> None:
    """It is not written over before it was read; a broken one stays where it is, and in force stays what was."""
    async with edited() as one:
        await one.set(7)
        one.overlay.write_text("msg_vpns: {blue: {max_subscription_count: 5}}\n")
        with pytest.raises(OperationError, match="changed by hand"):
            await one.set(8)
        assert one.value == 7
        await one.editor.reread()
        assert one.value == 5
        one.overlay.write_text("msg_vpns: {blue: {max_subscription_count: no}}\n")
        await one.editor.reread()
        assert one.value == 5
        with pytest.raises(OperationError, match="changed by hand"):
            await one.set(8)
        assert "no" in one.overlay.read_text()


async def test_without_the_overlay(edited: Any) -> None:
    """A router that was started without it neither reads nor writes it."""
    async with edited() as one:
        await one.set(7)
        text = one.overlay.read_text()
    async with edited(overlaid=False) as one:
        assert one.value != 7
        with pytest.raises(OperationError, match="--no-overlay"):
            await one.set(8)
        await one.editor.reread()
        assert one.value != 7
        assert one.overlay.read_text() == text


async def test_changes_are_told_where_they_belong(edited: Any) -> None:
    """Each line is an event with its message VPN and who did it; a change that is refused is one too."""

    def several(document: Plain) -> None:
        document["msg_vpns"]["blue"]["max_subscription_count"] = 7
        document["msg_vpns"]["red"] = {}
        document["logging"] = {"level": "info"}

    def bad(document: Plain) -> None:
        document["msg_vpns"]["blue"]["max_subscription_count"] = "x"
        document["msg_vpns"]["blue"]["nothing"] = 1

    async with edited() as one:
        before = one.editor.digest()
        raised = one.events_raised
        raised()
        await one.editor.edit(several, "ann")
        events = raised()
        assert {each.msg_vpn for each in events} == {"blue", "red", ""}
        assert {(each.kind.name, each.name) for each in events} == {("SYSTEM_CONFIG_CHANGE", "ann")}
        assert ("red", "ann: msg_vpns.red: added") in {(each.msg_vpn, each.text) for each in events}
        with pytest.raises(ConfigError):
            await one.editor.edit(bad, "bob")
        with pytest.raises(OperationError):
            await one.set(8, expected="0")
        with pytest.raises(OperationError):
            await one.editor.return_to("0", "bob")
        events = raised()
        assert [each.kind.name for each in events] == ["SYSTEM_CONFIG_CHANGE_REFUSED"] * 3
        assert [each.name for each in events] == ["bob", "ann", "bob"]
        assert events[0].text.endswith("(and 1 more)")
        await one.editor.return_to(before, "bob")
        assert {each.name for each in raised()} == {"bob"}


# -- editor faults ---------------------------------------------------------------------------------


def refuses(number: int) -> Callable[..., Any]:
    """A call of the system that fails."""

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("call", ["fsync", "open", "replace", "link"])
async def test_a_disk_that_fails(edited: Any, monkeypatch: Any, call: str) -> None:
    """Wherever it fails, the answer says so, and router, file and editor are as they were."""
    async with edited() as one:
        await one.set(7)
        digest = one.editor.digest()
        with monkeypatch.context() as broken:
            if call == "replace":
                broken.setattr(Path, "replace", refuses(28))
            elif call == "link":
                broken.setattr(os, "link", refuses(1))
                broken.setattr("shutil.copyfile", refuses(28))
            else:
                broken.setattr(os, call, refuses(28))
            with pytest.raises(OperationError, match=r"cannot write .*No space left on device"):
                await one.set(8)
        assert one.value == 7
        assert one.stored() == 7
        assert one.editor.digest() == digest
        assert ".overlay.yaml.new" not in one.files()
        await one.set(9)
        assert one.value == one.stored() == 9


@pytest.mark.parametrize("first", [True, False])
async def test_a_directory_that_cannot_be_synced(
    edited: Any, monkeypatch: Any, first: bool
) -> None:
    """The renamed overlay is put back, and listeners that were bound for it are not."""
    real = os.fsync

    def fsync(number: int) -> None:
        if stat.S_ISDIR(os.fstat(number).st_mode):
            raise OSError(5, "Input/output error")
        real(number)

    def listen(document: Plain) -> None:
        document["msg_vpns"]["blue"]["max_subscription_count"] = 8
        document["listeners"].append({"protocol": "link", "bind": "127.0.0.1:0"})

    async with edited() as one:
        if not first:
            await one.set(7)
        value = one.value
        with monkeypatch.context() as broken:
            broken.setattr(os, "fsync", fsync)
            with pytest.raises(OperationError, match="Input/output error"):
                await one.editor.edit(listen, "ann")
        assert one.value == value
        assert one.stored() == value
        assert len(one.node.addresses) == 1
        await one.editor.edit(listen, "ann")
        assert one.value == one.stored() == 8
        assert len(one.node.addresses) == 2


async def test_a_crash_between_writing_and_renaming(edited: Any, monkeypatch: Any) -> None:
    """What is left of it is not read, and the next change writes over it."""
    async with edited() as one:
        await one.set(7)
        one.overlay.with_name(".overlay.yaml.new").write_text("msg_vpns: {blue: {")
        assert one.stored() == 7
        assert read(one.path).problems == ()
        await one.set(8)
        assert one.stored() == 8


async def test_who_asked_goes_away(edited: Any, monkeypatch: Any) -> None:
    """A change whose asker is gone in the midst of it is made wholly or not at all."""
    async with edited() as one:
        with trio.CancelScope() as scope:
            real = one.editor._disk.swap

            def swap() -> None:
                trio.from_thread.run_sync(scope.cancel)
                real()

            monkeypatch.setattr(type(one.editor._disk), "swap", lambda _: swap())
            await one.set(7)
        monkeypatch.undo()
        assert scope.cancel_called
        assert one.value == one.stored() == 7
        with trio.CancelScope() as scope:
            scope.cancel()
            await one.set(8)
        assert one.value == one.stored() == 7
        await one.set(9)
        assert one.value == one.stored() == 9


# -- overlay disk ----------------------------------------------------------------------------------


def write(disk: OverlayDisk, text: bytes) -> None:
    """Let it have this text."""
    disk.stage(text)
    disk.swap()


def test_a_link_in_its_place(tmp_path: Path) -> None:
    """What somebody put where the new one is written is not written through."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    (tmp_path / ".overlay.yaml.new").symlink_to(victim)
    write(OverlayDisk(str(tmp_path / "overlay.yaml")), b"one")
    assert victim.read_bytes() == b"mine"
    assert (tmp_path / "overlay.yaml").read_bytes() == b"one"
    assert not (tmp_path / "overlay.yaml").is_symlink()


def test_another_hand(tmp_path: Path) -> None:
    """One that was written or removed since it was read is not written over."""
    path = tmp_path / "overlay.yaml"
    disk = OverlayDisk(str(path))
    path.write_bytes(b"by hand")
    for change in (lambda: None, lambda: path.write_bytes(b"other"), path.unlink):
        change()
        disk.stage(b"new")
        if path.exists():
            with pytest.raises(OperationError, match="by hand"):
                disk.swap()
            assert path.read_bytes() != b"new"
            disk.note()
    disk.note()
    write(disk, b"new")
    assert path.read_bytes() == b"new"
    path.unlink()
    disk.stage(b"newer")
    with pytest.raises(OperationError, match="by hand"):
        disk.swap()
    assert list(tmp_path.glob("*.new")) == []


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: Any) -> None:
    """The one before is copied, and put back where the new one cannot be synced."""

    def refuse(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    disk = OverlayDisk(str(tmp_path / "overlay.yaml"))
    write(disk, b"one")
    write(disk, b"two")
    monkeypatch.setattr(disk, "_sync", refuse)
    disk.stage(b"three")
    with pytest.raises(OperationError):
        disk.swap()
    assert (tmp_path / "overlay.yaml").read_bytes() == b"two"
    assert stat.S_IMODE((tmp_path / "overlay.yaml").stat().st_mode) == 0o600


# -- candidate -------------------------------------------------------------------------------------


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
