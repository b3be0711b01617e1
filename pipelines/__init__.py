"""The steps, plain Python, from sources to turns and kappa_crit. No Dagster and no DuckDB here."""
