"""Figures and report pages out of warehouse tables. Drawing is done here alone; nothing here counts or derives."""
