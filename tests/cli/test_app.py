"""The command line as a whole: dispatch, exit codes, what errors look like."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from vpnrouter.build_info import version_line
from vpnrouter.cli import app
from vpnrouter.errors import (
    ConfigError,
    OperationError,
    ProtocolError,
    Refused,
    TopicError,
    VpnrouterError,
)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], int]:
    """Run a command that raises the given error; the result is the exit code."""

    def run(error: BaseException) -> int:
        def command() -> None:
            """Fail."""
            raise error

        module = ModuleType("failing_command")
        vars(module)["command"] = command
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(app, "COMMANDS", {"fail": app.Command(module.__name__, "Fail.")})
        return app.run(["fail"])

    return run


def test_version_names_the_build(capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` prints the version line and nothing else."""
    assert app.run(["--version"]) == 0
    assert capsys.readouterr() == (f"{version_line()}\n", "")


def test_entry_point_carries_the_exit_code() -> None:
    """As a program, the entry point ends with the code and keeps stdout for data."""
    program = "from vpnrouter.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "no-such-command"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "No such command 'no-such-command'" in done.stderr


@pytest.mark.parametrize("arguments", [["hash-pasword"], [], ["--no-such-option"]])
def test_wrong_use_is_exit_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A command line that says nothing sensible ends with 2 and the usage."""
    assert app.run(arguments) == 2
    assert "Usage: vpnrouter" in "".join(capsys.readouterr())


def test_misspelt_command_is_recognised(capsys: pytest.CaptureFixture[str]) -> None:
    """The nearest command is named."""
    app.run(["hash-pasword"])
    assert "Did you mean 'hash-password'?" in capsys.readouterr().err


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` shows each command of the table with its line."""
    assert app.run(["--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for name, row in app.COMMANDS.items():
        assert f"{name} {row.help}" in shown


@pytest.mark.parametrize("name", app.COMMANDS)
def test_each_command_stands_in_its_file(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The table leads to a module of the command's name, which has a help of its own."""
    row = app.COMMANDS[name]
    assert row.module == f"vpnrouter.cli.{name.replace('-', '_')}"
    assert app.run([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: vpnrouter {name} ")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (
            ConfigError(["a.yaml:1:2: one", "a.yaml:3:4: two"]),
            2,
            "a.yaml:1:2: one\na.yaml:3:4: two\n",
        ),
        (TopicError("empty level"), 2, "vpnrouter: empty level\n"),
        (Refused("403 Publish ACL Denied"), 1, "vpnrouter: 403 Publish ACL Denied\n"),
        (OperationError("port 1883 is taken"), 1, "vpnrouter: port 1883 is taken\n"),
        (ProtocolError(0x81, "bad frame"), 1, "vpnrouter: bad frame\n"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_errors_on_purpose_are_lines(
    failing: Callable[[BaseException], int],
    error: VpnrouterError,
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An error raised on purpose is told on stderr without a traceback, with its exit code."""
    assert failing(error) == code
    assert capsys.readouterr() == ("", said)


def test_interrupt_is_exit_130(failing: Callable[[BaseException], int]) -> None:
    """Ctrl-C ends a command quietly, with the code that shells use."""
    assert failing(KeyboardInterrupt()) == 130


def test_bug_keeps_its_traceback(failing: Callable[[BaseException], int]) -> None:
    """An error that nobody raised on purpose is not dressed up."""
    with pytest.raises(ZeroDivisionError):
        failing(ZeroDivisionError())


def test_every_module_beside_app_is_a_command() -> None:
    """Each file of the package is a row of the table, or says by its name that it is none."""
    files = {path.stem for path in Path(app.__file__).parent.glob("*.py")}
    commands = {row.module.rpartition(".")[2] for row in app.COMMANDS.values()}
    assert {name for name in files - {"app", "limits"} if not name.startswith("_")} == commands
