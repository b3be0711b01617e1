"""The iteration engine: what is computed, loaded and held in each iteration. No statistics of a run here."""
