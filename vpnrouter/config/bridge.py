"""The model of a bridge, with the check of its cipher suites that needs OpenSSL."""

import ssl
from typing import TYPE_CHECKING

from pydantic import field_validator

from vpnrouter.config.model import Model, model_of
from vpnrouter.settings import bridge

if TYPE_CHECKING:

    class _Declared(bridge.Bridge, Model):
        pass
else:
    _Declared = model_of(bridge.Bridge)


class Bridge(_Declared):
    """A bridge into the message VPN that it stands in."""

    @field_validator("tls_cipher_suite_list")
    @classmethod
    def _check_ciphers(cls, written: str) -> str:
        """Check that OpenSSL knows all names for TLS 1.2: it would pass over others in silence."""
        if written == bridge.DEFAULT_CIPHERS:
            return written
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.set_ciphers("ALL")
        suites = context.get_ciphers()
        known = {str(suite["name"]) for suite in suites if suite["protocol"] != "TLSv1.3"}
        for name in written.split(":"):
            if name not in known:
                raise ValueError(f"{name!r} is no cipher suite of TLS 1.2 that this system has")
        return written
