import re
from pathlib import Path

from vpnrouter.wire.link import codes

DOC = (Path(__file__).parents[3] / "docs/link-protocol.md").read_text(encoding="utf-8")


def test_every_code_is_in_the_document_with_its_reason() -> None:
    """The table of LINK-16 and REASONS say the same."""
    rows = re.findall(r"^\| 0x([0-9a-f]{2}) \| [^|]+ \| ([^|]+) \|$", DOC, re.MULTILINE)
    told = {
        int(code, 16): reason for code, reason in rows if reason[0].isupper() or reason[0].isdigit()
    }
    assert {code: told.get(code) for code in codes.REASONS} == codes.REASONS


def test_codes_fit_a_protocol_error() -> None:
    """Each code can be carried by ProtocolError, whose reason code is a byte."""
    assert all(0 <= code <= 0xFF for code in codes.REASONS)
