"""Figures: drawing, and nothing else. What they show is read in reports.data."""
