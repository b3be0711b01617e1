"""The Dagster graph of the steps: assets, checks, resources, jobs. The steps do the work."""
