"""Names that clash."""

import runpy
from pathlib import Path

import pytest

KIT = runpy.run_path(str(Path(__file__).with_name("mesh_kit.py")))
vpn, router, load_all, told = (KIT[name] for name in ("vpn", "router", "load_all", "told"))


def test_message_vpns_that_differ_by_case() -> None:
    """One name in two spellings is a warning, at the second one; one spelling is the usual case."""
    data = [
        router("a", {"Blue": vpn()}),
        router("b", {"Blue": vpn()}),
        router("c", {"blue": vpn()}),
    ]
    (only,) = told(load_all(data))
    assert only.startswith("c.yaml:")
    assert ": warning: msg_vpns.blue: differs only by case from message VPN Blue at a.yaml:" in only
    assert told(load_all(data[:2])) == []


def test_routers_of_one_name() -> None:
    """Two routers of one name are an error at the second one."""
    (only,) = told(load_all([router("a", {}), router("a", {}, listeners=[])]), about="name")
    assert "router.name: another router has the name a at a.yaml:" in only
    assert "warning" not in only


@pytest.mark.parametrize(
    ("binds", "directories", "warned"),
    [
        (("127.0.0.1:1", "127.0.0.1:2"), ("./data", "./data"), True),
        (("127.0.0.1:1", "127.0.0.1:2"), ("./data", "data/"), True),
        (("127.0.0.1:1", "127.0.0.1:2"), ("./data", "./data2"), False),
        (("127.0.0.1:1", "127.0.0.1:1"), ("./data", "./data"), False),
        (("0.0.0.0:1", "127.0.0.1:1"), ("./data", "./data"), False),
        (("0.0.0.0:1", "0.0.0.0:2"), ("./data", "./data"), True),
        (("127.0.0.1:0", "127.0.0.1:0"), ("./data", "./data"), True),
        (("192.0.2.1:1", "192.0.2.2:2"), ("./data", "./data"), False),
    ],
)
def test_one_data_directory(
    binds: tuple[str, str], directories: tuple[str, str], warned: bool
) -> None:
    """Two routers with one directory are a warning, unless they cannot run on one machine anyway."""
    data = [
        router(
            name,
            {},
            router={"name": name, "data_dir": directory},
            listeners=[{"protocol": "link", "bind": bind}],
        )
        for name, bind, directory in zip("ab", binds, directories, strict=True)
    ]
    lines = told(load_all(data))
    assert len(lines) == warned
    if warned:
        assert lines[0].startswith("b.yaml:")
        assert (
            ": warning: router.data_dir: router a has the directory data too (a.yaml:" in lines[0]
        )
