"""Configuration: YAML files to typed, frozen models, every problem with its file, line and
column.
"""
