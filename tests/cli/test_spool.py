import pytest

from vpnrouter.cli import app


@pytest.mark.parametrize("verb", ["backup", "restore", "verify"])
def test_each_has_its_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All three are there."""
    assert app.run(["spool", verb, "-h"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: vpnrouter spool {verb} ")


@pytest.mark.parametrize("arguments", [[], ["copy"], ["backup", "c.yaml"], ["restore", "c", "/no"]])
def test_wrong_use(arguments: list[str]) -> None:
    """Exit code 2, before anything is read."""
    assert app.run(["spool", *arguments]) == 2


@pytest.mark.parametrize("verb", ["backup", "restore", "verify"])
def test_a_refused_configuration(verb: str, tmp_path: object) -> None:
    """Exit code 2 as everywhere."""
    more = [] if verb == "verify" else [str(tmp_path)]
    assert app.run(["spool", verb, "/no/such.yaml", *more]) == 2
