"""Figures and report pages from warehouse tables. Only this folder draws; nothing here counts or derives."""
