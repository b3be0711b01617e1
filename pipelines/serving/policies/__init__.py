"""Policies: which of the oldest waiting requests is admitted next. No time passes here."""
