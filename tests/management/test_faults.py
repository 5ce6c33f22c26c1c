import pytest

from vpnrouter.errors import RequestError
from vpnrouter.management import body


@pytest.mark.parametrize(
    ("fault", "code", "status", "http_status"),
    [
        (body.failed("x"), 2, "FAIL", 500),
        (body.busy("x"), 2, "FAIL", 503),
        (body.not_found("x"), 6, "NOT_FOUND", 400),
        (body.invalid("x"), 11, "INVALID_PARAMETER", 400),
        (body.not_supported("x"), 14, "NOT_SUPPORTED", 405),
        (body.unauthorized("x"), 72, "UNAUTHORIZED", 401),
        (body.forbidden("x"), 72, "UNAUTHORIZED", 403),
        (body.too_many("x"), 72, "UNAUTHORIZED", 429),
        (body.no_path("x"), 535, "INVALID_PATH", 404),
    ],
)
def test_codes_are_the_fields(
    fault: RequestError, code: int, status: str, http_status: int
) -> None:
    """Scripts look at the number, people at the name."""
    assert (fault.code, fault.status, fault.http_status) == (code, status, http_status)
    assert "x" in str(fault)
