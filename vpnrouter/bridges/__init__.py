"""Bridges between message VPNs: states, fail-over, loop control, compatibility."""
