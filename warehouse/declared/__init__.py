"""Declarations of tables: fields, units, bounds; formats of values. No rows, no files, no SQL engine."""
