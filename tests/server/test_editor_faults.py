"""Changes of a configuration that fail on the way, or whose asker goes away: all of it or nothing."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from vpnrouter.config.load import read
from vpnrouter.config.parse import Plain
from vpnrouter.errors import OperationError


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


async def test_an_address_that_is_refused(edited: Any) -> None:
    """Nothing of the change is in force, and nothing is written."""

    def listen(document: Plain) -> None:
        document["msg_vpns"]["blue"]["max_subscription_count"] = 8
        document["listeners"].append({"protocol": "link", "bind": "192.0.2.1:5"})

    async with edited() as one:
        value = one.value
        with pytest.raises(OperationError, match=r"cannot listen on 192\.0\.2\.1:5"):
            await one.editor.edit(listen, "ann")
        assert one.value == value
        assert one.files() == []
        await one.set(9)


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
