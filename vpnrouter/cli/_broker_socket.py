"""A blocking socket to a broker, plain or TLS, whose errors say in one line what is wrong and where."""

from __future__ import annotations

import socket
import ssl
import time
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.errors import OperationError

if TYPE_CHECKING:
    from vpnrouter.cli._broker_options import Broker

ANSWER_S: Final = 10.0
"""Seconds that a broker has to take the connection, to answer the login, and to take what is sent."""

_NOTHING_YET: Final = (BlockingIOError, TimeoutError, ssl.SSLWantReadError)


class ConnectionLost(OperationError):
    """The connection was lost while something was sent: the broker may have said why."""


@final
class BrokerSocket:
    """The connection to one broker. `sent_s` is when something was sent last (of time.monotonic).

    Raises OperationError, in one line with the way out, when there is no broker or the connection ends.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._socket = _connected(broker)
        self.sent_s = time.monotonic()

    def close(self) -> None:
        """Close it at once."""
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send bytes; returns when the system has taken them. Raises ConnectionLost."""
        try:
            self._socket.settimeout(ANSWER_S)
            self._socket.sendall(data)
        except TimeoutError:
            raise OperationError(f"{self._broker} takes nothing more; is it overloaded?") from None
        except OSError as error:
            raise ConnectionLost(f"lost {self._broker}: {_why(error)}") from None
        self.sent_s = time.monotonic()

    def read(self, wait_s: float) -> bytes | None:
        """Return bytes that came within `wait_s`, None when none did, b"" at the end."""
        try:
            self._socket.settimeout(wait_s)
            return self._socket.recv(limits.MQTT_CLIENT_CHUNK_BYTES)
        except _NOTHING_YET:
            return None
        except OSError as error:
            raise OperationError(f"lost {self._broker}: {_why(error)}") from None

    def end(self, last_words: bytes) -> None:
        """Send the last bytes, and wait until the broker closes, so that nothing on its way is lost."""
        try:
            self.send(last_words)
            self._socket.settimeout(1.0)
            if not isinstance(self._socket, ssl.SSLSocket):
                self._socket.shutdown(socket.SHUT_WR)
            while self._socket.recv(limits.MQTT_CLIENT_CHUNK_BYTES):
                pass
        except (OSError, OperationError):
            pass  # it closed sooner


def _connected(broker: Broker) -> socket.socket:
    try:
        plain = socket.create_connection((broker.host, broker.port), ANSWER_S)
    except OSError as error:
        raise OperationError(
            f"cannot connect to {broker}: {_why(error)}; --url, or --host and --port, say where"
        ) from None
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if broker.tls is None:
        return plain
    try:
        return broker.tls.wrap_socket(plain, server_hostname=broker.host)
    except ssl.SSLCertVerificationError as error:
        plain.close()
        raise OperationError(
            f"the certificate of {broker} is not trusted: {error.verify_message};"
            " --ca-file names its authority"
        ) from None
    except OSError as error:
        plain.close()
        raise OperationError(f"no TLS with {broker}: {_why(error)}") from None


def _why(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {ANSWER_S:.0f} s"
    return error.strerror or str(error)
