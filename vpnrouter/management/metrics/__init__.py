"""Metrics for Prometheus: what a router counts, in its text format."""
