"""Declared tables, the home folder they are stored in, and the sourced reference rows. Only this folder uses DuckDB."""
