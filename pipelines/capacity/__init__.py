"""What a cache of a given size gives: reuse distances, curves, tiers, other policies. No files, no tables, no SQL."""
