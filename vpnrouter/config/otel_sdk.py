"""Tells whether what sends spans is installed."""

from typing import Final

NO_SDK: Final = (
    "trace.otlp needs the OpenTelemetry SDK: pip install '.[otel]' in vpnrouter's source, or set"
    " trace.otlp.enabled: false"
)


def has_sdk() -> bool:
    """Whether what sends spans is installed here. Nothing of it is loaded but packages that hold others."""
    # Imported late: few routers send spans.
    from importlib.util import find_spec

    try:
        return None not in map(
            find_spec, ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")
        )
    except (ImportError, ValueError):
        return False
