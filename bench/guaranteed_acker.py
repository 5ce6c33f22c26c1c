"""The broker that does no work: acknowledges every QoS 1 message at once, stores nothing and hands
the bytes on to a consumer: `python -m bench.guaranteed_acker`.
"""

from __future__ import annotations

import select
import socket

import numpy as np

from bench.guaranteed_mqtt import acknowledgements, layout, template
from bench.guaranteed_pipe import Pipe

_CONNECT = 0x10
_SUBSCRIBE = 0x82
_SIZE = len(template(1))
_LAYOUT = layout(_SIZE)


class Client:
    """One connection: a publisher until it subscribes."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pipe = Pipe(sock)
        self.consumes = False
        self._rest = b""

    def take(self) -> bytes:
        """Receives and acknowledges; whole messages that are to be handed on."""
        data = self._rest + self.pipe.read()
        if data[:1] == bytes([_CONNECT]):
            self.pipe.write(b"\x20\x02\x00\x00")
            return b""
        if data[:1] == bytes([_SUBSCRIBE]):
            self.consumes = True
            self.pipe.write(b"\x90\x03" + data[2:4] + b"\x01")
            return b""
        if self.consumes:
            return b""  # acknowledgements
        count = len(data) // _SIZE
        self._rest = data[count * _SIZE :]
        if count:
            messages = np.frombuffer(data, _LAYOUT, count)
            self.pipe.write(acknowledgements(messages["pid"]))
        return data[: count * _SIZE]


def main() -> None:
    """Serves until it is ended."""
    with socket.create_server(("127.0.0.1", 0)) as listener, select.epoll() as poll:
        host, port = listener.getsockname()
        print(f"ready router=acker mqtt={host}:{port}", flush=True)
        poll.register(listener.fileno(), select.EPOLLIN)
        clients: dict[int, Client] = {}
        turn = 0
        while True:
            # Somebody whose bytes wait is tried again soon.
            for descriptor, _ in poll.poll(
                0.001 if any(client.pipe.blocked for client in clients.values()) else -1
            ):
                if descriptor == listener.fileno():
                    sock, _ = listener.accept()
                    clients[sock.fileno()] = Client(sock)
                    poll.register(sock.fileno(), select.EPOLLIN)
                    continue
                try:
                    data = clients[descriptor].take()
                except ConnectionError:
                    poll.unregister(descriptor)
                    clients.pop(descriptor).pipe.close()
                    continue
                consumers = [client for client in clients.values() if client.consumes]
                if data and consumers:
                    turn += 1
                    consumers[turn % len(consumers)].pipe.write(data)
            for client in clients.values():
                client.pipe.flush()


if __name__ == "__main__":
    main()
