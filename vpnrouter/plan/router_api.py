"""What a plan asks of a router's management API: methods of `management.client.ManagementClient`."""

from typing import Protocol

from vpnrouter.config.document import Plain
from vpnrouter.management.attributes import Row


class RouterApi(Protocol):
    """One router. All methods raise OperationError, in one line, when the answer is no or none."""

    def config(self) -> Row:
        """The document in force, its digest, and the router's name."""

    def examine(self, document: Plain) -> Row:
        """Problems of a document, and the changes that it would make."""

    def replace_config(self, document: Plain, expected: str) -> Row:
        """Put a document into force where `expected` is the digest in force."""

    def return_config(self, digest: str) -> Row:
        """Put an earlier document into force again."""

    def msg_vpns(self) -> list[Row]:
        """All message VPNs."""

    def bridges(self) -> list[Row]:
        """All bridges of all message VPNs."""

    def queues(self) -> list[Row]:
        """All queues of all message VPNs."""
