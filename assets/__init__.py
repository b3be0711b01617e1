"""The Dagster graph over the steps of `pipelines`, and the command line. An asset body is: inputs, one call, metadata."""
