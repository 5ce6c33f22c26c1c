"""`vpnrouter completion`, and what its scripts ask the command for."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import vpnrouter
from vpnrouter.cli import app


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It asks the command by the variable that the command knows."""
    assert app.run(["completion", shell]) == 0
    assert f"{app.COMPLETION}=complete_{shell}" in capsys.readouterr().out


def completed(monkeypatch: pytest.MonkeyPatch, capsys: Any, line: str) -> list[str]:
    """What bash gets for a line that ends where the cursor is."""
    words = line.split(" ")
    monkeypatch.setattr("vpnrouter.cli._completion.PATIENCE_S", 60.0)
    monkeypatch.setenv("COMP_WORDS", "\n".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    monkeypatch.setenv(app.COMPLETION, "complete_bash")
    assert app.run([]) == 0
    found: list[str] = capsys.readouterr().out.split()
    return found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("vpnrouter su", ["sub"]),
        ("vpnrouter show br", ["bridges"]),
        ("vpnrouter show bridges to-", ["to-a", "to-b"]),
        ("vpnrouter show queues --msg-vpn bl", ["blue"]),
        ("vpnrouter bridge dis", ["disable"]),
        ("vpnrouter pub t x --qo", ["--qos"]),
    ],
)
def test_commands_options_and_names(
    served: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any, line: str, expected: list[str]
) -> None:
    """Only the command that the line names is loaded, and it knows its options and names."""
    assert completed(monkeypatch, capsys, line) == expected


def test_in_bash(served: Any, tmp_path: Path) -> None:
    """A real bash evaluates the script and completes a name of the router."""
    bash = shutil.which("bash")
    assert bash is not None
    program = "from vpnrouter.cli.app import main; main()"
    command = tmp_path / "vpnrouter"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{program}" "$@"\n')
    command.chmod(0o755)
    asks = (
        'eval "$(vpnrouter completion bash)"; COMP_WORDS=(vpnrouter show queues o); COMP_CWORD=3;'
        ' _vpnrouter_completion vpnrouter; echo "${COMPREPLY[@]}"'
    )
    found = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(vpnrouter.__file__).parents[1]),
        "VPNROUTER_URL": served.url,
    }
    done = subprocess.run([bash, "-c", asks], capture_output=True, text=True, env=found, check=True)
    assert done.stdout == "orders\n"
