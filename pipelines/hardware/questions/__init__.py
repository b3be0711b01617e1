"""Questions to `kappa crit` and the API: their checks, their choice of rows, their typed answers."""
