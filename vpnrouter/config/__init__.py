"""Loads YAML configurations into typed, frozen models; each problem has its file, line and column."""
