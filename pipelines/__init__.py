"""The steps, plain Python: sources, conversations, token counting, turns, kappa, hardware. No Dagster and no DuckDB here."""
