import pytest

from vpnrouter.cli import app


@pytest.mark.parametrize("verb", ["browse", "purge", "delete-msg", "copy", "move", "replay"])
def test_each_has_its_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All of them are there."""
    assert app.run(["queue", verb, "-h"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: vpnrouter queue {verb} ")


@pytest.mark.parametrize("arguments", [[], ["brows", "q"], ["browse"], ["delete-msg", "q", "x"]])
def test_wrong_use(arguments: list[str]) -> None:
    """Exit code 2, before anything is asked."""
    assert app.run(["queue", *arguments]) == 2
