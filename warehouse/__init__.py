"""What a table is, where it rests, and the sourced reference rows. DuckDB is used here alone."""
