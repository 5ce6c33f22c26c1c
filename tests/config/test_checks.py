from collections.abc import Callable

from vpnrouter.config.checks.router import check_config
from vpnrouter.config.parse import parse
from vpnrouter.config.router import RouterConfig


def test_configuration_that_did_not_come_from_a_file() -> None:
    """A configuration made by a program is checked by the same rules as a file."""
    document = parse(
        b"{router: {name: r}, management: {users: {a: {password: p, msg_vpns: [x]}}}}", "f", []
    )
    assert document is not None
    config = RouterConfig.model_validate(document.data)
    assert [
        str(found) for found in check_config(config, document) if found.severity == "error"
    ] == ["f:1:70: management.users.a.msg_vpns[0]: there is no message VPN x"]


def test_every_message_vpn_is_checked(warnings_of: Callable[[str], list[str]]) -> None:
    """What is doubtful in two message VPNs is told for both."""
    text = "msg_vpns:\n" + "".join(
        f"  v{number}: {{queues: {{q: {{owner: gone}}}}}}\n" for number in range(2)
    )
    owners = [one for one in warnings_of(text) if "no client username gone" in one]
    assert [one.split()[0] for one in owners] == ["3:28", "4:28"]
