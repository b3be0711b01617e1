"""The costs of turns for a model on a machine: ratios, boundness, answers. No printing, no table writing."""
