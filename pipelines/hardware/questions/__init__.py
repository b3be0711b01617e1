"""The question behind `kappa crit` and the API: its checks, its choice of rows, its typed answers."""
