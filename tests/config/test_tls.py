import pytest
from pydantic import ValidationError

from vpnrouter.config.listeners import ListenerTls


def test_defaults() -> None:
    """TLS 1.2 is the oldest version taken, and no client certificate is asked for."""
    tls = ListenerTls(certificate="a", key="b")
    assert (tls.min_version, tls.client_ca, tls.client_crl) == ("1.2", None, None)
    assert tls.key_password is None


def test_version_is_text() -> None:
    """An unquoted 1.3 is a number in YAML, and nothing older than 1.2 can be asked for."""
    for version in (1.3, "1.1", "1.0"):
        with pytest.raises(ValidationError):
            ListenerTls.model_validate({"certificate": "a", "key": "b", "min_version": version})
