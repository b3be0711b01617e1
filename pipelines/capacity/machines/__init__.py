"""Caches of models on machines: what fits, which tokens cross the link, what `kappa cache` answers. No printing."""
