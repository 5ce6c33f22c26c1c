import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from vpnrouter.config.load import load
from vpnrouter.config.mesh.check import check_mesh
from vpnrouter.config.router import Loaded
from vpnrouter.config.secrets import hash_password, scram_verifier

CONFIGS = Path(__file__).resolve().parent.parent.parent / "configs"
EDGE = (CONFIGS / "edge.yaml").read_text(encoding="utf-8")
CORE = (CONFIGS / "core.yaml").read_text(encoding="utf-8")

Mesh = Callable[..., list[str]]


@pytest.fixture
def mesh(tmp_path: Path) -> Mesh:
    """Check edge and core together, with replacements, each `(in edge, in core)`."""

    def run(*changes: tuple[str, str, str]) -> list[str]:
        texts = {"edge": EDGE, "core": CORE}
        for name, old, new in changes:
            assert old in texts[name]
            texts[name] = texts[name].replace(old, new)
        loaded: list[Loaded] = []
        for name, text in texts.items():
            (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
            loaded.append(load(tmp_path / f"{name}.yaml"))
        return [str(found).removeprefix(f"{tmp_path}/") for found in check_mesh(loaded)]

    return run


SCRYPT = hash_password("change-me", bytes(8), ln=4, r=1)
BASIC = ("edge", "basic: {enabled: false}", "basic: {enabled: true}")


def test_examples_fit(mesh: Mesh) -> None:
    """The two example routers fit together, also where passwords are asked for."""
    assert mesh() == []
    assert mesh(BASIC) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            [("core", "name: core", "name: edge"), ("core", "router: edge, ", "router: away, ")],
            "core.yaml:3:9: router.name: another router has the name edge at",
        ),
        (
            [("edge", '{protocol: link, bind: "127.0.0.1:55555"}', '{protocol: ws, bind: "h:1"}')],
            "remote_msg_vpns[0]: router edge has no link listener",
        ),
        (
            [("core", "name: blue", "name: bleu")],
            "core.yaml:29:20: msg_vpns.yellow.bridges.from-blue.remote_msg_vpns[0].name: router",
        ),
        (
            [("core", "core-bridge", "other"), BASIC],
            "client_username: message VPN blue of router edge has no client username other",
        ),
        (
            [("core", "core-bridge", "other")],
            "client profile default lacks allow_bridge_connections_enabled: true",
        ),
        (
            [("edge", "{allow_bridge_connections_enabled: true}", "{}")],
            "client username core-bridge of message VPN blue of router edge may not open bridges",
        ),
        (
            [("edge", "{password: change-me,", "{password: change-me, enabled: false,")],
            "client username core-bridge of message VPN blue of router edge is disabled",
        ),
        (
            [BASIC, ("core", "change-me", "changed")],
            "the password is not that of client username core-bridge",
        ),
        (
            [("core", "change-me", "changed")],
            "the password is not that of client username core-bridge",
        ),
        (
            [("edge", "password: change-me, ", "")],
            "client username core-bridge of message VPN blue of router edge has no password",
        ),
        (
            [("edge", "basic: {enabled: false}", "basic: {enabled: false}, client_cert: {enabled: true}")],
            "client username core-bridge of message VPN blue of router edge logs in by client certificate only",
        ),
        (
            [("edge", "password: change-me", f'password: "{SCRYPT}"')],
            "the password of client username core-bridge of message VPN blue of router edge is an scrypt hash",
        ),
        (
            [BASIC, ("core", ", password: change-me", "")],
            "client username core-bridge of message VPN blue of router edge needs a password",
        ),
        (
            [BASIC, ("edge", "password: change-me, ", "")],
            "client username core-bridge of message VPN blue of router edge has no password",
        ),
        (
            [("core", "queue_binding: to-core", "queue_binding: to-cor")],
            "queue_binding: message VPN blue of router edge has no queue to-cor",
        ),
        (
            [("edge", "access_type: exclusive", "access_type: non-exclusive")],
            "queue to-core of message VPN blue of router edge is not exclusive",
        ),
        (
            [("edge", "access_type: exclusive", "permission: read-only")],
            "queue to-core of message VPN blue of router edge does not let the bridge consume",
        ),
        (
            [("core", "queue_binding: to-core", "tls_enabled: true")],
            "location: router edge speaks no TLS there",
        ),
        (
            [("core", "router: edge, ", ""), ("core", "name: blue", "name: bleu")],
            "router edge has no message VPN bleu",
        ),
    ],
)  # fmt: skip
def test_misfit(mesh: Mesh, changes: list[tuple[str, str, str]], expected: str) -> None:
    """Each way in which two halves do not fit is told at the half that dials."""
    (only,) = [line for line in mesh(*changes) if ": note: " not in line]
    assert expected in only
    assert "change-me" not in only
    assert "changed" not in only


def test_disabled_message_vpn(mesh: Mesh) -> None:
    """A bridge into a disabled remote message VPN does not stand."""
    (only,) = mesh(("edge", "    max_msg_spool_usage: 200  ", "    enabled: false  "))
    assert "warning: " not in only
    assert "message VPN blue of router edge is disabled" in only


@pytest.mark.parametrize(
    "change",
    [
        ("core", "from-blue:", "from-blue:\n        enabled: false"),
        ("core", "queue_binding: to-core", "queue_binding: to-core, enabled: false"),
    ],
)
def test_left_alone(mesh: Mesh, change: tuple[str, str, str]) -> None:
    """What is disabled is left alone."""
    assert mesh(change, ("core", "name: blue", "name: gone")) == []


def test_unknown_router(mesh: Mesh) -> None:
    """A router that no file describes is noted, and nothing more."""
    elsewhere = ("core", "router: edge", "router: elsewhere")
    (only,) = mesh(elsewhere, ("core", "name: blue", "name: gone"))
    assert ": note: msg_vpns.yellow.bridges.from-blue.remote_msg_vpns[0]: unknown: " in only
    assert "no given file describes router elsewhere" in only


def test_hashed_password_is_not_tried(mesh: Mesh) -> None:
    """A hash at the remote is not computed: a mesh of hundreds would take minutes."""
    stored = scram_verifier("other", bytes(16))
    assert mesh(BASIC, ("edge", "password: change-me", f'password: "{stored}"')) == []


def test_owner_may_consume(mesh: Mesh) -> None:
    """The owner of a queue needs no permission for others."""
    owned = "permission: no-access\n        owner: core-bridge"
    assert mesh(("edge", "access_type: exclusive", owned)) == []


def test_router_bridges_to_itself(tmp_path: Path) -> None:
    """Both halves may stand in one file: two message VPNs of one router."""
    text = CORE.replace("router: edge", "router: core")
    (tmp_path / "core.yaml").write_text(text, encoding="utf-8")
    (only,) = check_mesh([load(tmp_path / "core.yaml")])
    assert "router core has no message VPN blue" in only.message


def test_search_is_bounded() -> None:
    """A search beyond the bound is cut, and a note says so and where."""
    kit = runpy.run_path(str(Path(__file__).with_name("mesh_kit.py")))
    names = [f"r{number}/v" for number in range(8)]
    loaded = kit["mesh"](
        {
            name: kit["vpn"](
                {
                    f"from-{other[:2]}": kit["bridge"](other, filters=[f"{index}/>", "*/a/>", ">"])
                    for index, other in enumerate(names)
                    if other != name
                }
            )
            for name in names
        }
    )
    (cut,) = [str(each) for each in check_mesh(loaded, steps=500) if "cut" in each.message]
    assert cut.startswith("r0.yaml:")
    assert "note: router: the search was cut after 500 comparisons: loops through r0/v and " in cut
    assert not any("cut" in each.message for each in check_mesh(loaded))


def test_large_mesh_is_checked_within_the_bound() -> None:
    """200 routers with ten bridges each, all attracting everything, are searched to the end."""
    kit = runpy.run_path(str(Path(__file__).with_name("mesh_kit.py")))
    loaded = kit["mesh"](
        {
            f"r{number}/v": kit["vpn"](
                {
                    f"b{step}": kit["bridge"](f"r{(number + step * step) % 200}/v", filters=[">"])
                    for step in range(1, 11)
                }
            )
            for number in range(200)
        }
    )
    found = [str(each) for each in check_mesh(loaded)]
    assert not any("cut" in line for line in found)
    assert sum("redundant traffic" in line for line in found) == 200
