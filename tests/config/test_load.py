"""Loading a file: what is refused, what is warned of, and where bridges may connect."""

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from vpnrouter.config.load import load, read
from vpnrouter.config.locations import Locations
from vpnrouter.config.model import Model
from vpnrouter.config.router import Loaded, RouterConfig
from vpnrouter.config.secrets import ENVIRONMENT, REVEAL
from vpnrouter.config.settings_models import RouterBridging
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


@pytest.mark.parametrize("name", ["edge", "core", "reference"])
def test_round_trip(name: str) -> None:
    """What is loaded, written out and loaded again is the same configuration."""
    config = load(CONFIGS / f"{name}.yaml").config
    for mode in ("python", "json"):
        dumped = config.model_dump(mode=mode, by_alias=True, context={REVEAL: True})
        again = RouterConfig.model_validate(dumped, context={ENVIRONMENT: {}})
        assert again == config


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


CASES = yaml.safe_load((Path(__file__).parent / "data" / "bad.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_refused(case: dict[str, Any], tmp_path: Path) -> None:
    """Each bad configuration is refused with exactly these errors, each at its line and column."""
    path = tmp_path / "router.yaml"
    above = "" if case.get("whole") else "router: {name: here}\n"
    path.write_text(above + case["config"], encoding="utf-8")
    told = [found for found in read(path, {}).problems if found.severity == "error"]
    expected = [line.replace("FILE", str(path)).split(" ", 1) for line in case["errors"]]
    assert [f"{one.position.line}:{one.position.column}" for one in told] == [
        place for place, _ in expected
    ], told
    for one, (_, part) in zip(told, expected, strict=True):
        assert part in one.message
    with pytest.raises(ConfigError) as refused:
        load(path, {})
    assert refused.value.problems == tuple(str(one) for one in told)


WHOLE = [
    yaml.safe_load((CONFIGS / f"{name}.yaml").read_text(encoding="utf-8"))
    for name in ("core", "edge", "reference")
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in plain data, its top left out."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for step, inner in pairs:
        yield (*path, step)
        if isinstance(inner, (dict, list)):
            yield from places(inner, (*path, step))


PLACES = [(number, path) for number, whole in enumerate(WHOLE) for path in places(whole)]
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1.5, 10**30, float("nan"), "", "x", "a//b", ">", "a/#", "v:", "[::1]:1",
     "h:0", "scrypt$", "default", "*", [], [[]], [None], [""], ["!a", "!a"], {}, {"": None},
     {"env": "NONE"}, {"file": "/"}, {"name": None}, {"enabled": {}}, {"a": {"b": ["c"]}}]
)  # fmt: skip


@given(
    st.lists(
        st.tuples(st.sampled_from(PLACES), st.none() | ODD, st.booleans()), min_size=1, max_size=4
    )
)
def test_damaged_configurations(
    tmp_path_factory: Any, damage: list[tuple[tuple[int, tuple[Any, ...]], Any, bool]]
) -> None:
    """Any part of a good file may be missing or be anything else: problems, never a traceback."""
    number = damage[0][0][0]
    data = copy.deepcopy(WHOLE[number])
    for (whole, path), value, removed in damage:
        owner = data
        try:
            for step in path[:-1]:
                owner = owner[step]
            if whole != number:
                continue
            if removed:
                del owner[path[-1]]
            else:
                owner[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue
    file = tmp_path_factory.getbasetemp() / "damaged.yaml"
    text = yaml.safe_dump(data)
    file.write_text(text)
    reading = read(file, {})
    refused = any(found.severity == "error" for found in reading.problems)
    assert refused == (reading.loaded is None)
    lines = text.splitlines()
    for found in reading.problems:
        assert 1 <= found.position.line <= len(lines)
        assert 1 <= found.position.column <= len(lines[found.position.line - 1]) + 1


NEAR = (
    *("127.0.0.1", "127.8.9.1", "0.0.0.0", "0.1.2.3", "169.254.169.254", "224.0.0.1"),
    *(
        "::1",
        "::",
        "fe80::1",
        "fe80::1%lo",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
    ),
    "2002:7f00:1::",
)


def loaded(folder: Path, allowed: str = "[]", users: str = "{}", role: str = "admin") -> Loaded:
    """A configuration with an overlay, and a bridge of the file's own and one of the overlay's."""
    users = users.replace("ROLE", role)
    bridge = (
        "{{{name}: {{remote_authentication: {{basic: {{client_username: u}}}},"
        " remote_msg_vpns: [{{name: v, location: '{at}'}}]}}}}"
    )
    own, other = (
        bridge.format(name="own", at="127.0.0.1:1"),
        bridge.format(name="api", at="127.0.0.1:2"),
    )
    file = folder / "r.yaml"
    file.write_text(
        f"router: {{name: r, data_dir: {folder}}}\nbridging: {{allowed_locations: {allowed}}}\n"
        f"management: {{users: {users}}}\nmsg_vpns: {{blue: {{bridges: {own}}}, red: {{}}}}\n"
    )
    (folder / "overlay.yaml").write_text(f"msg_vpns: {{blue: {{bridges: {other}}}}}\n")
    (folder / "overlay.yaml").chmod(0o600)
    return load(file)


LIMITED = "{t: {password: pw, role: ROLE, msg_vpns: [blue]}}"


def test_who_is_asked(tmp_path: Path) -> None:
    """Locations of the API, in message VPNs of which a limited user is admin; the file's own are free."""
    rules = Locations(loaded(tmp_path, users=LIMITED))
    assert rules.asks("blue", "127.0.0.1:2")
    assert not rules.asks("blue", "127.0.0.1:1"), "it stands in the file"
    assert not rules.asks("red", "127.0.0.1:1"), "nobody limited may change it"
    assert not Locations(loaded(tmp_path)).asks("blue", "127.0.0.1:2")
    read_only = Locations(loaded(tmp_path, users=LIMITED, role="read-only"))
    assert not read_only.asks("blue", "127.0.0.1:2")
    assert not Locations().asks("blue", "127.0.0.1:2")


def test_what_stands_there_already_is_told_and_no_reason_not_to_start(tmp_path: Path) -> None:
    """A warning names the location and where it stands; the file's own has none."""

    def told(found: Loaded) -> list[str]:
        return [str(one) for one in found.warnings if "allowed location" in one.message]

    (one,) = told(loaded(tmp_path, users=LIMITED))
    assert "overlay.yaml:1:" in one
    assert "127.0.0.1:2 is no allowed location" in one
    assert told(loaded(tmp_path)) == []


@pytest.mark.parametrize("address", NEAR)
def test_without_a_list(tmp_path: Path, address: str) -> None:
    """The router's own machine and network segment are out of reach, however the address is written."""
    rules = Locations(loaded(tmp_path, users=LIMITED))
    assert not rules.allow("some.name", address, 55555)
    assert not rules.may_be_allowed(address, 55555)
    assert rules.allow("some.name", "192.0.2.1", 55555)
    assert rules.may_be_allowed("some.name", 55555)
    assert not rules.may_be_allowed("localhost", 55555)
    assert not rules.may_be_allowed("a.LOCALHOST.", 55555)


def test_with_a_list(tmp_path: Path) -> None:
    """Networks, names and what is below a domain, each with its ports; nothing else."""
    rules = Locations(
        loaded(
            tmp_path,
            '["10.0.0.0/8", "127.0.0.1:1000-2000", "[2001:db8::/32]:1", host.example, "*.far.example:7"]',
            LIMITED,
        )
    )
    assert rules.allow("any.name", "10.1.2.3", 9)
    assert rules.allow("127.0.0.1", "127.0.0.1", 1_500)
    assert not rules.allow("127.0.0.1", "127.0.0.1", 2_001)
    assert rules.allow("2001:db8::5", "2001:db8::5", 1)
    assert not rules.allow("2001:db8::5", "2001:db8::5", 2)
    assert rules.allow("HOST.example.", "192.0.2.1", 9)
    assert rules.allow("a.far.example", "192.0.2.1", 7)
    assert not rules.allow("a.far.example", "192.0.2.1", 8)
    assert not rules.allow("far.example", "192.0.2.1", 7)
    assert not rules.allow("other.example", "192.0.2.1", 9)


@pytest.mark.parametrize("address", NEAR)
def test_a_name_that_is_given_a_near_address(tmp_path: Path, address: str) -> None:
    """A name in the list whose owner lets it mean this machine is not dialled: only a network allows that."""
    rules = Locations(loaded(tmp_path, '["host.example"]', LIMITED))
    assert rules.allow("host.example", "192.0.2.1", 1)
    assert not rules.allow("host.example", address, 1)


@pytest.mark.parametrize(
    "text",
    ["", "10.0.0.1/8", "1.2.3", "a:0", "a:9-8", "a:70000", "a b", "[x]:1", "::1", "a:b:c", "*"],
)
def test_patterns_that_are_none(text: str) -> None:
    """A text that is no pattern is refused, and the error says what a pattern looks like."""
    with pytest.raises(ValidationError):
        RouterBridging.model_validate({"allowed_locations": [text]})
