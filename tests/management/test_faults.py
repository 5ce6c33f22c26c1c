import pytest

from vpnrouter.errors import RequestError
from vpnrouter.management import errors


@pytest.mark.parametrize(
    ("fault", "code", "status", "http_status"),
    [
        (errors.failed("x"), 2, "FAIL", 500),
        (errors.busy("x"), 2, "FAIL", 503),
        (errors.not_found("x"), 6, "NOT_FOUND", 400),
        (errors.invalid("x"), 11, "INVALID_PARAMETER", 400),
        (errors.not_supported("x"), 14, "NOT_SUPPORTED", 405),
        (errors.unauthorized("x"), 72, "UNAUTHORIZED", 401),
        (errors.forbidden("x"), 72, "UNAUTHORIZED", 403),
        (errors.too_many("x"), 72, "UNAUTHORIZED", 429),
        (errors.no_path("x"), 535, "INVALID_PATH", 404),
    ],
)
def test_codes_are_the_fields(
    fault: RequestError, code: int, status: str, http_status: int
) -> None:
    """Scripts look at the number, people at the name."""
    assert (fault.code, fault.status, fault.http_status) == (code, status, http_status)
    assert "x" in str(fault)
