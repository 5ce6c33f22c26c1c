"""Forwards without a broker's work: `python -m bench.forwarder`. The generator's ceiling is measured against it.

A QoS 0 PUBLISH goes out as it came in, so handing on bytes unseen is a correct broker while
everybody subscribes to everything. It answers CONNECT and SUBSCRIBE, prints `ready mqtt=HOST:PORT`,
and hands what any other client sends to every subscriber.
"""

from __future__ import annotations

import contextlib
import select
import socket

BUFFER_BYTES = 1 << 18


def serve() -> None:
    """Serves one set of clients until it is killed."""
    buffer = bytearray(BUFFER_BYTES)
    view = memoryview(buffer)
    subscribers: list[socket.socket] = []
    by_fd: dict[int, socket.socket] = {}
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener, select.epoll() as poll:
        poll.register(listener.fileno(), select.EPOLLIN)
        print("ready mqtt={}:{}".format(*listener.getsockname()), flush=True)
        while True:
            for fd, _ in poll.poll():
                if fd == listener.fileno():
                    sock, _ = listener.accept()
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    by_fd[sock.fileno()] = sock
                    poll.register(sock.fileno(), select.EPOLLIN)
                    continue
                sock = by_fd[fd]
                count = sock.recv_into(buffer)
                if count == 0:
                    poll.unregister(fd)
                    del by_fd[fd]
                    with contextlib.suppress(ValueError):
                        subscribers.remove(sock)
                    sock.close()
                elif buffer[0] == 0x10:
                    sock.sendall(b"\x20\x02\x00\x00")
                elif buffer[0] == 0x82:
                    subscribers.append(sock)
                    sock.sendall(b"\x90\x03\x00\x01\x00")
                else:
                    for subscriber in subscribers:
                        subscriber.sendall(view[:count])


if __name__ == "__main__":
    serve()
