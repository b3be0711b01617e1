"""Checks of tables: each returns the rows that break it. They only read."""
