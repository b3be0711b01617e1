"""Workload declarations, and how a record of a data set becomes a session. No network, no counting."""
