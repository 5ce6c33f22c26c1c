"""TLS contexts of listeners."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from vpnrouter.errors import OperationError

if TYPE_CHECKING:
    from vpnrouter.config.tls import ListenerTls


def listener_context(written: ListenerTls) -> ssl.SSLContext:
    """The context of a TLS listener; raises OperationError naming the file that cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = (
        ssl.TLSVersion.TLSv1_3 if written.min_version == "1.3" else ssl.TLSVersion.TLSv1_2
    )
    password = written.key_password.reveal() if written.key_password is not None else ""
    try:
        context.load_cert_chain(written.certificate, written.key, lambda: password)
    except (OSError, ssl.SSLError) as error:
        raise OperationError(
            f"cannot use certificate {written.certificate} with key {written.key}: {_why(error)}"
        ) from error
    if written.client_ca is not None:
        context.verify_mode = ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(written.client_ca)
        except (OSError, ssl.SSLError) as error:
            raise OperationError(
                f"cannot use authorities {written.client_ca}: {_why(error)}"
            ) from error
    return context


def _why(error: OSError) -> str:
    return error.strerror or str(error)
