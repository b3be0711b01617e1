"""A user's own workloads: declared in HOME/workloads/NAME.toml, recognised from their first records. No counting."""
