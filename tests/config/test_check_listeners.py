from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from vpnrouter.config.load import Reading

Warnings = Callable[[str], list[str]]


def test_no_listener(warnings_of: Warnings) -> None:
    """A router that nobody can connect to is doubtful."""
    assert "1:1 listeners: none, so nobody can connect to this router" in warnings_of("")
    assert any("so nobody can connect" in one for one in warnings_of("listeners: []"))


def test_message_vpn_with_an_at_sign(warnings_of: Warnings) -> None:
    """user@vpn cannot name a message VPN with @ in it, which is told where it matters."""
    vpns = "msg_vpns: {a@b: }\n"
    open_to_all = vpns + 'listeners: [{protocol: mqtt, bind: "h:1"}]'
    assert any("user@vpn cannot name" in one for one in warnings_of(open_to_all))
    of_one = vpns + 'listeners: [{protocol: mqtt, bind: "h:1", msg_vpn: a@b}]'
    assert not any("user@vpn" in one for one in warnings_of(of_one))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("127.0.0.1:1883", "127.0.0.2:1883"),
        ("127.0.0.1:1883", "127.0.0.1:1884"),
        ("127.0.0.1:0", "127.0.0.1:0"),
        ("0.0.0.0:1883", "[::]:1883"),
        ("[::1]:1883", "127.0.0.1:1883"),
    ],
)
def test_addresses_that_live_together(warnings_of: Warnings, first: str, second: str) -> None:
    """Different addresses, ports or families, and ports that the system chooses, do not collide."""
    text = f'listeners: [{{protocol: mqtt, bind: "{first}"}}, {{protocol: link, bind: "{second}"}}]'
    warnings_of(text)


def test_disabled_listener_binds_nothing(warnings_of: Warnings) -> None:
    """A disabled listener may have another's address."""
    warnings_of(
        "listeners:\n"
        '  - {protocol: mqtt, bind: "127.0.0.1:1883"}\n'
        '  - {protocol: mqtt, bind: "127.0.0.1:1883", enabled: false}'
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "[::1]"])
def test_management_on_loopback_needs_no_users(warnings_of: Warnings, host: str) -> None:
    """Without users the API may be served on this machine."""
    warnings_of(f'listeners: [{{protocol: http, bind: "{host}:8080"}}]')


def test_management_in_the_open_with_users(warnings_of: Warnings) -> None:
    """With users the API may be served anywhere."""
    warnings_of(
        'listeners: [{protocol: http, bind: "0.0.0.0:8080"}]\n'
        "management: {users: {ann: {password: pw, role: admin}}}"
    )


TLS = "tls: {{certificate: {0}, key: {0}{1}}}"
WANTS = "msg_vpns: {blue: {authentication: {client_cert: {enabled: true}}}, red: }\n"


@pytest.mark.parametrize(
    ("protocol", "more", "vpn", "told"),
    [
        ("mqtts", "", "", True),
        ("mqtts", ", client_ca: {0}", "", False),
        ("mqtts", ", client_ca: {0}", ", msg_vpn: blue", False),
        ("mqtts", ", client_ca: {0}", ", msg_vpn: red", True),
        ("mqtts", ", client_ca: {0}", ", enabled: false", True),
        ("links", ", client_ca: {0}", "", False),
    ],
)
def test_client_certificates_that_nobody_asks_for(
    warnings_of: Warnings, tmp_path: Path, protocol: str, more: str, vpn: str, told: bool
) -> None:
    """A message VPN that takes client certificates wants a listener that asks for them."""
    file = tmp_path / "some.pem"
    file.write_text("x")
    tls = TLS.format(file, more.format(file))
    text = f'{WANTS}listeners: [{{protocol: {protocol}, bind: "h:1"{vpn}, {tls}}}]'
    found = [one for one in warnings_of(text) if "asks for client certificates" in one]
    line = (
        "2:36 msg_vpns.blue.authentication.client_cert: no listener of this message VPN asks for"
        " client certificates (tls: {client_ca: …})"
    )
    assert found == [line] * told


def test_revocation_lists(read_text: Callable[..., Reading], tmp_path: Path) -> None:
    """A list is read where it is named, and is of no use without authorities."""
    file = tmp_path / "some.pem"
    file.write_text("x")
    tls = TLS.format(file, f", client_crl: {tmp_path}/none.pem")
    reading = read_text(f'listeners: [{{protocol: links, bind: "h:1", {tls}}}]')
    told = [one.message for one in reading.problems if one.severity == "error"]
    assert told == [
        f"listeners[0].tls.client_crl: cannot read {tmp_path}/none.pem: No such file or directory",
        "listeners[0].tls.client_crl: needs client_ca beside it",
    ]


def test_authorities_of_a_message_vpn(read_text: Callable[..., Reading], tmp_path: Path) -> None:
    """Whoever names authorities of a message VPN names certificates, and certificates log in there."""
    (tmp_path / "empty.pem").write_text("x")
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "good.pem"))
    text = f"""
listeners: [{{protocol: mqtt, bind: "h:1"}}]
msg_vpns:
  a: {{authentication: {{client_cert: {{enabled: true, ca: {tmp_path}/none.pem}}}}}}
  b: {{authentication: {{client_cert: {{enabled: true, ca: {tmp_path}/empty.pem}}}}}}
  c: {{authentication: {{client_cert: {{enabled: true, ca: {tmp_path}/good.pem}}}}}}
  d: {{authentication: {{client_cert: {{ca: {tmp_path}/none.pem}}}}}}
"""
    place = "msg_vpns.{}.authentication.client_cert.ca: {}"
    told = {(one.severity, one.message) for one in read_text(text).problems}
    assert told >= {
        ("error", place.format("a", f"cannot read {tmp_path}/none.pem: No such file or directory")),
        ("error", place.format("b", f"{tmp_path}/empty.pem holds no certificates")),
        ("warning", place.format("d", "has no effect without enabled: true")),
    }
    assert not any("msg_vpns.c.authentication.client_cert.ca" in message for _, message in told)


@pytest.mark.parametrize(
    ("vpn", "ca", "red", "told"),
    [
        ("", "", "client_cert: {enabled: true}", ["blue", "red"]),
        ("", ", ca: {0}", "client_cert: {enabled: true}", ["red"]),
        ("", ", ca: {0}", "client_cert: {enabled: true, ca: {0}}", []),
        # Nobody's certificate is meant for another message VPN.
        ("", "", "basic: {enabled: true}", []),
        (", msg_vpn: blue", "", "client_cert: {enabled: true, ca: {0}}", []),
    ],
)
def test_certificates_that_are_meant_for_another_message_vpn(
    warnings_of: Warnings, tmp_path: Path, vpn: str, ca: str, red: str, told: list[str]
) -> None:
    """Where a listener serves several message VPNs that take certificates, each had better name its authorities."""
    file = tmp_path / "some.pem"
    trustme.CA().cert_pem.write_to_path(str(file))
    tls = TLS.format(file, f", client_ca: {file}")
    text = f"""
listeners: [{{protocol: mqtts, bind: "h:1"{vpn}, {tls}}}]
msg_vpns:
  blue: {{authentication: {{client_cert: {{enabled: true{ca.replace("{0}", str(file))}}}}}}}
  red: {{authentication: {{{red.replace("{0}", str(file))}}}}}
"""
    found = [one for one in warnings_of(text) if "meant for another message VPN" in one]
    assert [one.split(" ")[1] for one in found] == [
        f"msg_vpns.{name}.authentication.client_cert:" for name in told
    ]
