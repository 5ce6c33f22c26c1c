"""The demonstration: two routers, a bridge, a year of real flights, a report, and a verdict."""
