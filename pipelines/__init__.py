"""The steps from sources to turns and kappa_crit in plain Python. No Dagster and no DuckDB here."""
