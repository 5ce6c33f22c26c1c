import os
from pathlib import Path

import pytest
import yaml

from vpnrouter.config.load import load, read
from vpnrouter.config.model import Model
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.secrets import ENVIRONMENT, REVEAL
from vpnrouter.errors import ConfigError

CONFIGS = Path(__file__).resolve().parent.parent.parent / "configs"

EVERY_SECRET = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:1", tls: {certificate: a, key: b, key_password: HUNTER}}
management:
  users:
    ann: {password: HUNTER, role: root}
    bob: {password: {HUNTER: HUNTER}}
    cid: {password: [HUNTER]}
    dan: {password: {env: A, HUNTER: HUNTER}}
    eve: HUNTER
msg_vpns:
  blue:
    client_usernames:
      ann: {password: HUNTER, client_profile: gone}
      bob: {password: "scrypt$HUNTER"}
      cid: {pasword: HUNTER}
      dan: {password: HUNTER*20}
    bridges:
      b:
        remote_authentication:
          basic: {client_username: u, password: "scrypt$HUNTER"}
          client_cert: {password: HUNTER}
        remote_msg_vpns: [{name: red, location: "h:1", password: HUNTER}]
""".replace("HUNTER*20", "HUNTER" * 20)


@pytest.mark.parametrize("name", ["edge", "core"])
def test_examples_load(name: str) -> None:
    """The example configurations are accepted, and what is written there is what is loaded."""
    config = load(CONFIGS / f"{name}.yaml").config
    assert config.router.name == name
    assert [listener.protocol for listener in config.listeners] == ["mqtt", "link", "http"]
    assert config.trace is not None
    assert config.trace.sample == 1.0


def test_example_bridge() -> None:
    """The bridge of the examples has the remote, the login and both forms of subscription."""
    bridge = load(CONFIGS / "core.yaml").config.msg_vpns["yellow"].bridges["from-blue"]
    (remote,) = bridge.remote_msg_vpns
    assert (remote.name, remote.router, remote.queue_binding) == ("blue", "edge", "to-core")
    assert str(remote.address) == "127.0.0.1:55555"
    basic = bridge.remote_authentication.basic
    assert basic.client_username == "core-bridge"
    assert basic.password is not None
    assert basic.password.reveal() == "change-me"
    assert [(one.topic, one.deliver_always_enabled) for one in bridge.remote_subscriptions] == [
        ("weather/>", False),
        ("alerts/*", True),
    ]


@pytest.mark.parametrize("name", ["edge", "core", "reference"])
def test_round_trip(name: str) -> None:
    """What is loaded, written out and loaded again is the same configuration."""
    config = load(CONFIGS / f"{name}.yaml").config
    for mode in ("python", "json"):
        dumped = config.model_dump(mode=mode, by_alias=True, context={REVEAL: True})
        again = RouterConfig.model_validate(dumped, context={ENVIRONMENT: {}})
        assert again == config


def test_dump_is_yaml(tmp_path: Path) -> None:
    """A written-out configuration is a file that loads to the same."""
    config = load(CONFIGS / "core.yaml").config
    path = tmp_path / "again.yaml"
    path.write_text(yaml.safe_dump(config.model_dump(mode="json", context={REVEAL: True})))
    assert load(path).config == config


def test_secrets_are_never_printed(tmp_path: Path) -> None:
    """Whatever is wrong with a secret or beside it, no message and no repr shows its value."""
    path = tmp_path / "c.yaml"
    path.write_text("router: {name: r}\n" + EVERY_SECRET.replace("HUNTER", "hunter2"))
    with pytest.raises(ConfigError) as refused:
        load(path)
    assert len(refused.value.problems) >= 12
    shown = [*refused.value.problems, repr(refused.value), repr(read(path))]
    assert [text for text in shown if "hunter2" in text] == []


def test_secrets_of_an_accepted_file_are_never_printed() -> None:
    """The repr of a loaded configuration does not show its passwords."""
    loaded = load(CONFIGS / "core.yaml")
    assert "change-me" not in repr(loaded.config)
    assert "change-me" not in repr(loaded)


def test_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`{env: NAME}` looks in the mapping that is given, else in the process's own variables."""
    path = tmp_path / "c.yaml"
    path.write_text(
        "router: {name: r}\nmsg_vpns: {blue: {client_usernames: {ann: {password: {env: SOME_PW}}}}}"
    )
    monkeypatch.setitem(os.environ, "SOME_PW", "one")
    for environment, value in ((None, b"one"), ({"SOME_PW": "two"}, b"two")):
        password = load(path, environment).config.msg_vpns["blue"].client_usernames["ann"].password
        assert password is not None
        assert password.verify(value)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.yaml", "cannot read: No such file or directory"),
        ("", "cannot read: Is a directory"),
        ("a\0b", "cannot read: not a path"),
    ],
)
def test_unreadable(tmp_path: Path, name: str, reason: str) -> None:
    """A file that cannot be read is one problem at its beginning."""
    path = f"{tmp_path}/{name}"
    with pytest.raises(ConfigError) as refused:
        load(path)
    assert refused.value.problems == (f"{path}:1:1: {reason}",)


def test_endless_file() -> None:
    """A file without an end is read no further than a configuration can be long."""
    with pytest.raises(ConfigError, match="1:1: larger than 8388608 bytes"):
        load("/dev/zero")


def test_problems_are_in_the_order_of_the_file(tmp_path: Path) -> None:
    """Errors and warnings come as one reads the file, whichever check found them."""
    path = tmp_path / "c.yaml"
    path.write_text("router: {name: r}\n" + EVERY_SECRET)
    positions = [found.position for found in read(path).problems]
    assert positions == sorted(positions)
    assert len(positions) > 10


def test_refused_file_still_tells_its_warnings(tmp_path: Path) -> None:
    """Warnings stand beside errors in a reading, and only errors in what is raised."""
    path = tmp_path / "c.yaml"
    path.write_text("router: {name: r}\nmsg_vpns: {blue: {queues: {q: {owner: x}}, zzz: 1}}")
    reading = read(path)
    assert reading.loaded is None
    assert {found.severity for found in reading.problems} == {"error", "warning"}
    with pytest.raises(ConfigError) as refused:
        load(path)
    assert len(refused.value.problems) == 1


def test_large_file(tmp_path: Path) -> None:
    """A thousand message VPNs with a bridge each load, and the last one's problem has its place."""
    path = tmp_path / "c.yaml"
    vpn = (
        "  v{0}:\n    bridges: {{b: {{remote_authentication: {{basic: {{client_username: u}}}},"
        " remote_msg_vpns: [{{name: x, location: 'h:1'}}], remote_subscriptions: [a/{0}]}}}}\n"
    )
    text = "router: {name: r}\nmsg_vpns:\n" + "".join(vpn.format(number) for number in range(1000))
    path.write_text(text)
    assert len(load(path).config.msg_vpns) == 1000
    path.write_text(text + "  v0: {}\n")
    with pytest.raises(ConfigError, match=r"c\.yaml:2003:3: key v0 stands twice"):
        load(path)


def test_loaded_configuration_is_made_of_models() -> None:
    """Nothing of the document's plain data is left in the configuration."""
    config = load(CONFIGS / "core.yaml").config
    assert isinstance(config.msg_vpns["yellow"], Model)
    assert isinstance(config.listeners, tuple)
