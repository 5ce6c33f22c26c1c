"""Runs a demonstration: two routers, a bridge, a year of real flights, a report, and checks of all counts."""
