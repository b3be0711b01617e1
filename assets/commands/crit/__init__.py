"""`kappa crit`: its options, and how its answers are printed. What computes them is in pipelines.hardware."""
