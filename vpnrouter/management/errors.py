"""Makes the errors that answer a request, with SEMP's response codes and names.

An object that does not exist is 400 with code 6, as in SEMP, so that scripts find what they look for. A path that is
none of the API's is 404.
"""

from vpnrouter.errors import RequestError


def failed(description: str) -> RequestError:
    """Return the error for a fault of the router."""
    return RequestError(2, "FAIL", 500, description)


def busy(description: str) -> RequestError:
    """Return the error for a request that has to be tried later."""
    return RequestError(2, "FAIL", 503, description)


def too_slow(description: str) -> RequestError:
    """Return the error for a request whose body does not come."""
    return RequestError(2, "FAIL", 408, description)


def not_found(what: str) -> RequestError:
    """Return the error for an object, or one it belongs to, that is not there or hidden from the user."""
    return RequestError(6, "NOT_FOUND", 400, f"Could not find match for {what}")


def invalid(description: str) -> RequestError:
    """Return the error for a parameter that is not known, or whose value is wrong."""
    return RequestError(11, "INVALID_PARAMETER", 400, description)


def not_supported(description: str) -> RequestError:
    """Return the error for a known path and a method that it does not take."""
    return RequestError(14, "NOT_SUPPORTED", 405, description)


def not_allowed(description: str) -> RequestError:
    """Return the error for a valid request that the router cannot fulfil in its present state."""
    return RequestError(89, "NOT_ALLOWED", 400, description)


def unauthorized(description: str) -> RequestError:
    """Return the error for a missing or unknown user, or a wrong password."""
    return RequestError(72, "UNAUTHORIZED", 401, description)


def forbidden(description: str) -> RequestError:
    """Return the error for a request that nobody may make from there, or not with these rights."""
    return RequestError(72, "UNAUTHORIZED", 403, description)


def too_many(description: str) -> RequestError:
    """Return the error for too many wrong passwords from one address."""
    return RequestError(72, "UNAUTHORIZED", 429, description)


def no_path(path: str) -> RequestError:
    """Return the error for a path that is none of the API's."""
    return RequestError(535, "INVALID_PATH", 404, f"Unknown path {path}")


def already_exists(what: str) -> RequestError:
    """Return the error for a new object whose key exists already."""
    return RequestError(10, "ALREADY_EXISTS", 400, f"There is {what} already")


def not_supported_here(description: str) -> RequestError:
    """Return the error for an attribute or a value that the field has and this router does not."""
    return RequestError(14, "NOT_SUPPORTED", 400, description)


def in_use(description: str) -> RequestError:
    """Return the error for a deletion of something that is still in use."""
    return RequestError(490, "CONFIGDB_OBJECT_DEPENDENCY", 400, description)
