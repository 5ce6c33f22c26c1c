import pytest

from vpnrouter.report.digests import schema

pytestmark = pytest.mark.spark


def test_every_digest_has_its_own_columns() -> None:
    """Each digest counts something and names no column twice."""
    for name, digest in schema.DIGESTS.items():
        assert len(set(digest.names)) == len(digest.names), name
        assert {"count", "messages", "enqueued", "event"} & set(digest.names), name
