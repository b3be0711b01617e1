"""`kappa crit`: its options and the printing of its answers, which are computed in pipelines.hardware."""
