"""The mesh file: which routers, how to reach them, what each shall be."""

from pathlib import Path

import pytest

from vpnrouter.plan.mesh_file import Mesh, read_mesh

VPN = """msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    queues: {q: {max_msg_spool_usage: 7}}
"""


@pytest.fixture(autouse=True)
def _edge(tmp_path: Path) -> None:
    (tmp_path / "edge.yaml").write_text("router: {name: edge}\n" + VPN)


def read(tmp_path: Path, text: str) -> Mesh:
    """A mesh file of this text, read."""
    (tmp_path / "mesh.yaml").write_text(text)
    return read_mesh(str(tmp_path / "mesh.yaml"))


def test_a_router_s_file_beside_it(tmp_path: Path) -> None:
    """What the router shall be, and how it is reached."""
    mesh = read(
        tmp_path,
        "routers:\n  edge: {url: 'https://h:1', user: ann, password: pw, ca_file: ca.pem,"
        " config: edge.yaml}\n",
    )
    (asked,) = mesh.routers
    assert (asked.name, asked.entry.url, asked.entry.user) == ("edge", "https://h:1", "ann")
    assert asked.entry.password is not None
    assert asked.entry.password.reveal() == "pw"
    assert asked.ca_file == str(tmp_path / "ca.pem")
    assert asked.document["msg_vpns"]["blue"]["queues"] == {"q": {"max_msg_spool_usage": 7}}
    assert asked.loaded.config.msg_vpns["blue"].queues["q"].max_msg_spool_usage == 7
    assert mesh.errors == []


def test_a_configuration_inside(tmp_path: Path) -> None:
    """The router's name need not be said again, and places are those of the mesh file."""
    inside = "".join(f"      {line}\n" for line in VPN.splitlines())
    mesh = read(tmp_path, f"routers:\n  edge:\n    url: http://h:1\n    config:\n{inside}")
    (asked,) = mesh.routers
    assert asked.loaded.config.router.name == "edge"
    assert "router" not in asked.document
    place = asked.loaded.positions.key_at(("msg_vpns", "blue", "queues"))
    assert (place.file, place.line) == (str(tmp_path / "mesh.yaml"), 8)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("routers: {}\n", "routers"),
        ("nothing: 1\n", "nothing"),
        ("routers:\n  edge: {config: edge.yaml}\n", "key url is missing"),
        ("routers:\n  edge: {url: 'ftp://h', config: edge.yaml}\n", "url"),
        ("routers:\n  edge: {url: 'http://h:1', config: none.yaml}\n", "cannot read"),
        ("routers:\n  core: {url: 'http://h:1', config: edge.yaml}\n", "is called core"),
        ("routers:\n  edge: {url: 'http://h:1', config: 7}\n", "config"),
        ("routers: [\n", "mesh.yaml:"),
        (
            "routers:\n  edge: {url: 'http://h:1', config: {msg_vpns: {blue: {quues: {}}}}}\n",
            "did you mean queues",
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """With a line for each problem, and its place."""
    mesh = read(tmp_path, text)
    assert mesh.routers == ()
    assert any(said in line for line in mesh.errors), mesh.errors
    assert all(line.startswith(str(tmp_path)) for line in mesh.errors)


def test_no_such_file(tmp_path: Path) -> None:
    """The mesh file itself."""
    assert "cannot read" in read_mesh(str(tmp_path / "none.yaml")).errors[0]


def test_the_mesh_is_checked_together(tmp_path: Path) -> None:
    """A bridge that its remote would refuse is told before anything is asked of a router."""
    mesh = read(
        tmp_path,
        """routers:
  edge: {url: 'http://h:1', config: {listeners: [{protocol: link, bind: "192.0.2.1:55555"}], msg_vpns: {blue: {}}}}
  core:
    url: http://h:2
    config:
      listeners: []
      msg_vpns:
        yellow:
          bridges:
            b:
              remote_msg_vpns: [{name: blu, location: "192.0.2.1:55555"}]
              remote_authentication: {basic: {client_username: u, password: p}}
              remote_subscriptions: [{topic: a, deliver_always_enabled: true}]
""",
    )
    assert any("no message VPN blu" in line for line in mesh.errors), mesh.errors


def test_variables_of_the_router_need_not_be_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret of a router's configuration is looked up there; one of the mesh file here."""
    monkeypatch.delenv("NOT_HERE", raising=False)
    config = "{msg_vpns: {blue: {client_usernames: {u: {password: {env: NOT_HERE}}}}}}"
    mesh = read(tmp_path, f"routers:\n  edge: {{url: 'http://h:1', config: {config}}}\n")
    assert mesh.errors == []
    mesh = read(
        tmp_path,
        "routers:\n  edge: {url: 'http://h:1', password: {env: NOT_HERE}, config: edge.yaml}\n",
    )
    assert any("NOT_HERE" in line for line in mesh.errors)


def test_the_example_reads() -> None:
    """The mesh file beside the example configurations."""
    mesh = read_mesh(str(Path(__file__).parents[2] / "configs" / "mesh.yaml"))
    assert mesh.errors == []
    assert [asked.name for asked in mesh.routers] == ["edge", "core"]


def test_blocks_left_to_the_router_are_not_judged(tmp_path: Path) -> None:
    """No listeners are written, so nothing is known, and nothing said, of them."""
    config = "{msg_vpns: {blue: {}}}"
    mesh = read(
        tmp_path,
        f"routers:\n  edge: {{url: 'http://h:1', config: {config}}}\n"
        f"  core: {{url: 'http://h:2', config: {config}}}\n",
    )
    assert len(mesh.routers) == 2
    assert mesh.problems == ()
