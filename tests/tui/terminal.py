"""A terminal of 80 columns and 24 lines that a program runs in: tmux."""

import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Final, Self

PATIENCE_S: Final = 60.0
"""How long a test waits for what it expects; only a failing one waits that long."""


def tmux() -> str | None:
    """Path of tmux, None where there is none."""
    return shutil.which("tmux")


class Terminal:
    """A shell in a tmux server of its own, whose socket is in `folder`."""

    def __init__(self, program: str, folder: Path, environment: dict[str, str]) -> None:
        self._tmux = [program, "-S", str(folder / "tmux"), "-f", "/dev/null"]
        self._environment = {k: v for k, v in environment.items() if not k.startswith("TMUX")}
        self._environment["PS1"] = "$ "
        self._environment.setdefault("LANG", "C.UTF-8")
        self._folder = folder

    def __enter__(self) -> Self:
        size = ("-x", "80", "-y", "24")
        # What the shell prints at first must not be taken for what the program leaves behind.
        self._do("-u", "new-session", "-d", *size, "-c", str(self._folder), "sh")
        return self

    def __exit__(self, *_: object) -> None:
        self._do("kill-server")

    def run(self, *words: str) -> None:
        """Have the shell run a command."""
        script = self._folder / "command"
        script.write_text(f"{shlex.join(words)}\n", encoding="utf-8")
        self.press(f". {script}", "Enter")

    def press(self, *keys: str) -> None:
        """Press keys, by the names that tmux has for them."""
        self._do("send-keys", *keys)

    def screen(self) -> str:
        """What stands on the screen."""
        return self._do("capture-pane", "-p")

    def shows(self, *texts: str, without: str = "\0") -> str:
        """Wait until all of these stand on the screen, `without` another; gives it. Raises AssertionError."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            screen = self.screen()
            if all(text in screen for text in texts) and without not in screen:
                return screen
            assert time.monotonic() < deadline, f"{texts} never stood on the screen:\n{screen}"
            time.sleep(0.05)

    def fact(self, name: str) -> str:
        """A value that tmux has of the terminal, such as `alternate_on`."""
        return self._do("display-message", "-p", f"#{{{name}}}").strip()

    def _do(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | self._environment,
        )
        return done.stdout
