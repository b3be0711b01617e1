"""The Dagster graph over the steps of `pipelines`, and the command line."""
