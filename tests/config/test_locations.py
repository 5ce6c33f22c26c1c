"""Where bridges may be dialled to that came by the management API."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from vpnrouter.config.load import load
from vpnrouter.config.locations import Locations, RouterBridging
from vpnrouter.config.router import Loaded

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
