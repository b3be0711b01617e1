"""Figures: drawing only. Their data is read in reports.data."""
