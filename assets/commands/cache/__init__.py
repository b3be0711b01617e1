"""`kappa cache`: its options and its words. Answers are computed in `pipelines/capacity/machines/`."""
