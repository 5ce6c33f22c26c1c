"""An open message router: many isolated message VPNs, linked by bridges."""

__version__ = "0.1.0"
