"""Sends a text to an address, or receives messages from it, with Apache Qpid Proton: URL send ADDRESS TEXT, URL receive
ADDRESS COUNT. Each message that comes is one line: its kind, a colon, its body.
"""

from __future__ import annotations

import os
import sys

from proton import Message, SSLDomain
from proton.utils import BlockingConnection


def main() -> None:
    """Do what the arguments say."""
    url, action, address, word = sys.argv[1:5]
    domain = None
    mechanisms = "ANONYMOUS"
    if "PROTON_CERTIFICATE" in os.environ:
        # A client certificate with its key, and the authority of the server's.
        file = os.environ["PROTON_CERTIFICATE"]
        domain = SSLDomain(SSLDomain.MODE_CLIENT)
        domain.set_credentials(file, file, None)
        domain.set_trusted_ca_db(os.environ["PROTON_CA"])
        domain.set_peer_authentication(SSLDomain.VERIFY_PEER)
        mechanisms = "EXTERNAL"
    connection = BlockingConnection(url, 30, ssl_domain=domain, allowed_mechs=mechanisms)
    if action == "send":
        sender = connection.create_sender(address)
        sender.send(Message(body=word, durable=True, properties={"peer": "proton"}))
    else:
        receiver = connection.create_receiver(address)
        for _ in range(int(word)):
            message = receiver.receive(timeout=30)
            receiver.accept()
            body = message.body
            text = bytes(body).decode() if isinstance(body, (bytes, memoryview)) else str(body)
            kind = "bytes" if isinstance(body, (bytes, memoryview)) else "text"
            print(f"{kind}:{text}", flush=True)
    connection.close()


main()
