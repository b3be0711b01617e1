"""The Dagster graph over the steps: assets, checks, resources, jobs. No work of its own."""
