from pathlib import Path

import pytest

from vpnrouter.errors import ConfigError
from vpnrouter.report.change.configured import load_configured

FARES = ("core", "yellow"), "fares"


def change(file: Path, old: str, new: str) -> None:
    """Replace a text that stands in a file."""
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_two_routers(config_files: list[Path]) -> None:
    """The remote router is known by the address that it listens at; secrets need not be there."""
    mesh = load_configured(config_files)
    assert mesh.routers == {"edge", "core"}
    assert {place: vpn.enabled for place, vpn in mesh.vpns.items()} == {
        ("edge", "blue"): True,
        ("core", "green"): False,
        ("core", "yellow"): True,
    }
    bridge = mesh.bridges[FARES]
    assert (bridge.enabled, bridge.sources, bridge.elsewhere) == (True, (("edge", "blue"),), False)
    assert bridge.filters == {"fares", "fares/>", "seats/*", "!fares/test"}
    assert bridge.where.endswith("core.yaml:9:7")
    assert mesh.notes == ()


def test_a_remote_that_no_file_describes(config_files: list[Path]) -> None:
    """It is noted where it stands, and left alone."""
    mesh = load_configured(config_files[1:])
    assert (mesh.bridges[FARES].sources, mesh.bridges[FARES].elsewhere) == ((), True)
    (note,) = mesh.notes
    assert "core.yaml:13:13: no given file describes a router with a link listener" in note


def test_disabled(config_files: list[Path]) -> None:
    """A bridge without a remote that is used is as good as disabled."""
    change(config_files[1], '"127.0.0.1:55555"}', '"127.0.0.1:55555", enabled: false}')
    assert load_configured(config_files).bridges[FARES].enabled is False


def test_filters_behind_a_mapping(config_files: list[Path]) -> None:
    """Where the remote end renames what leaves, what is subscribed to there is not what is written here."""
    change(
        config_files[0],
        "    client_profiles",
        """\
    bridges:
      back:
        remote_authentication: {basic: {client_username: edge, password: x}}
        remote_msg_vpns: [{name: yellow, router: core, location: "127.0.0.1:55556"}]
        remote_subscriptions: ["back/>"]
        topic_mapping: [{add_prefix: edge/, direction: out}]
    client_profiles""",
    )
    mesh = load_configured(config_files)
    assert mesh.bridges[FARES].filters is None
    assert mesh.bridges[("edge", "blue"), "back"].filters == {"back/>"}


def test_files_that_are_refused(config_files: list[Path]) -> None:
    """One error tells every problem of every file, and where."""
    change(config_files[0], "msg_vpns:", "msg_vpn:")
    change(config_files[1], "fares/#", "fares/#/x")
    with pytest.raises(ConfigError) as caught:
        load_configured([*config_files, config_files[0].with_name("none.yaml")])
    places = [str(problem).partition(": ")[0] for problem in caught.value.problems]
    assert [place.rpartition("/")[2] for place in places] == [
        "edge.yaml:5:1",
        "core.yaml:15:32",
        "none.yaml:1:1",
    ]


def test_one_router_twice(config_files: list[Path]) -> None:
    """Two files of one name cannot both be right."""
    change(config_files[1], "name: core", "name: edge")
    with pytest.raises(ConfigError, match=r"core.yaml:1:16: .* another router has the name edge"):
        load_configured(config_files)
