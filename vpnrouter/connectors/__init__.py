"""Connectors: links between message VPNs and foreign brokers. Pure: no I/O, no clock, no randomness."""
