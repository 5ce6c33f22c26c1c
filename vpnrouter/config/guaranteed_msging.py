"""Guaranteed messaging of the router as a whole."""

from typing import Annotated

from pydantic import Field

from vpnrouter.config.model import Model


class GuaranteedMsging(Model):
    """Whether messages are spooled, and how many bytes of them. The spool is router.data_dir/spool."""

    enabled: bool = True
    """Whether guaranteed messages are spooled; if not, the spool is not opened, and queues and topic
    endpoints are not served."""

    max_msg_spool_usage: Annotated[int, Field(ge=0, le=6_000_000)] = 10_000
    """Megabytes of guaranteed messages that may wait in all message VPNs together. Beyond: refused."""
