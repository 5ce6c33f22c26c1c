"""Answers of the management API: rows, and which of them and of their attributes a request asks for."""
